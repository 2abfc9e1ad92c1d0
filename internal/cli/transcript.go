package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/internal/term"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// How many lines of a command and of what came of it a transcript shows; the record has all, and
// --verbose shows all.
const (
	shownCommand = 3
	shownOutput  = 9
)

// detail is how much a transcript tells.
type detail int

const (
	normal  detail = iota
	quiet          // the verdict alone
	verbose        // everything, uncut
)

// transcript tells of a run as it goes on: what the lab does, each step of the agent as it begins, what
// came of it, and in the end what was wrong, what was done, and where to look.
type transcript struct {
	w io.Writer
	screen
	detail detail
	blind  bool // who works on the problem may read it: no word of what is wrong before the end
	silent bool // who works on the problem shows the steps
	start  time.Time
	now    func() time.Time // of the clock in front of lines
	name   string           // how commands name the problem, if not by its id
	// offline says that the incident was over. No command describes it.
	offline bool

	told   int // the step whose beginning was told
	acting bool
	held   []record.Message // that came while a step was under way
	looks  int
	base   grade.Look
	faults []record.Fault
	writes []string // in the order of the first
	answer json.RawMessage
	// answers are those to the questions of an incident, but for the last.
	answers []string
	shift   record.Shift // what was to come, of a shift
}

func newTranscript(w io.Writer, c screen) *transcript {
	return &transcript{w: w, screen: c, start: time.Now(), now: time.Now}
}

func (t *transcript) line(format string, args ...any) {
	if t.detail == quiet {
		return
	}
	fmt.Fprintf(t.w, "%s  %s\n", t.clock(), fmt.Sprintf(format, args...))
}

// clock is how long the run has lasted.
func (t *transcript) clock() string {
	return t.paint(dim, fmt.Sprintf("%6.1f s", t.now().Sub(t.start).Seconds()))
}

// block writes lines behind an indentation.
func (t *transcript) block(indent, code string, lines []string) {
	for _, l := range lines {
		fmt.Fprintf(t.w, "%s%s\n", indent, t.paint(code, l))
	}
}

func (t *transcript) begin(p *problem.Problem, a agent.Entry) {
	name := p.ID
	if t.blind { // An id mostly names the fault.
		name = p.App.Name
	}
	if t.detail != quiet {
		fmt.Fprintf(t.w, "%s  %s by %s\n", t.paint(bold, name), p.Task, a.Name)
	}
}

func (t *transcript) progress(step string) { t.line("%s", step) }

// event tells of an event of the record.
func (t *transcript) event(kind string, data any) {
	switch d := data.(type) {
	case record.Phase:
		t.phase(d.Name)
	case record.Fault:
		t.faults = append(t.faults, d)
		if !t.blind { // That there is a fault says much.
			t.line("%s", t.paint(yellow, whatIn(d)+" shows: "+d.Symptom))
		}
	case record.HandOver:
		for _, line := range d.Page { // The agent is told.
			t.line("%s", t.paint(yellow, "paged: "+line))
		}
	case record.Action:
		t.begins(d.Number, d.Response)
	case record.Step:
		t.step(d)
	case record.Message:
		t.message(d)
	case record.Output:
		t.output(kind, d)
	case llm.Attempt:
		t.line("%s", t.paint(yellow, fmt.Sprintf("the model %s is asked again in %.1f s: %s", d.Model, d.Seconds,
			d.Error)))
	case record.Shift:
		t.shift = d
	case record.Page:
		t.page(d)
	case record.Incident:
		t.incident(d)
	case record.Answer:
		if d.Next != "" && d.Question != term.Page { // The step tells of those to pages.
			t.answers = append(t.answers, string(d.Answer))
		}
	case record.Submission:
		t.answer = d.Answer
		if !d.Submitted {
			t.line("%s", t.paint(red, "no submission: "+d.Reason))
		}
	case grade.Look:
		t.look(kind, d)
	case guard.Entry:
		t.write(d)
	case json.RawMessage:
		var e guard.Entry
		if kind == record.WriteEvent && json.Unmarshal(d, &e) == nil {
			t.write(e)
		}
	}
}

func (t *transcript) phase(name string) {
	switch name {
	case "injecting":
		t.line("injecting what is to be found")
	case "agent":
		t.line("the agent's turn")
	default:
		t.line("%s", visible(name))
	}
}

