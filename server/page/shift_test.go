package page

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/record/index"
)

// A run that was a shift shows its score, what it is made of, the incidents and the pages.
func TestShift(t *testing.T) {
	dir := t.TempDir()
	night(shiftRun, "react", 64).save(t, dir)
	v := visit(t, Options{Dir: dir, Library: hotelish()})
	page := v.get(Prefix + "runs/" + shiftRun)
	has(t, page, "<dt>Score</dt><dd>64.0</dd>", "<dd>0.83 min</dd>", "<dd>1 of 2</dd>", "<dd>1 of 3</dd>",
		"score 64.0 of 100", "they stood open for 0.8 of 10.6 minutes", "2 needless writes: nodes/node-3",
		`<a href="/view/problems/wrong_bin_usage-mitigation-1">`, `✗ open`,
		`<a href="?at=75.00">75 s</a>`, // the first page was answered
		`<a href="?at=80.00">80 s</a></td><td class="num">30 s</td>`,
		"HighRequestErrorRate", "HighRequestLatency", // more of the same page
		"<td>incident 1 (profile)</td>", "nothing: a false alarm", "<td>profile</td>",
		"incident 2 (geo) shows: geo cannot reach its store", "incident 1 (profile) is mended",
		"the agent answers page 1, at fault: profile", "4 calls of the pager")
	lacks(t, page, "<dt>shift</dt>")
	if n := strings.Count(page, `<rect class="fault"`); n != 2 {
		t.Errorf("%d stretches are drawn", n)
	}
	lacks(t, v.get(Prefix+"runs/"+shiftRun+"?at=41"), "<b>profile</b>")
	during := v.get(Prefix + "runs/" + shiftRun + "?at=60")
	has(t, during, "<b>profile</b>: 0 of 1 pods of profile are ready")
	lacks(t, during, "! geo")
	has(t, v.get(Prefix+"runs/"+shiftRun+"?at=300"), "! geo")
	has(t, v.get(Prefix), `title="users lost 0.83 min, 1 of 2 mended, 1 of 3 pages answered rightly">64.0</span>`)
}

// While the agent is on call, the page has what the pager said and what was answered, and not what it was about.
func TestShiftUnderWay(t *testing.T) {
	dir := t.TempDir()
	m := newMade("run-1", "react")
	m.event(1, record.PhaseEvent, record.Phase{Name: "agent"})
	m.event(2, record.PageEvent, record.Page{Number: 1, Time: begun.Add(2 * time.Second), Lines: []string{"users complain"}})
	m.save(t, dir)
	v := visit(t, Options{Dir: dir, Library: hotelish()})
	page := v.get(Prefix + "runs/run-1")
	has(t, page, "Calls of the pager", "users complain")
	lacks(t, page, "About", "false alarm", "Incidents", "score")
	lacks(t, v.get(Prefix), "On call", "Score")
}

// Those on call are ranked by the mean of their scores; what is no shift, or says nothing, has no part in it.
func TestOnCall(t *testing.T) {
	dir := t.TempDir()
	night("run-1", "runbook", 80).save(t, dir)
	night("run-2", "runbook", 10).save(t, dir)
	night("run-3", "react", 64).save(t, dir)
	spoilt := night("run-4", "react", 99)
	spoilt.lines[len(spoilt.lines)-1] = strings.Replace(spoilt.lines[len(spoilt.lines)-1], `"solved"`, `"infra"`, 1)
	spoilt.save(t, dir)
	simple(t, dir, "run-5", "flash", "", "revoke-mitigation-1", "solved", 10)
	v := visit(t, Options{Dir: dir})
	page := v.get(Prefix + "?show=oncall")
	has(t, page, "<b>45.0</b>", "10.0–80.0", "2 shifts: 45.0 on average, from 10.0 to 80.0", "1/2", "2 of 4", "2 of 6",
		"1 of 2 without harm", "$0.50", `href="/view/?agent=runbook&amp;task=shift"`)
	lacks(t, page, ">flash</a>", "99.0")
	if strings.Index(page, ">react</a>") > strings.Index(page, ">runbook</a>") {
		t.Error("the best is not the first")
	}
	has(t, v.get(Prefix+"?show=oncall&agent=flash"), "No shift is like that")
	var order []string
	for _, part := range strings.Split(v.get(Prefix+"?sort=-score"), `href="`+Prefix+"runs/run-")[1:] {
		order = append(order, part[:1])
	}
	if got := strings.Join(order, " "); got != "4 1 3 2 5" {
		t.Errorf("by score: %s", got)
	}
}

