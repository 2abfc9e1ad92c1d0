package hierarchy

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// world plays an incident that was recorded: what a survey of a service shows is what the looks at the whole system
// showed, as far as it is about the service and its neighbours. A change shows it as it was afterwards.
type world struct {
	files   []txtar.File
	changes []string
	needed  int // how many changes it takes
}

// scenario reads an incident and what is to be done about it.
func scenario(t *testing.T, name string) (w *world, task problem.Task, want string) {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("..", "runbook", "testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(strings.TrimSpace(string(a.Comment)), "\n")
	w = &world{files: a.Files}
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "exec_shell") && !strings.Contains(line, "kubectl delete pod -n n --ignore") {
			w.needed++
		}
	}
	return w, problem.Task(head), strings.TrimSpace(rest)
}

// file is what a look showed, the n-th time.
func (w *world) file(name string, n int) string {
	var list []string
	for _, f := range w.files {
		if f.Name == name {
			list = append(list, string(f.Data))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return list[min(n, len(list)-1)]
}

var surveyCall = regexp.MustCompile(`(sleep \d+; )?survey \S+ \S+ (\d+) (\S+)((?: [a-z0-9-]+)*)$`)

// answer is what a call shows.
func (w *world) answer(c *aci.Call) string {
	command, _ := c.Args[0].(string)
	stage := 0
	if len(w.changes) > 0 && len(w.changes) >= w.needed {
		stage = 99
	}
	switch m := surveyCall.FindStringSubmatch(command); {
	case c.Name == "get_topology":
		return w.file("topology", 0)
	case strings.Contains(command, "# brief KIND"):
		return w.file("services", 0)
	case m != nil:
		if m[2] == "15" && stage == 0 {
			stage = 1
		}
		return w.survey(stage, m[3], strings.Fields(m[4]))
	case strings.Contains(command, "kubectl get configmap -n"):
		return w.file("configuration", 0)
	case strings.Contains(command, "kubectl get pv"):
		return w.file("volumes", 0)
	}
	w.changes = append(w.changes, command)
	return ""
}

// survey is what the helper of that name prints.
func (w *world) survey(stage int, self string, near []string) string {
	all := append([]string{self}, near...)
	is := func(name string, names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool {
			rest, ok := strings.CutPrefix(name, n)
			return ok && (rest == "" || regexp.MustCompile(`^-[a-z0-9]+(-[a-z0-9]+)?$`).MatchString(rest))
		})
	}
	addresses := []string{}
	var b strings.Builder
	section := func(name string, keep func(line string) bool) {
		b.WriteString("== " + name + "\n")
		for line := range strings.Lines(w.file(name, stage)) {
			if keep(line) {
				b.WriteString(line)
			}
		}
	}
	name := regexp.MustCompile(`"metadata":\{(?:"annotations":\{[^}]*\},)?"name":"([^"]+)"`)
	named := func(names ...string) func(string) bool {
		return func(line string) bool {
			m := name.FindStringSubmatch(line)
			return m != nil && is(m[1], names...)
		}
	}
	section("pods", func(line string) bool {
		f := strings.Fields(line)
		if len(f) > 5 && is(f[0], self) {
			addresses = append(addresses, f[5])
		}
		return len(f) > 5 && is(f[0], all...)
	})
	section("deployments", named(all...))
	section("services", func(line string) bool {
		return named(all...)(line) || strings.Contains(line, "PersistentVolumeClaim") && strings.Contains(line, `"`+self+`-pvc"`)
	})
	section("ill-pods", named(self))
	section("history", func(line string) bool { return strings.Contains(line, `"kind":"Deployment","name":"`+self+`"`) })
	section("logs", func(line string) bool {
		if stage > 1 {
			return false // They were said before the change.
		}
		m := regexp.MustCompile(`\[pod/([^/]+)/`).FindStringSubmatch(line)
		return m != nil && is(m[1], self)
	})
	section("metrics", func(line string) bool {
		f := strings.Fields(line)
		return len(f) == 3 && is(f[1], all...)
	})
	section("connections", func(line string) bool {
		host, _, _ := strings.Cut(line, ":")
		return strings.TrimSuffix(host, ".n") == self || slices.Contains(addresses, host)
	})
	section("events", func(line string) bool { return strings.HasPrefix(line, "created "+self+"-") })
	return b.String()
}

// run is how a group fared.
type run struct {
	answers  []string // submissions
	messages []record.Message
	turns    []record.Turn
	group    record.Group
	steps    []string
	err      error
}

// play takes a group through a world. An incident has two questions, the second of which is to put it right.
func play(t *testing.T, o options, b agent.Briefing, answer func(*aci.Call) string) *run {
	t.Helper()
	r := &run{}
	var mu sync.Mutex
	b.Note = func(_ string, data any) {
		mu.Lock()
		defer mu.Unlock()
		switch d := data.(type) {
		case record.Message:
			r.messages = append(r.messages, d)
		case record.Turn:
			r.turns = append(r.turns, d)
		case record.Group:
			r.group = d
		}
	}
	b.Namespace, b.Scratch = "n", t.TempDir()
	if b.Steps == 0 {
		b.Steps = 30
	}
	b.Actions = aci.Actions(string(b.Task))
	b.Instructions = aci.Instructions(string(b.Task))
	if o.heartbeat == 0 {
		o.heartbeat = time.Hour
	}
	if o.patience == 0 {
		o.patience = time.Minute
	}
	g := o.start(b, time.After)
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	observation := ""
	for range b.Steps {
		response, err := g.Act(ctx, observation+"\n"+aci.NextAction)
		if err != nil {
			r.err = err
			return r
		}
		r.steps = append(r.steps, response)
		call, err := aci.Parse(response)
		if err != nil {
			observation = err.Error()
			continue
		}
		if call.Name == "submit" {
			_, text, _ := strings.Cut(response, "```\n")
			r.answers = append(r.answers, strings.TrimSuffix(text, "\n```"))
			if b.Task == problem.Incident && len(r.answers) == 1 {
				observation = aci.Ask(string(problem.Mitigation))
				continue
			}
			return r
		}
		observation = answer(call)
	}
	return r
}

// talk is the conversation of a run.
func (r *run) talk() string {
	var b strings.Builder
	for _, m := range r.messages {
		b.WriteString(m.From + " -> " + m.To + " (" + m.Kind + "): " + m.Text + "\n")
	}
	return b.String()
}
