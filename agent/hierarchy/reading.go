package hierarchy

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// gaugeHelper is a function for the shell that prints a service by the numbers.
//
//go:embed gauge.sh
var gaugeHelper string

// reading is a service by the numbers. Those that are not known are less than 0.
type reading struct {
	Found       bool         `json:"found"`
	Wanted      int          `json:"wanted"`
	Ready       int          `json:"ready"`
	Settled     bool         `json:"settled"` // no rollout is under way
	Container   string       `json:"container,omitempty"`
	Image       string       `json:"image,omitempty"`
	LimitCPU    float64      `json:"limit_cpu"` // of one pod, in cores; 0 for none
	LimitMemory float64      `json:"limit_memory"`
	Scaled      bool         `json:"scaled,omitempty"` // there is an autoscaler
	Pods        []podReading `json:"pods,omitempty"`
	CPU         float64      `json:"cpu"` // in cores, all pods together
	Memory      float64      `json:"memory"`
	P99         float64      `json:"p99"`  // in seconds
	Rate        float64      `json:"rate"` // of requests in a second
	RateBefore  float64      `json:"rate_before"`
	Cost        float64      `json:"cost"` // seconds of CPU for a request
	CostLeast   float64      `json:"cost_least"`
	// Called are the P99 of those that it calls.
	Called map[string]float64 `json:"called,omitempty"`
}

// podReading is a pod of it.
type podReading struct {
	Name  string  `json:"name"`
	Node  string  `json:"node"`
	State string  `json:"state"`
	Ready bool    `json:"ready"`
	CPU   float64 `json:"cpu"`
}

// readGauge reads what the helper prints.
func readGauge(text string) *reading {
	r := &reading{
		CPU: -1, Memory: -1, P99: -1, Rate: -1, RateBefore: -1, Cost: -1, CostLeast: -1, Called: map[string]float64{},
	}
	unlimited := [2]bool{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) == 5 && f[0] == "deployment":
			r.Found = true
			r.Wanted, r.Ready = number(f[1]), min(number(f[2]), number(f[3]))
			r.Settled = f[4] == "true" && r.Ready == r.Wanted
		case len(f) == 5 && f[0] == "container":
			if r.Container == "" {
				r.Container, r.Image = f[1], f[2]
			}
			unlimited[0] = addQuantity(&r.LimitCPU, f[3]) || unlimited[0]
			unlimited[1] = addQuantity(&r.LimitMemory, f[4]) || unlimited[1]
		case len(f) == 3 && f[0] == "scaler":
			r.Scaled = true
		case len(f) == 5 && f[0] == "pod":
			r.Pods = append(r.Pods, podReading{Name: f[1], Ready: f[2] == "true", Node: f[3], State: f[4]})
		case len(f) == 3:
			r.take(f[0], f[1], f[2])
		}
	}
	if unlimited[0] {
		r.LimitCPU = 0
	}
	if unlimited[1] {
		r.LimitMemory = 0
	}
	return r
}

// addQuantity adds an amount, and reports whether there is none.
func addQuantity(sum *float64, text string) bool {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return true
	}
	*sum += q.AsApproximateFloat64()
	return false
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// take notes a number of Prometheus.
func (r *reading) take(what, of, value string) {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return
	}
	add := func(to *float64) { *to = max(*to, 0) + v }
	switch what {
	case "cpu":
		if i := slices.IndexFunc(r.Pods, func(p podReading) bool { return p.Name == of }); i >= 0 {
			r.Pods[i].CPU = v
		}
		add(&r.CPU)
	case "memory":
		add(&r.Memory)
	case "p99":
		r.P99 = v
	case "rate":
		r.Rate = v
	case "rate-before":
		r.RateBefore = v
	case "cost":
		r.Cost = v
	case "cost-least":
		r.CostLeast = v
	case "called-p99":
		r.Called[of] = v
	}
}

// part is how much of a limit, of all pods that are wanted, is used; less than 0 if that is not known.
func (r *reading) part(used, limit float64) float64 {
	if used < 0 || limit == 0 || r.Wanted == 0 {
		return -1
	}
	return used / (limit * float64(max(r.Wanted, len(r.Pods))))
}

