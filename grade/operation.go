package grade

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/problem"
)

// GoalHold is how long the goal of an operation must be met.
const GoalHold = 10 * time.Second

// How far a reported number may be off: from the least that was measured to the most, and so much further. Telemetry
// looks back for a while, and everybody looks back for another one.
const (
	reportFactor = 1.6
	cpuSlack     = 12 // thousandths of a core
	p99Slack     = 40 // milliseconds
)

// Operated is a service as an operation leaves it.
type Operated struct {
	Service string `json:"service"`
	Found   bool   `json:"found"` // there is a Deployment
	Wanted  int    `json:"wanted"`
	Ready   int    `json:"ready"`
	// Images and Env are those of the pods' own container, each once; of variables those that the goal is about.
	Images []string            `json:"images,omitempty"`
	Env    map[string][]string `json:"env,omitempty"`
	Oldest time.Time           `json:"oldest"` // when the oldest pod was made
	// Remade says that its pods are to be others than when the agent's turn began, if the goal asks to restart them.
	Remade bool `json:"remade,omitempty"`
	// CPU and Memory are parts of the limits, Used is the CPU in thousandths of a core; less than 0 if not known.
	CPU    float64       `json:"cpu"`
	Memory float64       `json:"memory"`
	Used   float64       `json:"used"`
	P99    time.Duration `json:"p99"`
	Scaler *Scaler       `json:"scaler,omitempty"`
	// Bounded and Probed say that all containers have requests and limits, and readiness probes.
	Bounded bool `json:"bounded,omitempty"`
	Probed  bool `json:"probed,omitempty"`
	// Wrong is what is wrong with what a service that was to be added answers; "" if nothing is.
	Wrong string `json:"wrong,omitempty"`
}

// Spent is what users got since the agent's turn began.
type Spent struct {
	Requests int64 `json:"requests"`
	Failed   int64 `json:"failed"`
}

// overspent says that more requests have failed than a goal allows, or "".
func overspent(g *problem.Goal, l Look) string {
	switch s := l.Spent; {
	case g.Budget == 0:
	case s == nil:
		return "it is not known how many requests have failed"
	case float64(s.Failed) > g.Budget*float64(s.Requests):
		return fmt.Sprintf("%d of %d requests have failed since the agent's turn began, more than %.0f %%", s.Failed,
			s.Requests, 100*g.Budget)
	}
	return ""
}

// Scaler is a HorizontalPodAutoscaler.
type Scaler struct {
	Min, Max int
	Target   int  // of the CPU requests, in percent; 0 for another target
	Active   bool // it can read what it scales by
}

// Bounds of a sensible autoscaler: it leaves room to scale up, not without end, and scales before the requests are
// used up and after they are used at all.
const (
	maxScaled            = 20
	minTarget, maxTarget = 10, 200
)

func (s *Scaler) sensible() bool {
	return s != nil && s.Active && s.Min >= 1 && s.Max > s.Min && s.Max <= maxScaled &&
		s.Target >= minTarget && s.Target <= maxTarget
}

// Unmet lists the conditions of a goal that do not hold in a look, for an agent whose turn began at a time. The
// baseline is the application before.
func Unmet(g *problem.Goal, began time.Time, baseline, l Look) []string {
	var list []string
	if s := overspent(g, l); s != "" {
		list = append(list, s)
	}
	for _, w := range g.Want {
		if w.Like != "" {
			list = append(list, added(w, baseline, l)...)
		}
		if len(w.Together) > 0 {
			list = append(list, together(w, l)...)
			continue
		}
		list = append(list, unmet(w, began, l.operated(w.Service))...)
	}
	return list
}

