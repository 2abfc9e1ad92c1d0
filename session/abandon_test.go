package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

func TestAbandon(t *testing.T) {
	whole := aRun{task: problem.Detection, answer: "Yes"}.write(t)
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	p := shopProblem(problem.Detection)
	for _, test := range []struct {
		name, text string
		problem    string
	}{
		{"nothing was written", "", p.ID},
		{"killed at the first line", lines[0][:9], p.ID},
		{"killed as it began", lines[0], p.ID},
		{"killed at a line", lines[0] + lines[1] + lines[2][:7], ""},
		{"killed while it was graded", string(text), "p"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "run.jsonl")
			if test.text != "" {
				if err := os.WriteFile(file, []byte(test.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			o, err := Abandon(file, p, record.Run{ID: "1", Agent: "a", Seed: 7}, "signal: killed")
			if err != nil {
				t.Fatal(err)
			}
			if o.Verdict.Class != Infra || o.Verdict.Why != "signal: killed" {
				t.Errorf("%+v", o.Verdict)
			}
			rec, err := record.Read(file)
			if err != nil || rec.Torn || test.problem != "" && rec.Problem != test.problem {
				t.Fatalf("%+v, %v", rec, err)
			}
			again, err := Grade(rec)
			if err != nil || again.Class != Infra {
				t.Errorf("graded again: %+v, %v", again, err)
			}
			if _, err := os.Stat(o.Session); err != nil {
				t.Error(err)
			}
		})
	}
}
