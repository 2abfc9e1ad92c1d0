package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// staged is a run of an incident. Each letter is how a question ended: s solved, a failed, i not judged.
func staged(id int, faulty bool, ends string) *Run {
	r := &Run{Run: record.Run{ID: fmt.Sprint(id), Agent: "x", Problem: fmt.Sprint("p", id)}, Task: problem.Incident, Faulty: faulty, Class: session.Solved, Stages: map[problem.Task]RunStage{}}
	for i, end := range ends {
		class := map[rune]session.Class{'s': session.Solved, 'a': session.AgentFailed, 'i': session.Infra}[end]
		seconds := float64(10 * (i + 1))
		r.Stages[problem.Tasks[i]] = RunStage{class, &seconds}
		if class == session.AgentFailed || r.Class == session.Solved {
			r.Class = class
		}
	}
	return r
}

// What an agent does in one question is told by what it did in another: of those it found, how many it mended, and how
// many it mended without having found them. Healthy systems, which nobody can mend, are apart.
func TestIncidents(t *testing.T) {
	var b Builder
	for i, ends := range []string{"ssss", "ssss", "sssa", "sass", "aaaa", "sssi", "ssii", "sss"} {
		b.Add(staged(i, true, ends))
	}
	b.Add(staged(20, false, "ssss"))
	b.Add(staged(21, false, "asss"))
	// What was found out in a search is no agent's, also by questions.
	searched := staged(22, true, "ssss")
	searched.Class = session.Searched
	b.Add(searched)
	r := b.Report()
	if r.Counted != 8 || len(r.NotCounted) != 3 {
		t.Errorf("%d runs count, %d do not", r.Counted, len(r.NotCounted))
	}
	if len(r.Incidents) != 1 {
		t.Fatalf("%+v", r.Incidents)
	}
	i := r.Incidents[0]
	for _, tt := range []struct {
		name  string
		got   Share
		n, of int
	}{
		{"all right", i.Solved, 3, 6},
		{"healthy", i.Healthy, 1, 2},
		{"detected", i.Stages[0].Right, 7, 8},
		{"localized", i.Stages[1].Right, 6, 8},
		{"analysed", i.Stages[2].Right, 6, 7},
		{"mitigated", i.Stages[3].Right, 3, 5},
		{"mitigated if localized", i.Mended.Localized, 2, 3},
		{"mitigated if not", i.Mended.NotLocalized, 1, 2},
		{"lucky", i.Lucky, 1, 3},
	} {
		if tt.got != NewShare(tt.n, tt.of) {
			t.Errorf("%s: %+v, want %d of %d", tt.name, tt.got, tt.n, tt.of)
		}
	}
	if i.Stages[2].Seconds != 30 {
		t.Errorf("TTA %v", i.Stages[2].Seconds)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"P(MITIGATED | LOCALIZED)", "66.7 (2/3; 20.8 - 93.9)", "LUCKY FIXES", "33.3 (1/3; "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}

// The stages are read from a verdict as it is written.
func TestIncidentIsRead(t *testing.T) {
	t.Chdir(t.TempDir())
	file := aRun{id: "1", agent: "x", task: problem.Incident, class: session.AgentFailed, results: map[string]any{
		"TTD": 4.0, "TTM": 60.5,
		"stages": map[problem.Task]any{problem.Detection: map[string]any{"class": session.Solved, "TTD": 4.0}, problem.Mitigation: map[string]any{"class": session.Infra}},
	}}.write(t)
	for r, err := range Read([]string{file}) {
		if err != nil {
			t.Fatal(err)
		}
		d, m := r.Stages[problem.Detection], r.Stages[problem.Mitigation]
		if d.Class != session.Solved || *d.Seconds != 4 || m.Class != session.Infra || m.Seconds != nil || r.Seconds != 60.5 {
			t.Errorf("%+v", r)
		}
	}
}
