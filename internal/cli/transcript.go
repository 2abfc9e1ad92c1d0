package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/llm"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// shownLines and shownWidth are how much of a response or an observation a transcript shows; the
// record has all of it.
const (
	shownLines = 9
	shownWidth = 160
)

// transcript tells of a run as it goes on.
type transcript struct {
	w      io.Writer
	colour bool
	blind  bool // who works on the problem may read it: no word of what is wrong
	start  time.Time
	looks  int
	base   grade.Look
}

func newTranscript(w io.Writer, colour bool) *transcript {
	return &transcript{w: w, colour: colour, start: time.Now()}
}

const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// paint colours a text on a terminal.
func (t *transcript) paint(code, text string) string {
	if !t.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (t *transcript) line(format string, args ...any) {
	fmt.Fprintf(t.w, "%s  %s\n", t.paint(dim, fmt.Sprintf("%6.1f s", time.Since(t.start).Seconds())), fmt.Sprintf(format, args...))
}

func (t *transcript) begin(p *problem.Problem, a agent.Entry) {
	fmt.Fprintf(t.w, "%s  %s by %s\n", t.paint(bold, p.ID), p.Task, a.Name)
	t.progress("starting a cluster")
}

func (t *transcript) progress(step string) { t.line("%s", step) }

// event tells of an event of the record.
func (t *transcript) event(kind string, data any) {
	switch d := data.(type) {
	case record.Phase:
		t.phase(d.Name)
	case record.Fault:
		if t.blind { // That there is a fault says much.
			return
		}
		t.line("%s", t.paint(yellow, fmt.Sprintf("%s in %s shows: %s", d.Kind, d.Target, d.Symptom)))
	case record.Step:
		t.step(d)
	case record.Output:
		t.line("%s\n%s", map[string]string{record.LogEvent: "the agent logs", record.StderrEvent: "the agent's standard error"}[kind], t.paint(dim, indent(shorten(d.Text))))
	case llm.Attempt:
		t.line("%s", t.paint(yellow, fmt.Sprintf("the model %s is asked again in %.1f s: %s", d.Model, d.Seconds, d.Error)))
	case record.Submission:
		if !d.Submitted {
			t.line("%s", t.paint(red, "no submission: "+d.Reason))
		}
	case grade.Look:
		t.look(kind, d)
	}
}

func (t *transcript) phase(name string) {
	switch name {
	case "injecting":
		t.line("injecting what is to be found")
	case "agent":
		t.line("the agent's turn")
	default:
		t.line("%s", name)
	}
}

func (t *transcript) step(s record.Step) {
	fmt.Fprintf(t.w, "\n%s\n%s\n", t.paint(bold, fmt.Sprintf("step %d", s.Number)), t.paint(cyan, indent(shorten(unfence(s.Response)))))
	fmt.Fprintf(t.w, "%s\n", t.paint(dim, indent(shorten(s.Observation))))
}

// look tells of the first look at the healthy system, and of those after the agent is done as they
// change.
func (t *transcript) look(kind string, l grade.Look) {
	sli := l.Load.Total
	if kind == record.BaselineEvent {
		t.base = l
		t.line("healthy: %.0f requests/s, %.1f %% succeed, p95 %v", sli.Rate, 100*sli.Success, sli.P95.Round(time.Millisecond))
		return
	}
	if t.looks++; t.looks == 1 {
		fmt.Fprintln(t.w)
	}
	if c := grade.Complaints(t.base, l); len(c) > 0 {
		t.line("%s", t.paint(yellow, strings.Join(c, "; ")))
		return
	}
	t.line("well: %.0f requests/s, %.1f %% succeed, p95 %v", sli.Rate, 100*sli.Success, sli.P95.Round(time.Millisecond))
}

// end tells the verdict.
func (t *transcript) end(o *session.Outcome) {
	v := o.Verdict
	word, code := "SOLVED", green
	switch v.Class {
	case session.Solved:
	case session.AgentFailed:
		word, code = "NOT SOLVED", red
	default:
		word, code = strings.ToUpper(string(v.Class)), yellow
	}
	fmt.Fprintf(t.w, "\n%s  %s\n", t.paint(bold+";"+code, word), v.Why)
	for _, key := range []string{"TTD", "TTL", "TTA", "TTM"} {
		if took, ok := v.Results[key].(float64); ok {
			fmt.Fprintf(t.w, "  %s %.1f s, %v steps, %v tokens read, %v written, %v writes to the API\n", key, took,
				v.Results["steps"], v.Results["in_tokens"], v.Results["out_tokens"], v.Results["writes"])
		}
	}
	if line := modelLine(v.Results); line != "" {
		fmt.Fprintf(t.w, "  %s\n", line)
	}
	fmt.Fprintf(t.w, "  record   %s\n  session  %s\n", o.Record, o.Session)
}

// modelLine tells what the agent's model took, or nothing.
func modelLine(res grade.Result) string {
	if res["model"] == nil {
		return ""
	}
	cost := "cost unknown"
	if c, ok := res["cost_usd"].(float64); ok {
		cost = fmt.Sprintf("$%.4f", c)
	}
	count := ""
	if res["model_tokens"] != nil {
		count = fmt.Sprintf(" (%v)", res["model_tokens"])
	}
	return fmt.Sprintf("model %v: %v requests, %v tokens in, %v out%s, %s", res["model"], res["model_calls"], res["model_in_tokens"], res["model_out_tokens"], count, cost)
}

// unfence leaves out of a response what only marks the call in it: fences, "Action:", blank lines.
func unfence(response string) string {
	var lines []string
	for _, l := range strings.Split(response, "\n") {
		if t := strings.TrimSpace(l); t != "" && t != "Action:" && !strings.HasPrefix(t, "```") {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "\n")
}

// shorten keeps the first and the last lines of a long text.
func shorten(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, l := range lines {
		if r := []rune(l); len(r) > shownWidth {
			lines[i] = string(r[:shownWidth]) + " ..."
		}
	}
	if len(lines) <= shownLines {
		return strings.Join(lines, "\n")
	}
	head, tail := lines[:shownLines-4], lines[len(lines)-3:]
	return strings.Join(head, "\n") + fmt.Sprintf("\n... %d more lines ...\n", len(lines)-len(head)-len(tail)) + strings.Join(tail, "\n")
}
