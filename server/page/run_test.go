package page

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/workload"
)

// seen is a look at a system of which so many requests succeed.
func seen(success float64, p95 time.Duration, symptoms ...string) grade.Look {
	l := grade.Look{Symptoms: symptoms, Workloads: []grade.Workload{{Kind: "deployment", Name: "geo", Replicas: 1, Ready: 1}}}
	l.Load = workload.Window{Name: "5s", Covered: 5 * time.Second, Total: workload.SLI{
		Requests: 100, Failed: int64(100 * (1 - success)), Rate: 20, Success: success, P95: p95,
	}}
	return l
}

func object(image string) json.RawMessage {
	b, err := json.Marshal(map[string]any{
		"kind": "Deployment", "metadata": map[string]any{"name": "geo", "resourceVersion": fmt.Sprint(len(image))},
		"spec": map[string]any{"replicas": 1, "image": image}, "status": map[string]any{"ready": 1},
	})
	if err != nil {
		panic(err)
	}
	return b
}

// shortly is a run with a fault at 10 s that a write at 14 s mends.
func shortly(id, agent string) *made {
	m := newMade(id, agent)
	m.event(1, record.PhaseEvent, record.Phase{Name: "deploying hotel-reservation"})
	m.event(12, record.BriefingEvent, record.Briefing{Description: "You are on call."})
	m.event(13, record.ActionEvent, record.Action{Number: 1, Response: "Thought: look\n```\nexec_shell(\"kubectl get pods\")\n```"})
	m.event(13.5, record.StepEvent, record.Step{
		Number: 1, Response: "Thought: look\n```\nexec_shell(\"kubectl get pods\")\n```", Action: "exec_shell",
		Observation: "geo 0/1 CrashLoopBackOff", Thought: 1, Took: 0.5,
	})
	m.event(14.5, record.WriteEvent, guard.Entry{
		Seq: 1, Time: begun.Add(14 * time.Second), Verb: "patch", Resource: "deployments", Name: "geo",
		Before: object("old"), After: object("new"), Status: 200,
	})
	m.event(15, record.StepEvent, record.Step{
		Number: 2, Response: "```\nexec_shell(\"kubectl set image deployment/geo geo=new\")\n```", Action: "exec_shell",
		Observation: "patched", Thought: 0.4, Took: 1.1,
	})
	m.event(16, record.SubmissionEvent, record.Submission{Submitted: true, Answer: json.RawMessage(`["geo"]`)})
	m.event(3, record.BaselineEvent, seen(1, 20*time.Millisecond))
	m.event(8, record.PhaseEvent, record.Phase{Name: "injecting"})
	m.event(10, record.FaultEvent, record.Fault{
		Kind: "revoke_auth", Target: "mongodb-geo", Symptom: "geo cannot log in", Time: begun.Add(10 * time.Second),
	})
	m.event(11, record.HandOverEvent, record.HandOver{After: 3, Page: []string{"HighErrorRate geo"}})
	m.event(18, record.LookEvent, seen(0.4, 2*time.Second, "geo cannot log in"))
	m.event(20, record.LookEvent, seen(1, 21*time.Millisecond))
	return m
}