func (r *reading) cpuPart() float64    { return r.part(r.CPU, r.LimitCPU) }
func (r *reading) memoryPart() float64 { return r.part(r.Memory, r.LimitMemory) }

// missed are the objectives that are not met, in words.
func (r *reading) missed(o objectives) (list []string) {
	if !r.Found {
		return []string{"there is no Deployment"}
	}
	if o.Ready && (r.Ready < r.Wanted || r.Wanted == 0) {
		list = append(list, fmt.Sprintf("%d of %d pods are ready", r.Ready, r.Wanted))
	}
	if p := r.cpuPart(); o.CPU > 0 && p >= o.CPU {
		list = append(list, fmt.Sprintf("CPU is at %s of the limit", percent(p)))
	}
	if p := r.memoryPart(); o.Memory > 0 && p >= o.Memory {
		list = append(list, fmt.Sprintf("memory is at %s of the limit", percent(p)))
	}
	if o.P99 > 0 && r.P99 >= o.P99.Seconds() {
		list = append(list, fmt.Sprintf("99 of 100 requests take %s", millis(r.P99)))
	}
	if o.P99 > 0 && r.P99 < 0 && r.Ready == 0 {
		list = append(list, "no request is answered")
	}
	return list
}

func percent(part float64) string { return fmt.Sprintf("%.0f %%", 100*part) }

func millis(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond).String()
}

// Why a service does not meet its objectives.
const (
	podsDown = "pods down"        // pods do not get ready
	stressed = "CPU is burnt"     // a request costs more CPU than it did
	demand   = "many requests"    // what comes is more than the pods can do
	waiting  = "waits for others" // it is one that it calls
	unclear  = "unclear"          // nothing shows a reason
)

// dearer is how many times as much CPU a request must cost for somebody else to be at it.
const dearer = 1.7

// cause is why objectives are not met, and for waiting whom it waits for.
func (r *reading) cause(o objectives) (why, whom string) {
	switch {
	case len(r.missed(o)) == 0:
		return "", ""
	case !r.Found, r.Ready < r.Wanted, r.Wanted == 0:
		return podsDown, ""
	case r.Cost > dearer*r.CostLeast && r.CostLeast > 0 && (r.cpuPart() < 0 || r.cpuPart() > 0.3):
		return stressed, ""
	}
	busy := r.cpuPart() >= 0.6 || o.CPU > 0 && r.cpuPart() >= o.CPU
	for _, s := range sortedKeys(r.Called) {
		if !busy && r.Called[s] > 0.5*r.P99 && (whom == "" || r.Called[s] > r.Called[whom]) {
			whom = s
		}
	}
	switch part := r.cpuPart(); {
	case whom != "":
		return waiting, whom
	case !busy && !r.rising() && part >= 0 && part < 0.4:
		return unclear, ""
	}
	return demand, ""
}

// rising reports whether ever more requests come.
func (r *reading) rising() bool { return r.RateBefore > 0 && r.Rate > 1.08*r.RateBefore }

// threatened reports whether objectives will be missed soon, if it goes on like that.
func (r *reading) threatened(o objectives) bool {
	return r.rising() && o.CPU > 0 && len(r.missed(o)) == 0 && r.cpuPart()*r.Rate/r.RateBefore >= o.CPU
}

// maxReplicas is how far a service is scaled by rules.
const maxReplicas = 12

// replicas is how many pods it takes to meet objectives, with some room.
func (r *reading) replicas(o objectives) int {
	n := max(1, r.Wanted)
	part := r.cpuPart()
	if part < 0 {
		return min(maxReplicas, n+1)
	}
	most := 0.6 // Above that, requests wait for each other.
	if o.CPU > 0 {
		most = min(most, o.CPU)
	}
	grows := 1.0
	if why, _ := r.cause(o); why == stressed { // What else burns CPU there does not come along.
		part *= r.CostLeast / r.Cost
	}
	if r.rising() {
		grows = min(2, r.Rate/r.RateBefore)
	}
	need := int(math.Ceil(part * float64(n) * grows / (0.7 * most)))
	if part > 0.85 { // What it would use if it could is not known.
		need = max(need, 2*n)
	}
	if why, _ := r.cause(o); why == demand || why == unclear {
		need = max(need, n+1)
	}
	return min(maxReplicas, max(need, n))
}

