package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/record/index"
	"github.com/aiopslab/aiopslab/session"
)

// shownWrites is how many changes the end of a transcript names.
const shownWrites = 6

// sparkWidth is how wide the curve of severity is in it.
const sparkWidth = 30

// end tells the verdict: how it came out and why, what was wrong, what was done, and where to look.
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
	fmt.Fprintf(t.w, "\n%s  %s\n", t.paint(bold+";"+code, word), visible(v.Why))
	row := func(name, format string, args ...any) {
		lines := wrap(visible(fmt.Sprintf(format, args...)), t.columns(11))
		fmt.Fprintf(t.w, "  %-8s %s\n", name, lines[0])
		t.block("           ", "", lines[1:])
	}
	if score := grade.ReadShift(v.Results); score != nil {
		t.endShift(score, row)
		t.answer = nil // Pages were answered all along.
	} else if v.Class != index.Unfinished { // What is wrong is told when the agent is done.
		row("wrong", "%s", t.wrong())
	}
	row("done", "%s", t.done(v.Results))
	var times []string
	took := v.Results.Times()
	inTime := func(a, b string) int { return cmp.Compare(took[a], took[b]) }
	for _, key := range slices.SortedFunc(maps.Keys(took), inTime) {
		times = append(times, fmt.Sprintf("%s %.1f s", key, took[key]))
	}
	if len(times) > 0 {
		row("took", "%s, %s, %v tokens read, %v written", strings.Join(times, ", "),
			counted(v.Results["steps"], "step"), v.Results["in_tokens"], v.Results["out_tokens"])
	}
	if line := modelLine(v.Results); line != "" {
		row("model", "%s", line)
	}
	if s := grade.ReadSafety(v.Results); s != nil {
		row("safety", "%s", s.Text(sparkWidth))
	}
	if line := groupLine(v.Results); line != "" {
		row("group", "%s", line)
	}
	if gap, ok := v.Results["unconfined"].(string); ok {
		row("agent", "its program was %s", gap)
	}
	row("record", "%s", o.Record)
	if o.Session != "" {
		row("session", "%s", o.Session)
	}
	if name := cmp.Or(t.name, o.Problem); name != "" && !t.offline {
		row("more", "aiopslab describe %s", name)
	}
}

// whatIn names a fault and what it is in, if that is not the whole application.
func whatIn(f record.Fault) string {
	if f.Target == "" {
		return f.Kind
	}
	return f.Kind + " in " + f.Target
}

// wrong says what was the matter.
func (t *transcript) wrong() string {
	if len(t.faults) == 0 {
		return "nothing"
	}
	var list []string
	for _, f := range t.faults {
		list = append(list, whatIn(f)+": "+f.Symptom)
	}
	return strings.Join(list, "; ")
}

// done says what the agent did: its answer, and what it changed.
func (t *transcript) done(res grade.Result) string {
	var list []string
	for _, answer := range append(t.answers, string(t.answer)) {
		if answer != "" && answer != "null" {
			list = append(list, "answered "+answer)
		}
	}
	list = append(list, t.writes[:min(len(t.writes), shownWrites)]...)
	if more := len(t.writes) - shownWrites; more > 0 {
		list = append(list, fmt.Sprintf("%d more %s", more, plural(more, "change")))
	}
	if len(list) == 0 {
		return "nothing was answered or changed, in " + counted(res["steps"], "step")
	}
	return strings.Join(list, "; ")
}

// counted is a number of a result with what it counts, as in "1 step" and "2 steps".
func counted(n any, word string) string {
	if text := fmt.Sprint(n); text != "1" {
		return text + " " + word + "s"
	}
	return "1 " + word
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
	return fmt.Sprintf("%v: %s, %v tokens in, %v out%s, %s",
		res["model"], counted(res["model_calls"], "request"), res["model_in_tokens"], res["model_out_tokens"], count,
		cost)
}

// groupLine tells how a group worked, or nothing.
func groupLine(res grade.Result) string {
	if res["messages"] == nil {
		return ""
	}
	line := fmt.Sprintf("%s, %s, %s", counted(res["members"], "member"), counted(res["rounds"], "round"),
		counted(res["messages"], "message"))
	if a, ok := res["assignment_accuracy"].(float64); ok {
		line += fmt.Sprintf(", %.0f %% of the rounds with a task for who could find the fault", 100*a)
	}
	return line
}