// A record of a shift that says what it should not is shown as far as it makes sense.
func TestShiftHostile(t *testing.T) {
	dir := t.TempDir()
	evil := `</pre><script>alert(1)</script>` + "\x1b[31m" + `" onmouseover="alert(1)`
	m := newMade("run-1", "react")
	for _, kind := range []string{record.ShiftEvent, record.IncidentEvent, record.PageEvent, record.AnswerEvent, record.ShiftEndEvent} {
		m.event(1, kind, []string{"not", "an", "object"})
	}
	m.event(1, record.ShiftEvent, record.Shift{Planned: []record.Planned{{Number: 1, Problem: evil, Components: []string{evil}}}})
	for range 3 {
		m.event(2, record.IncidentEvent, record.Incident{Number: 1, Became: record.IncidentMended, What: evil})
		m.event(3, record.IncidentEvent, record.Incident{Number: 1, Became: record.IncidentShown, What: evil})
	}
	m.event(4, record.IncidentEvent, record.Incident{Number: -7, Became: evil, What: evil})
	m.event(5, record.AnswerEvent, record.Answer{Question: "page", Answer: json.RawMessage(`{"pages":[9],"services":[` + quoted(evil) + `]}`)})
	for i := range 3 * shownCalls {
		m.event(6, record.PageEvent, record.Page{Number: i, Lines: []string{evil, strings.Repeat("A", 10_000)}})
		m.event(6, record.PageEvent, record.Page{Number: i, More: true, Lines: make([]string, 1000)})
	}
	m.ended("shift-"+evil, "solved", evil, map[string]any{"shift": map[string]any{
		"score": 1e300, "pages": 1e9, "needless": []string{evil}, "each": []any{map[string]any{"number": 1, "problem": evil, "mended": true}},
	}}).save(t, dir)
	odd := newMade("run-2", "react").ended("shift-1", "solved", "", map[string]any{"shift": map[string]any{"score": -5}})
	odd.save(t, dir)
	v := visit(t, Options{Dir: dir, Library: hotelish()})
	page := v.get(Prefix + "runs/run-1?at=3")
	for _, text := range []string{page, v.get(Prefix), v.get(Prefix + "?show=oncall")} {
		lacks(t, text, "<script>alert", "\x1b", `" onmouseover="`)
	}
	has(t, page, "later pages are in the table of events")
	if len(page) > 3_000_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	v.get(Prefix + "runs/run-2")
}

// A page is about what stood open at any of its calls, and more of one that is left out is no more of another.
func TestMoreOfAPage(t *testing.T) {
	s := &story{Done: true, onCall: &onCall{
		Planned: []record.Planned{
			{Number: 1, Components: []string{"geo"}}, {Number: 2, Components: []string{"rate"}},
		},
		Stretches: []stretch{{Number: 1, From: 40, To: 100}, {Number: 2, From: 60, To: 100}},
	}}
	say := func(number int, at float64, more bool, line string) {
		s.onCall.Calls = append(s.onCall.Calls, call{At: at, Page: record.Page{Number: number, More: more, Lines: []string{line}}})
	}
	say(1, 20, false, "users complain")
	say(1, 45, true, "geo is down")
	say(1, 50, true, "geo is still down")
	say(1, 65, true, "rate, too")
	say(2, 200, false, "users complain again")
	p := s.panel()
	if len(p.Pages) != 2 || p.Pages[0].About() != "incident 1 (geo); incident 2 (rate)" || p.Pages[1].About() != "nothing: a false alarm" {
		t.Fatalf("%+v", p.Pages)
	}
	for i := range shownCalls {
		say(3+i, 300, false, "")
	}
	say(2+shownCalls, 301, true, "more of what is left out")
	if p = s.panel(); p.Left != 2 || len(p.Pages[shownCalls-1].Lines) != 1 {
		t.Errorf("%d left out, the last one shown says %q", p.Left, p.Pages[shownCalls-1].Lines)
	}
}

// A shift that was cut short has no score, and still is one of those that say nothing about the agent.
func TestSpoiltShifts(t *testing.T) {
	run := func(class string, score bool) *index.Run {
		r := &index.Run{Agent: "react", Task: "shift", Class: class}
		if score {
			r.Shift = &index.Shift{}
		}
		return r
	}
	got := rotaOf([]*index.Run{run("solved", true), run("infra", false), run("infra", true), run("grader", false)}, filter{Values: url.Values{}})
	if len(got.Rows) != 1 || got.Rows[0].Spoilt != 3 {
		t.Errorf("%+v", got.Rows)
	}
}
