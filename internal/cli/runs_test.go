package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/record/index"
)

func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2026-03-01": "2026-03-01T00:00:00Z", "2026-03-01T10:30": "2026-03-01T10:30:00Z",
		"2026-03-01T10:30:00+01:00": "2026-03-01T09:30:00Z", "90m": "2026-03-10T10:30:00Z", "7d": "2026-03-03T12:00:00Z",
	} {
		if got, err := parseMoment(text, now); err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"yesterday", "-5m", "-1d", "10", "d"} {
		if got, err := parseMoment(text, now); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
	if got, err := parseMoment("", now); err != nil || !got.IsZero() {
		t.Errorf("nothing: %v, %v", got, err)
	}
}

// Each flag leaves out what is not asked for.
func TestRunsWanted(t *testing.T) {
	at := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	r := index.Run{
		Agent: "react", Model: "gpt-4o", Problem: "pod_kill-detection-1", App: "shop", Task: "detection", Class: "solved",
		Begun: at,
	}
	for _, f := range []runsFlags{
		{},
		{agents: []string{"x", "react"}},
		{agents: []string{"react (gpt-4o)"}},
		{model: "4o"},
		{problem: "kill"},
		{apps: []string{"shop"}},
		{tasks: []string{"detection"}},
		{classes: []string{"agent", "solved"}},
		{from: at},
		{to: at.Add(1)},
	} {
		if !f.wants(r) {
			t.Errorf("%+v leaves it out", f)
		}
	}
	for _, f := range []runsFlags{
		{agents: []string{"gpt-4o"}},
		{model: "mini"},
		{problem: "net"},
		{apps: []string{"sho"}},
		{tasks: []string{"analysis"}},
		{classes: []string{"agent"}},
		{from: at.Add(1)},
		{to: at},
		{agents: []string{"react"}, classes: []string{"infra"}},
	} {
		if f.wants(r) {
			t.Errorf("%+v takes it", f)
		}
	}
}

// hostileText is what an agent may write to take over a terminal: move the cursor, set the title, turn text around.
const hostileText = "a\x1b[2Jb\x1b]0;title\x07c\rd\u009b31me\u202ef\xffg"

// obeyed is what of a text a terminal would obey, but for ends of lines.
func obeyed(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r >= ' ' && r != '\u009b' && r != '\u202e' && r != '\x7f' {
			return -1
		}
		return r
	}, text)
}

