package hierarchy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// order is what an operation asks for, as far as rules can read it out of the words in which it is asked. A model reads
// the words themselves.
type order struct {
	// Services are those that it is about.
	Services []string `json:"services,omitempty"`
	// Steps are what is to be done, where that is said.
	Steps []step `json:"steps,omitempty"`
	// Objectives are what must hold. With Standing they are the service level objectives, which hold whether or not
	// anybody asks for them.
	Objectives objectives `json:"objectives,omitzero"`
	Standing   bool       `json:"standing,omitempty"`
	// Fix says that the objectives are to be met in the end, not only looked at.
	Fix bool `json:"fix,omitempty"`
	// Report is what the answer is to tell.
	Report []entry `json:"report,omitempty"`
}

// objectives are what must hold of a service. What is zero is not asked for.
type objectives struct {
	Ready       bool          `json:"ready,omitempty"`
	CPU, Memory float64       `json:",omitempty"` // parts of the limits
	P99         time.Duration `json:"p99,omitempty"`
	Sum         bool          `json:"sum,omitempty"` // P99 is that of all services together
}

// The kinds of steps.
const (
	createStep    = "create"
	envStep       = "env"
	imageStep     = "image"
	restartStep   = "restart"
	scaleStep     = "scale"
	autoscaleStep = "autoscale"
)

// step is something that is to be done to a service.
type step struct {
	Kind    string `json:"kind"`
	Service string `json:"service"`
	Name    string `json:"name,omitempty"`  // of a variable, or a ConfigMap
	Value   string `json:"value,omitempty"` // of the variable, a key of the ConfigMap, a version, a number of replicas
	// Replicas and Port are of a service that is to be added. See chores.go for what the others are of such chores.
	Replicas int `json:"replicas,omitempty"`
	Port     int `json:"port,omitempty"`
}

// entry is a key of a report.
type entry struct {
	Key   string   `json:"key"`
	Words []string `json:"words,omitempty"` // to choose from
	Is    string   `json:"is,omitempty"`    // "cpu" or "p99", of a service
	Of    string   `json:"of,omitempty"`
}

// What the words of an operation look like. Rules understand no others: these are the words of the built-in tasks, and
// ways in which people ask for the same.
const less = `(?:below|less than|under|at most|within|no more than|faster than)`

var (
	taskWords = regexp.MustCompile(`(?s)This is your task: (.*?)(?:\n\n|$)`)

	createWords = regexp.MustCompile(`(?i)\b(?:create|make|deploy|apply)\b.*\bConfigMap (\S+),? (?:under|at|as|key) (\S+)`)
	envWords    = regexp.MustCompile(`(?i)\b(?:environment )?variable (\S+) .*\bto (\S+)$`)
	assignWords = regexp.MustCompile(`(?i)\bset ([a-z_][a-z0-9_]*)=(\S+)`)
	imageWords  = regexp.MustCompile(`(?i)\b(?:roll|set|bring|go|put|return|take|down ?grade|upgrade|update)\b.*` +
		`\bto (?:version|image|the image|tag) (\S+)$`)
	scaleWords = regexp.MustCompile(`(?i)\b(?:scale|resize)\b.* to (\d+)\b|` +
		`\b(?:give|run|have)\b.*?\b(\d+) (?:replicas|pods)\b`)
	restartWords   = regexp.MustCompile(`(?i)^(?:please )?(?:restart|replace all pods|do a rolling restart)\b`)
	autoscaleWords = regexp.MustCompile(`(?i)\b(?:set up|configure|enable|add|create|make)\b.*autoscal|\bautoscale\b`)

	limitsWords = regexp.MustCompile(`(?i)` + less + ` (\d+) ?% of (?:its|their|the) (CPU and memory|CPU|memory)`)
	usageWords  = regexp.MustCompile(`(?i)(CPU|memory) (?:usage|use).*?` + less + ` (\d+) ?%`)
	p99Words    = regexp.MustCompile(`(?i)(?:99 (?:of|in) (?:100|a hundred) requests|99 % of (?:the |all )?requests|` +
		`99th percentile|\bp99\b).*?` + less + ` (a second|\d+ ?(?:ms|milliseconds?|s|seconds?)\b)`)
	standingWords = regexp.MustCompile(`(?i)\b(?:objectives|SLOs|service levels)(?: are|:)`)
	fixWords      = regexp.MustCompile(`(?i)^(?:please )?(?:bring|get|lower|reduce) |\bsee to it\b|\bmake sure\b|\bensure\b`)
	tellWords     = regexp.MustCompile(`(?i)^(?:please )?(?:check|report|tell|measure|find out|say|how much) `)

	reportWords = regexp.MustCompile(`"([a-z0-9_]+)" \((one of ([^)]*)|a number: ([^)]*))\)`)
)

// readOrder reads what an operation asks for, of services that there are. It is nothing if rules cannot read it.
func readOrder(description string, services []string) *order {
	m := taskWords.FindStringSubmatch(description)
	if m == nil {
		return nil
	}
	text := strings.Join(strings.Fields(m[1]), " ")
	ask, report, _ := strings.Cut(text, "Submit a dict with ")
	o := &order{Report: readReport(report, services)}
	o.readChores(ask, services)
	var last []string // whom the talk is of
	for _, s := range sentences(ask) {
		named := mentioned(s, services)
		if len(named) > 0 {
			last = named
		}
		if strings.HasPrefix(s, "Users come") { // That says how things are.
			last = nil
			continue
		}
		o.readSteps(s, last)
		if o.Objectives.read(s) || tellWords.MatchString(s) {
			o.add(last)
		}
		low := strings.ToLower(s)
		o.Standing = o.Standing || standingWords.MatchString(s)
		o.Fix = o.Fix || fixWords.MatchString(s)
		o.Objectives.Sum = o.Objectives.Sum || o.Objectives.P99 > 0 && (strings.Contains(low, "in sum") ||
			strings.Contains(low, "in total") || strings.Contains(low, "together"))
	}
	for _, e := range o.Report {
		if e.Of != "" {
			o.add([]string{e.Of})
		}
	}
	if len(o.Services) == 0 || len(o.Steps) == 0 && len(o.Report) == 0 && o.Objectives == (objectives{}) {
		return nil
	}
	return o
}