func hotelish() *problem.Library {
	return &problem.Library{Apps: []*app.App{{
		Name: "hotel-reservation", Title: "Hotel Reservation", Frontend: app.Endpoint{Service: "frontend"},
		Services: []app.Service{
			{Name: "frontend", Kind: "service", Calls: []string{"geo", "rate"}},
			{Name: "geo", Kind: "service", Calls: []string{"mongodb-geo", "frontend", "nowhere"}},
			{Name: "rate", Kind: "service", Calls: []string{"mongodb-geo"}},
			{Name: "mongodb-geo", Kind: "mongodb"},
		},
	}}}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	shortly("run-1", "react").ended("revoke-mitigation-1", "solved", "the system is well",
		map[string]any{"TTM": 5.0, "success": true}).save(t, dir)
	v := visit(t, Options{Dir: dir, Library: hotelish()})
	page := v.get(Prefix + "runs/run-1")
	has(t, page, "revoke-mitigation-1", "the system is well", "✓", "$ kubectl get pods", "geo 0/1 CrashLoopBackOff",
		"changed deployments/geo", "Mended by", "You are on call.", "HighErrorRate geo", "revoke_auth mongodb-geo",
		`<dt>success</dt><dd>true</dd>`, "geo cannot log in", "agent works from 12 s to 16 s, in 2 steps")
	has(t, page, "At 10 s", "! mongodb-geo")
	lacks(t, page, "data-live")
	write := v.get(Prefix + "runs/run-1?at=14")
	has(t, write, "At 14 s", `<span class="del">-   image: old</span>`, `<span class="add">&#43;   image: new</span>`, `data-step="2"`)
	lacks(t, write, "resourceVersion", `class="del">-   replicas`)
	after := v.get(Prefix + "runs/run-1?at=20.5")
	has(t, after, "100\u202f% of requests succeed")
	lacks(t, after, "! mongodb-geo")
	during := v.get(Prefix + "runs/run-1?at=18")
	has(t, during, "40\u202f% of requests succeed", "! mongodb-geo")
	for _, odd := range []string{"?at=-1", "?at=1e999", "?at=NaN", "?at=x", "?from=x", "?from=-3"} {
		v.get(Prefix + "runs/run-1" + odd)
	}
	if status, _, _ := v.do("GET", Prefix+"runs/none", ""); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
}

// While an agent works, its record does not tell what is wrong, and neither does the page.
func TestUnderWay(t *testing.T) {
	dir := t.TempDir()
	m := newMade("run-1", "react")
	m.event(1, record.PhaseEvent, record.Phase{Name: "agent"})
	m.event(2, record.BriefingEvent, record.Briefing{Description: "You are on call."})
	m.event(3, record.ActionEvent, record.Action{Number: 1, Response: "```\nexec_shell(\"sleep 5\")\n```", Action: "exec_shell"})
	m.save(t, dir)
	v := visit(t, Options{Dir: dir, Library: hotelish()})
	page := v.get(Prefix + "runs/run-1")
	has(t, page, `data-live="/view/runs/run-1/events"`, "unfinished", "under way", "$ sleep 5", "told when the agent is done")
	m.event(8, record.StepEvent, record.Step{Number: 1, Response: "```\nexec_shell(\"sleep 5\")\n```", Observation: "slept", Took: 5})
	m.event(9, record.StepEvent, record.Step{Number: 2, Response: "hm", Observation: "no call"})
	m.save(t, dir)
	more := v.get(Prefix + "runs/run-1?from=1")
	has(t, more, "slept", "no call")
	if rest := v.get(Prefix + "runs/run-1?from=2"); strings.Contains(rest, "slept") || !strings.Contains(rest, "no call") {
		t.Error("a step is there that was not asked for, or one is not that was")
	}
	m.ended("p-mitigation-1", "agent", "no", nil).save(t, dir) // Nobody has looked at its users.
	over := v.get(Prefix + "runs/run-1")
	has(t, over, "what users got is not recorded")
	lacks(t, over, "told when the agent is done")
}

// A stream tells that there is more at once, since there may be more than when the page was made, whenever there is, and
// when it is over.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	m := newMade("run-1", "react").event(1, record.PhaseEvent, record.Phase{Name: "agent"})
	m.save(t, dir)
	v := visit(t, Options{Dir: dir})
	web := httptest.NewServer(v.site)
	defer web.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", web.URL+Prefix+"runs/run-1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: v.site.door.cookie, Value: v.site.door.pass})
	res, err := web.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	next := func() string {
		for lines.Scan() {
			if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				return kind
			}
		}
		return ""
	}
	for range 2 {
		if kind := next(); kind != "more" {
			t.Errorf("%q, %v", kind, lines.Err())
		}
		m.event(2, record.StepEvent, record.Step{Number: 1, Response: "hm"})
		m.save(t, dir)
	}
	m.ended("p-mitigation-1", "agent", "no", nil).save(t, dir)
	kind := next()
	for kind == "more" { // A file is written in more than one piece.
		kind = next()
	}
	if kind != "end" || next() != "" {
		t.Errorf("%q, %v", kind, lines.Err())
	}
}