func TestVisible(t *testing.T) {
	want := `a\x1b[2Jb\x1b]0;title\ac\rd\u009b31me\u202ef` + "\uFFFDg"
	if got := visible(hostileText); got != want {
		t.Errorf("%q", got)
	}
	for _, text := range []string{"", "plain\n\ttext", "größer 漢字 …", want} {
		if got := visible(text); got != text {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := visible("a\r\nb"); got != "a\nb" {
		t.Errorf("%q", got)
	}
}

// hostileRun is a run all of whose texts are hostile.
func hostileRun(t *testing.T) *oneRun {
	t.Helper()
	text := `a\u001b[2Jb\u001b]0;title\u0007c\rd\u009b31me\u202ef`
	lines := strings.ReplaceAll(`{"format":"aiopslab-run","version":3,"id":"1TEXT","agent":"TEXT","time":"2026-01-01T00:00:00Z"}
{"seq":1,"time":"2026-01-01T00:00:01Z","kind":"phase","data":{"name":"TEXT"}}
{"seq":2,"time":"2026-01-01T00:00:02Z","kind":"action","data":{"number":1,"response":"TEXT\n`+"```"+`\nexec_shell(\"ls TEXT\")\n`+"```"+`"}}
{"seq":3,"time":"2026-01-01T00:00:05Z","kind":"step","data":{"number":1,"response":"TEXT","action":"TEXT","observation":"TEXT","thought_seconds":1,"took_seconds":2}}
{"seq":4,"time":"2026-01-01T00:00:05Z","kind":"log","data":{"text":"TEXT"}}
{"seq":5,"time":"2026-01-01T00:00:05Z","kind":"write","data":{"verb":"patch","resource":"TEXT","name":"TEXT"}}
{"seq":6,"time":"2026-01-01T00:00:06Z","kind":"submission","data":{"submitted":false,"answer":"TEXT","reason":"TEXT"}}
{"seq":7,"time":"2026-01-01T00:00:00Z","kind":"problem","data":{"id":"TEXT","task":"TEXT","app":"TEXT"}}
{"seq":8,"time":"2026-01-01T00:00:01.5Z","kind":"baseline","data":{"load":{"total":{"rate":10,"success":1}},"workloads":[{"kind":"TEXT","name":"TEXT","replicas":1,"ready":1}]}}
{"seq":9,"time":"2026-01-01T00:00:01.7Z","kind":"fault","data":{"kind":"TEXT","target":"TEXT","symptom":"TEXT"}}
{"seq":10,"time":"2026-01-01T00:00:07Z","kind":"look","data":{"load":{"total":{"rate":10,"success":0.5}}}}
{"seq":11,"time":"2026-01-01T00:00:08Z","kind":"verdict","data":{"class":"TEXT","why":"TEXT","results":{"TTD":1,"steps":1,"model":"TEXT","unconfined":"TEXT"}}}
`, "TEXT", text)
	rec, err := record.Decode(strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	r, err := newOneRun(rec, "run.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What agents write does not reach the terminal as what it would obey.
func TestHostileTranscript(t *testing.T) {
	for name, tell := range map[string]func(*oneRun, *transcript){
		"replay": func(r *oneRun, tr *transcript) { _ = r.replay(t.Context(), tr, 0, nil) },
		"verbose": func(r *oneRun, tr *transcript) {
			tr.detail = verbose
			_ = r.replay(t.Context(), tr, 0, nil)
		},
		"show": func(r *oneRun, tr *transcript) { r.print(tr, r.shown()) },
		"runs": func(r *oneRun, tr *transcript) {
			_, _ = tr.w.Write([]byte(strings.ReplaceAll(runLine(r.Run), "\t", " ")))
		},
	} {
		var b strings.Builder
		tell(hostileRun(t), newTranscript(&b, screen{}))
		if got := obeyed(b.String()); got != "" || !strings.Contains(b.String(), `\x1b[2J`) {
			t.Errorf("%s: %q in\n%q", name, got, b.String())
		}
	}
}

// A replay has the pauses that there were, or as much shorter, and tells what was withheld at its time.
func TestReplay(t *testing.T) {
	var b strings.Builder
	var pauses []time.Duration
	after := func(d time.Duration) <-chan time.Time {
		pauses = append(pauses, d)
		c := make(chan time.Time, 1)
		c <- time.Time{}
		return c
	}
	if err := hostileRun(t).replay(t.Context(), newTranscript(&b, screen{}), 10, after); err != nil {
		t.Fatal(err)
	}
	ms := time.Millisecond
	if diff := cmp.Diff([]time.Duration{100 * ms, 50 * ms, 20 * ms, 30 * ms, 300 * ms, 100 * ms, 100 * ms}, pauses); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{"   1.5 s  healthy: 10 requests/s", "   1.7 s  ", "   2.0 s  step 1", "   7.0 s  "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Index(b.String(), " shows: ") > strings.Index(b.String(), "step 1") {
		t.Errorf("the fault is told late:\n%s", b.String())
	}
}

func TestShown(t *testing.T) {
	v := hostileRun(t).shown()
	if len(v.Phases) != 1 || v.Phases[0].At != 1 || v.Phases[0].Seconds != 7 {
		t.Errorf("%+v", v.Phases)
	}
	if len(v.Actions) != 1 || v.Actions[0].At != 5 || v.Actions[0].Took != 2 || v.Actions[0].Thought != 1 {
		t.Errorf("%+v", v.Actions)
	}
	if len(v.Users) != 2 || v.Users[0].When != "healthy" || len(v.Users[0].Complaints) > 0 || len(v.Users[1].Complaints) == 0 {
		t.Errorf("%+v", v.Users)
	}
}

func TestUserRows(t *testing.T) {
	looks := []shownLook{
		{At: 1, When: "healthy"},
		{At: 2, When: "after", Complaints: []string{"slow"}},
		{At: 3, When: "after", Complaints: []string{"slow"}},
		{At: 4, When: "after"},
		{At: 5, When: "after"},
		{At: 6, When: "after"},
	}
	var at []string
	for _, row := range userRows(&transcript{}, looks)[1:] {
		at = append(at, row[0])
	}
	if diff := cmp.Diff([]string{"1.0 s", "2.0 s", "4.0 s", "6.0 s"}, at); diff != "" {
		t.Error(diff)
	}
}