func (o *order) add(names []string) {
	for _, n := range names {
		if !slices.Contains(o.Services, n) {
			o.Services = append(o.Services, n)
		}
	}
}

// sentences parts a text. A point within a name or number ends none.
func sentences(text string) (list []string) {
	for _, s := range strings.Split(text, ". ") {
		if s = strings.TrimSuffix(strings.TrimSpace(s), "."); s != "" {
			list = append(list, s)
		}
	}
	return list
}

// mentioned are the services that a sentence names as words of their own.
func mentioned(sentence string, services []string) (list []string) {
	for _, f := range strings.Fields(sentence) {
		w := strings.Trim(f, ",:;.()'\"")
		if slices.Contains(services, w) && !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// readSteps reads what a sentence says is to be done, to whom it names or to whom the talk was of.
func (o *order) readSteps(s string, services []string) {
	for _, service := range services {
		st := step{Service: service}
		switch {
		case autoscaleWords.MatchString(s):
			st.Kind = autoscaleStep
		case createWords.MatchString(s):
			m := createWords.FindStringSubmatch(s)
			st.Kind, st.Name, st.Value = createStep, m[1], m[2]
		case envWords.MatchString(s):
			m := envWords.FindStringSubmatch(s)
			st.Kind, st.Name, st.Value = envStep, m[1], m[2]
		case assignWords.MatchString(s):
			m := assignWords.FindStringSubmatch(s)
			st.Kind, st.Name, st.Value = envStep, m[1], m[2]
		case imageWords.MatchString(s):
			st.Kind, st.Value = imageStep, imageWords.FindStringSubmatch(s)[1]
		case scaleWords.MatchString(s):
			m := scaleWords.FindStringSubmatch(s)
			st.Kind, st.Value = scaleStep, m[1]+m[2]
		case restartWords.MatchString(s):
			st.Kind = restartStep
		default:
			continue
		}
		o.Steps = append(o.Steps, st)
		o.add([]string{service})
	}
}

// read reads objectives out of a sentence, and reports whether there are any.
func (o *objectives) read(s string) bool {
	before := *o
	part := func(text string) float64 {
		n, _ := strconv.ParseFloat(text, 64)
		return n / 100
	}
	if m := limitsWords.FindStringSubmatch(s); m != nil {
		if strings.Contains(m[2], "CPU") {
			o.CPU = part(m[1])
		}
		if strings.Contains(m[2], "memory") {
			o.Memory = part(m[1])
		}
	} else if m := usageWords.FindStringSubmatch(s); m != nil {
		if strings.EqualFold(m[1], "CPU") {
			o.CPU = part(m[2])
		} else {
			o.Memory = part(m[2])
		}
	}
	if m := p99Words.FindStringSubmatch(s); m != nil {
		o.P99 = time.Second
		if m[1] != "a second" {
			n, unit := number(strings.TrimRight(m[1], " milsecond")), time.Second
			if strings.Contains(m[1], "m") {
				unit = time.Millisecond
			}
			o.P99 = time.Duration(n) * unit
		}
	}
	o.Ready = o.Ready || strings.Contains(s, "pods are ready") || strings.Contains(s, "every pod is ready")
	return *o != before
}

// readReport reads the keys of a report, and what they are to tell.
func readReport(text string, services []string) (list []entry) {
	for _, m := range reportWords.FindAllStringSubmatch(text, -1) {
		e := entry{Key: m[1]}
		switch number := m[4]; {
		case m[3] != "":
			e.Words = strings.Split(m[3], ", ")
		case strings.Contains(number, "CPU"):
			e.Is = "cpu"
		case strings.Contains(number, "99 of 100"):
			e.Is = "p99"
		}
		if of := mentioned(m[4], services); len(of) > 0 {
			e.Of = of[0]
		}
		list = append(list, e)
	}
	return list
}

// String tells objectives as one tells them to who is to meet them.
func (o objectives) String() string {
	var list []string
	if o.Ready {
		list = append(list, "all pods ready")
	}
	percent := func(part float64) string { return strconv.Itoa(int(100*part+0.5)) + " %" }
	switch {
	case o.CPU > 0 && o.CPU == o.Memory:
		list = append(list, "CPU and memory below "+percent(o.CPU)+" of the limits")
	case o.CPU > 0:
		list = append(list, "CPU below "+percent(o.CPU)+" of the limits")
	}
	if o.Memory > 0 && o.CPU != o.Memory {
		list = append(list, "memory below "+percent(o.Memory)+" of the limits")
	}
	if o.P99 > 0 {
		list = append(list, "99 of 100 requests answered within "+o.P99.String())
	}
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

// each is the order as one maintainer gets it: of a sum, its share.
func (o *order) each() *order {
	one := *o
	if one.Objectives.Sum {
		one.Objectives.P99 /= time.Duration(len(o.Services))
		one.Objectives.Sum = false
	}
	return &one
}

// heartbeat is what a heartbeat asks for where there are objectives.
func (o objectives) heartbeat() string {
	return fmt.Sprintf("Look whether your service is as it should be: %s. If not, say why, if you can.", o)
}