// Missed are the objectives of a goal that are known not to hold: what is wrong, by what is asked of which service.
func Missed(g *problem.Goal, list []Operated) map[string]string {
	missed := map[string]string{}
	look := Look{Operated: list}
	for _, w := range g.Objectives {
		o := look.operated(w.Service)
		if o == nil {
			continue
		}
		for what, one := range map[string]problem.Want{
			"ready": {Ready: w.Ready}, "cpu": {CPU: w.CPU}, "memory": {Memory: w.Memory}, "p99": {P99: w.P99},
		} {
			unknown := o.Found &&
				(one.CPU > 0 && o.CPU < 0 || one.Memory > 0 && o.Memory < 0 || one.P99 > 0 && o.P99 <= 0)
			one.Service = w.Service
			if wrong := unmet(one, time.Time{}, o); len(wrong) > 0 && !unknown {
				missed[w.Service+" "+what] = wrong[0]
			}
		}
	}
	return missed
}

func (l Look) operated(service string) *Operated {
	i := slices.IndexFunc(l.Operated, func(o Operated) bool { return o.Service == service })
	if i < 0 {
		return nil
	}
	return &l.Operated[i]
}

// unmet lists what of a condition does not hold of a service.
func unmet(w problem.Want, began time.Time, o *Operated) (list []string) {
	add := func(format string, args ...any) {
		list = append(list, w.Service+" "+fmt.Sprintf(format, args...))
	}
	if o == nil || !o.Found {
		add("is not there")
		return list
	}
	only := func(have []string, want string) bool { return len(have) == 1 && have[0] == want }
	if (w.Ready || w.Replicas > 0) && (o.Ready < o.Wanted || o.Wanted == 0) {
		add("has %d of %d pods ready", o.Ready, o.Wanted)
	}
	if w.Replicas > 0 && o.Wanted != w.Replicas {
		add("has %d replicas, not %d", o.Wanted, w.Replicas)
	}
	if w.Image != "" && !only(o.Images, w.Image) {
		add("runs %s, not %s", strings.Join(o.Images, ", "), w.Image)
	}
	for name, value := range w.Env {
		if !only(o.Env[name], value) {
			add("does not have %s=%s in all pods", name, value)
		}
	}
	if w.Restarted && (o.Oldest.IsZero() || o.Oldest.Before(began.Truncate(time.Second))) {
		add("has a pod that was not restarted")
	}
	if w.Restarted && o.Remade {
		add("was to be restarted, and its pods have become others")
	}
	if w.Bounded && !o.Bounded {
		add("has a container without requests and limits of CPU and memory")
	}
	if w.Probed && !o.Probed {
		add("has a container without a readiness probe")
	}
	if w.Autoscaled && !o.Scaler.sensible() {
		add("has no autoscaler that works, with more pods at most than at least and a target between %d %% and %d %%",
			minTarget, maxTarget)
	}
	if w.CPU > 0 && !(o.CPU >= 0 && o.CPU < w.CPU) {
		add("uses %s of its CPU limit, not less than %.0f %%", share(o.CPU), 100*w.CPU)
	}
	if w.Memory > 0 && !(o.Memory >= 0 && o.Memory < w.Memory) {
		add("uses %s of its memory limit, not less than %.0f %%", share(o.Memory), 100*w.Memory)
	}
	if w.P99 > 0 && !(o.P99 > 0 && o.P99 < w.P99) {
		add("takes %s for 99 of 100 requests, not less than %v", took(o.P99), w.P99)
	}
	return list
}

func share(v float64) string {
	if v < 0 {
		return "an unknown part"
	}
	return fmt.Sprintf("%.0f %%", 100*v)
}

func took(d time.Duration) string {
	if d <= 0 {
		return "an unknown time"
	}
	return d.Round(time.Millisecond).String()
}

// together is what of a condition on several services does not hold.
func together(w problem.Want, l Look) []string {
	sum := time.Duration(0)
	for _, s := range w.Together {
		o := l.operated(s)
		if o == nil || o.P99 <= 0 {
			return []string{s + " takes an unknown time for 99 of 100 requests"}
		}
		sum += o.P99
	}
	if sum >= w.P99 {
		return []string{fmt.Sprintf("%s take %s together for 99 of 100 requests, not less than %v",
			strings.Join(w.Together, " and "), took(sum), w.P99)}
	}
	return nil
}