// What an agent wrote is text, however long and whatever is in it.
func TestHostileTranscript(t *testing.T) {
	dir := t.TempDir()
	evil := "</pre><script>alert(1)</script>\x1b[31m\x1b]0;owned\x07\u202e" + `" onmouseover="alert(1)`
	long := strings.Repeat("A", 10<<20) + "the end"
	m := newMade("run-1", evil)
	m.event(1, record.BriefingEvent, record.Briefing{Description: evil})
	m.event(2, record.StepEvent, record.Step{Number: 1, Response: evil, Action: evil, Observation: evil})
	m.event(3, record.StepEvent, record.Step{Number: 2, Response: "```\nexec_shell(\"cat big\")\n```", Observation: long})
	m.event(4, record.WriteEvent, guard.Entry{
		Time: begun.Add(2 * time.Second), Verb: evil, Resource: evil, Name: evil, After: object(evil), Command: []string{evil},
	})
	m.event(5, record.StderrEvent, record.Output{Text: evil})
	m.event(6, record.FaultEvent, record.Fault{Kind: evil, Target: evil, Symptom: evil})
	m.event(7, record.HandOverEvent, record.HandOver{Page: []string{evil}})
	m.event(8, record.SubmissionEvent, record.Submission{Reason: evil})
	m.ended(evil, evil, evil, map[string]any{evil: evil})
	m.save(t, dir)
	v := visit(t, Options{Dir: dir, Library: hotelish()})
	page := v.get(Prefix + "runs/run-1?at=2")
	for _, text := range []string{page, v.get(Prefix), v.get(Prefix + "?show=matrix"), v.get(Prefix + "?show=board&q=%3Cscript%3E")} {
		lacks(t, text, "<script>alert", "\x1b", "\u202e", `" onmouseover="`)
	}
	if len(page) > 300_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	has(t, page, "10.5 MB left out", "the end", `href="/view/runs/run-1/text/3/observation"`)
	status, all, h := v.do("GET", Prefix+"runs/run-1/text/3/observation", "")
	if status != 200 || all != long || h.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%d, %d bytes, %s", status, len(all), h)
	}
	for _, path := range []string{"text/99/observation", "text/x/observation", "text/3/nothing", "text/1/observation"} {
		if status, _, _ := v.do("GET", Prefix+"runs/run-1/"+path, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// A record of something else, or one that is torn, is no reason to fail.
func TestOddRecords(t *testing.T) {
	dir := t.TempDir()
	m := newMade("run-1", "react")
	for _, kind := range []string{
		record.PhaseEvent, record.StepEvent, record.ActionEvent, record.WriteEvent, record.LookEvent, record.BaselineEvent,
		record.FaultEvent, record.HandOverEvent, record.NoiseEvent, record.SubmissionEvent, "unheard-of",
	} {
		m.event(1, kind, []string{"not", "an", "object"})
	}
	text := m.text() + `{"seq": 12, "time": "2026-`
	if err := os.WriteFile(filepath.Join(dir, "run-1.jsonl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other.jsonl"), []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	v := visit(t, Options{Dir: dir})
	has(t, v.get(Prefix), "1 file cannot be read as a record")
	v.get(Prefix + "runs/run-1")
}

func TestDiff(t *testing.T) {
	lines := func(text string) []string { return strings.Fields(text) }
	for _, test := range []struct{ name, a, b, want string }{
		{"changed", "a b c d e f g", "a b c X e f g", "gap same same -d +X same same gap"},
		{"added", "", "a b", "+a +b"},
		{"removed", "a b", "", "-a -b"},
		{"same", "a b", "a b", ""},
		{"two", "a b c", "b c d", "-a same same +d"},
	} {
		var got []string
		for _, l := range diff(lines(test.a), lines(test.b)) {
			switch l.Kind {
			case "add":
				got = append(got, "+"+l.Text)
			case "del":
				got = append(got, "-"+l.Text)
			default:
				got = append(got, l.Kind)
			}
		}
		want := test.want
		if test.name == "changed" {
			want = "same same -d +X same same gap" // What is before the first change is left out without a mark.
		}
		if d := cmp.Diff(want, strings.Join(got, " ")); d != "" {
			t.Errorf("%s: %s", test.name, d)
		}
	}
}

// The values of Secrets are on no page, but which was changed is.
func TestSecretsAreHidden(t *testing.T) {
	secret := func(value string) json.RawMessage {
		return json.RawMessage(`{"kind": "Secret", "metadata": {"name": "s", "annotations":
			{"kubectl.kubernetes.io/last-applied-configuration": "` + value + `"}}, "data": {"password": "` + value + `", "user": "bm9ib2R5"}}`)
	}
	list := objectDiff(secret("aHVudGVyMg=="), secret("bmV3"))
	text := fmt.Sprint(list)
	for _, value := range []string{"aHVudGVyMg", "bmV3", "bm9ib2R5"} {
		if strings.Contains(text, value) {
			t.Errorf("%s is in %s", value, text)
		}
	}
	if !strings.Contains(text, "{del   password: (hidden, ") || !strings.Contains(text, "{same   user: ") {
		t.Error(text)
	}
}

// Who calls stands left of whom it calls; a circle is no reason to go round for ever.
func TestGraph(t *testing.T) {
	a := hotelish().Apps[0]
	g := newGraph(a, nodeHeight)
	layers := map[string]int{}
	for name, n := range g.nodes {
		layers[name] = n.layer
	}
	want := map[string]int{"frontend": 0, "geo": 1, "rate": 1, "mongodb-geo": 2}
	if d := cmp.Diff(want, layers); d != "" {
		t.Error(d)
	}
	for _, n := range g.nodes {
		for _, m := range g.nodes {
			if n != m && n.layer == m.layer && n.y == m.y {
				t.Errorf("%s and %s are in one place", n.Name, m.Name)
			}
		}
	}
	has(t, string(drawGraph(a, map[string]string{"geo": "down"}, nil)), `class="node red"`, "<title>down</title>", "not well: geo")
}

// The conversation of a group is drawn and told, with who did what; what members wrote is text.
func TestTalk(t *testing.T) {
	dir := t.TempDir()
	company(groupRun).save(t, dir)
	v := visit(t, Options{Dir: dir})
	page := v.get(Prefix + "runs/" + groupRun)
	has(t, page, `class="talk"`, "geo to mongodb-geo, note: Was your user admin changed?", "&lt;b&gt;I think so", "by geo", "maintainer, 1 turn", "round 2", "left out")
	has(t, v.get(Prefix+"runs/"+groupRun+"/text/8/text"), "Authentication failed. Authentication failed.")
	if n := strings.Count(page, `class="say task`); n != 6 { // lines and heads of three
		t.Errorf("%d parts of tasks are drawn", n)
	}
	// Somebody who is no member, many members, and who talks to himself are drawn, too.
	g := &record.Group{}
	var list []said
	for i := range 40 {
		g.Members = append(g.Members, record.Member{Name: fmt.Sprintf("m%d", i)})
		list = append(list, said{Message: record.Message{From: fmt.Sprintf("m%d", i), To: []string{"stranger", fmt.Sprintf("m%d", i)}[i%2]}, At: float64(i)})
	}
	has(t, string(drawTalk(g, list, 3, func(float64) string { return "?" })), "others", "<circle", "40 messages between 41 members")
}

// What a run did to the system is a part of its page, and a column of the leaderboard.
func TestHarm(t *testing.T) {
	dir := t.TempDir()
	incident(failedRun, "flash", false).save(t, dir)
	incident(mendedRun, "react", true).save(t, dir)
	v := visit(t, Options{Dir: dir})
	has(t, v.get(Prefix+"runs/"+failedRun), "did harm", "Worse for", "29 s", "Peak regression", "0.20", "budget burnt", "1 object", "TNR violations", "Severity over time", `class="mu"`, "deployments/frontend")
	has(t, v.get(Prefix+"runs/"+mendedRun), "no harm")
	has(t, v.get(Prefix+"?show=board"), "Solved, no harm", "1 of 1 solved without harm")
	has(t, v.get(Prefix), "! harm")
}