// illNodes are the nodes on which pods are ill for a cause.
func (r *reading) illNodes(why string) (nodes []string) {
	most := 0.0
	for _, p := range r.Pods {
		most = max(most, p.CPU)
	}
	for _, p := range r.Pods {
		ill := !p.Ready
		if why == stressed {
			ill = p.CPU > 0.6*most
		}
		if ill && p.Node != "-" && !slices.Contains(nodes, p.Node) {
			nodes = append(nodes, p.Node)
		}
	}
	return nodes
}

// tell is how a service does, in words of who looks after it.
func (r *reading) tell(o objectives) string {
	missed := r.missed(o)
	all := r.facts()
	if len(missed) > 0 {
		why, whom := r.cause(o)
		return fmt.Sprintf("Not as it should be: %s. %s %s", strings.Join(missed, ", "), r.because(why, whom), all)
	}
	text := all
	if o != (objectives{}) {
		text = "All is as it should be. " + all
	}
	if r.rising() {
		text += fmt.Sprintf(" But more and more comes in, %.0f requests a second after %.0f only 40 seconds ago: I "+
			"would not "+
			"be sure that it stays so.", r.Rate, r.RateBefore)
	}
	return text
}

// because tells why objectives are missed.
func (r *reading) because(why, whom string) string {
	switch why {
	case podsDown:
		var ill []string
		for _, p := range r.Pods {
			if !p.Ready {
				ill = append(ill, fmt.Sprintf("%s on %s is not ready (%s)", p.Name, p.Node, p.State))
			}
		}
		if len(ill) == 0 {
			return "I have no pod that could answer."
		}
		return "It is my pods: " + strings.Join(ill, ", ") + "."
	case stressed:
		return fmt.Sprintf("It is not that more is asked of me, that is %.0f requests a second. But a request takes "+
			"%.1f ms "+
			"of CPU now and took %.1f before: something beside my own work burns my CPU, on "+
			"%s.", r.Rate,
			1000*r.Cost, 1000*r.CostLeast, strings.Join(r.illNodes(stressed), " and "))
	case unclear:
		return "I see no reason for it here: my pods have CPU to spare, and those that I call are quick. It may be " +
			"of a moment."
	case waiting:
		return fmt.Sprintf("I have CPU to spare; I wait for %s, of whose requests 99 of 100 take %s.", whom,
			millis(r.Called[whom]))
	}
	text := fmt.Sprintf("A request costs what it always did, %.1f ms of CPU; there are just more of them than %s "+
		"can do "+
		"well", 1000*max(r.Cost, 0), plural(r.Wanted, "pod"))
	if r.rising() {
		text += fmt.Sprintf(": %.0f a second, after %.0f only 40 seconds ago, and rising", r.Rate, r.RateBefore)
	} else if r.Rate > 0 {
		text += fmt.Sprintf(": %.0f a second", r.Rate)
	}
	return text + "."
}

func plural(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// facts are the numbers in a sentence.
func (r *reading) facts() string {
	if !r.Found {
		return "There is no Deployment of mine."
	}
	list := []string{fmt.Sprintf("%d of %d pods ready", r.Ready, r.Wanted)}
	if p := r.cpuPart(); p >= 0 {
		list = append(list, fmt.Sprintf("CPU %.0fm, %s of the limit", 1000*r.CPU, percent(p)))
	} else if r.CPU >= 0 {
		list = append(list, fmt.Sprintf("CPU %.0fm", 1000*r.CPU))
	}
	if p := r.memoryPart(); p >= 0 {
		list = append(list, "memory "+percent(p))
	}
	if r.P99 >= 0 {
		list = append(list, fmt.Sprintf("99 of 100 requests within %s", millis(r.P99)))
	}
	if r.Rate >= 0 {
		list = append(list, fmt.Sprintf("%.0f requests a second", r.Rate))
	}
	return "By the numbers: " + strings.Join(list, "; ") + "."
}