// Achieved reports whether the goal was met, and the system well, for as long as hold, up to and including the last
// look, and once all users were there.
func Achieved(g *problem.Goal, began time.Time, baseline Look, looks []Look, hold time.Duration) bool {
	for i := len(looks) - 1; i >= 0; i-- {
		if looks[i].Time.Before(began.Add(g.Rises)) {
			return false
		}
		if len(Complaints(baseline, looks[i])) > 0 || len(Unmet(g, began, baseline, looks[i])) > 0 {
			return false
		}
		if looks[len(looks)-1].Time.Sub(looks[i].Time) >= hold {
			return true
		}
	}
	return false
}

// Operation judges what an agent did that was to reach a goal, and what it reported.
func Operation(g *problem.Goal, began time.Time, baseline Look, looks []Look, hold time.Duration, answer any) Result {
	wrong := Misreported(g, looks, answer)
	var complaints []string
	if len(g.Want) > 0 && !Achieved(g, began, baseline, looks, hold) {
		if len(looks) > 0 {
			last := looks[len(looks)-1]
			complaints = append(Unmet(g, began, baseline, last), Complaints(baseline, last)...)
		}
		if len(complaints) == 0 {
			complaints = []string{fmt.Sprintf("what was asked for did not hold for %v on end", hold)}
		}
	}
	if all := append(wrong, complaints...); len(all) > 0 {
		return Result{"success": false, "complaints": all, "level": g.Level}
	}
	return Result{"success": true, "level": g.Level}
}

// Unreported reports whether a report was asked for, and what was submitted lacks some of it.
func Unreported(g *problem.Goal, answer any) bool {
	told, _ := unwrap(answer).(map[string]any)
	return slices.ContainsFunc(g.Report, func(i problem.Item) bool { return told[i.Key] == nil })
}

// Misreported lists what is wrong with a report.
func Misreported(g *problem.Goal, looks []Look, answer any) (list []string) {
	if len(g.Report) == 0 {
		return nil
	}
	told, ok := unwrap(answer).(map[string]any)
	if !ok {
		return []string{"no report was submitted; it is a dict"}
	}
	for _, item := range g.Report {
		got := unwrap(told[item.Key])
		if item.Is == "" {
			word, _ := got.(string)
			if !strings.EqualFold(strings.TrimSpace(word), item.Value) {
				list = append(list, fmt.Sprintf("reported %s %s, right is %s", item.Key, shown(got), item.Value))
			}
			continue
		}
		low, high := measured(item, looks)
		if n, ok := numeral(got); !ok || !(n >= low && n <= high) {
			list = append(list, fmt.Sprintf("reported %s %s, measured were %.0f to %.0f", item.Key, shown(got), low,
				high))
		}
	}
	return list
}

func shown(v any) string {
	if v == nil {
		return "nothing"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "nothing that can be shown"
	}
	if len(b) > 60 {
		return string(b[:60]) + "..."
	}
	return string(b)
}

// numeral reads a number, which may be written as a text.
func numeral(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, !math.IsNaN(v)
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	case string:
		n, err := strconv.ParseFloat(strings.TrimRight(strings.TrimSpace(v), " mMilscore%"), 64)
		return n, err == nil && !math.IsNaN(n)
	}
	return 0, false
}

// measured is between what a number of a report must be: what was measured, and a margin. Without any measurement
// nothing is right.
func measured(item problem.Item, looks []Look) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	slack := float64(cpuSlack)
	for _, l := range looks {
		o := l.operated(item.Of)
		if o == nil {
			continue
		}
		n := o.Used
		if item.Is == problem.P99Item {
			n, slack = float64(o.P99)/float64(time.Millisecond), p99Slack
		}
		if n > 0 {
			low, high = min(low, n), max(high, n)
		}
	}
	return low/reportFactor - slack, high*reportFactor + slack
}