// output tells what a program said beside its responses.
func (t *transcript) output(kind string, o record.Output) {
	who := map[string]string{record.LogEvent: "the agent logs", record.StderrEvent: "the agent's standard error"}[kind]
	t.line("%s", who)
	if t.detail != quiet {
		t.block("    ", dim, t.shown(o.Text, shownOutput))
	}
}

// begins tells of a step when the agent has chosen it: the thought, whole, and the action.
func (t *transcript) begins(number int, response string) {
	t.told, t.acting = number, true
	if t.detail == quiet || t.silent {
		return
	}
	thought, action := aci.Told(response)
	fmt.Fprintf(t.w, "\n%s  %s\n", t.clock(), t.paint(bold, fmt.Sprintf("step %d", number)))
	if thought != "" {
		t.block("  ", "", wrap(visible(thought), t.columns(2)))
	}
	if action != "" {
		t.block("  ", cyan, t.shown(action, shownCommand))
	}
}

// step tells what came of one.
func (t *transcript) step(s record.Step) {
	if t.told != s.Number {
		t.begins(s.Number, s.Response)
	}
	if t.detail == quiet || t.silent {
		return
	}
	t.block("    ", dim, t.shown(s.Observation, shownOutput))
	held := t.held
	t.acting, t.held = false, nil
	for _, m := range held {
		t.message(m)
	}
}

// message tells what one member of a group said to another, when no step is under way.
func (t *transcript) message(m record.Message) {
	if t.detail == quiet || t.silent {
		return
	}
	if t.acting {
		t.held = append(t.held, m)
		return
	}
	fmt.Fprintf(t.w, "\n%s  %s\n", t.clock(), t.paint(bold, visible(headOf(m))))
	t.block("  ", "", wrap(visible(strings.TrimSpace(m.Text)), t.columns(2)))
}

// headOf says who told whom, and what kind of message it was.
func headOf(m record.Message) string {
	head := fmt.Sprintf("%s to %s (%s", m.From, m.To, m.Kind)
	if m.Round > 0 {
		head += fmt.Sprintf(", round %d", m.Round)
	}
	return head + ")"
}

// shown is what is shown of a text: all of it, or the lines that matter, as wide as the screen.
func (t *transcript) shown(text string, most int) []string {
	lines := strings.Split(visible(strings.TrimSpace(text)), "\n")
	if t.detail == verbose {
		return lines
	}
	lines = collapse(lines, most)
	for i, l := range lines {
		lines[i] = clip(strings.TrimRight(l, " \r"), t.columns(4))
	}
	return lines
}

// verbs are what the API calls a write, as people say it.
var verbs = map[string]string{
	"create": "created", "update": "changed", "patch": "changed", "delete": "deleted",
	"deletecollection": "deleted all",
}

// singular is what one of a resource is called, networkpolicy for networkpolicies.
func singular(resource string) string {
	if stem, ok := strings.CutSuffix(resource, "ies"); ok {
		return stem + "y"
	}
	if stem, ok := strings.CutSuffix(resource, "sses"); ok {
		return stem + "ss"
	}
	return strings.TrimSuffix(resource, "s")
}

// write tells of a change that the agent made.
func (t *transcript) write(e guard.Entry) {
	verb := verbs[e.Verb]
	if verb == "" || e.DryRun || e.Status >= 400 {
		return
	}
	what := strings.TrimSpace(verb + " " + singular(e.Resource) + " " + e.Name)
	if e.Verb == "deletecollection" {
		what = verb + " " + e.Resource
	}
	if e.Subresource != "" && e.Subresource != "status" {
		what += " (" + e.Subresource + ")"
	}
	for _, w := range t.writes {
		if w == what {
			return
		}
	}
	t.writes = append(t.writes, what)
}

// look tells of the first look at the healthy system, and of those after the agent is done as they
// change.
func (t *transcript) look(kind string, l grade.Look) {
	sli := l.Load.Total
	if kind == record.BaselineEvent {
		t.base = l
		t.line("healthy: %.0f requests/s, %.1f %% succeed, p95 %v", sli.Rate, 100*sli.Success,
			sli.P95.Round(time.Millisecond))
		return
	}
	if t.looks++; t.looks == 1 && t.detail != quiet {
		fmt.Fprintln(t.w)
	}
	if c := grade.Complaints(t.base, l); len(c) > 0 {
		t.line("%s", t.paint(yellow, clip(strings.Join(c, "; "), t.columns(10))))
		return
	}
	t.line("well: %.0f requests/s, %.1f %% succeed, p95 %v", sli.Rate, 100*sli.Success, sli.P95.Round(time.Millisecond))
}
