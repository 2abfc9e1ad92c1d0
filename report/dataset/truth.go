package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/report/export"
)

// Truth is what was wrong in a case.
type Truth struct {
	Case    string         `json:"case"`
	Problem string         `json:"problem"`
	App     string         `json:"app"`
	Seed    uint64         `json:"seed"`
	Faults  []record.Fault `json:"faults"` // empty for a healthy system
	Answer  problem.Answer `json:"answer"`
	// Injected is when the injection began, in Unix seconds; 0 if there was none.
	Injected int64 `json:"inject_time,omitempty"`
}

// injecting is the phase of a run in which faults are brought about.
const injecting = "injecting"

func truthOf(r *export.Run) (*Truth, error) {
	if r.Truth.ID == "" {
		return nil, errors.New("the record does not tell what was wrong: the run is not finished, or was killed")
	}
	t := &Truth{
		Case: r.Record.ID, Problem: r.Truth.ID, App: r.Truth.App, Seed: r.Record.Seed, Faults: []record.Fault{},
	}
	var began time.Time
	for _, e := range r.Record.Events {
		var err error
		switch e.Kind {
		case record.ProblemEvent:
			var p struct {
				Answer problem.Answer `json:"answer"`
			}
			err = e.Decode(&p)
			t.Answer = p.Answer
		case record.FaultEvent:
			var f record.Fault
			err = e.Decode(&f)
			t.Faults = append(t.Faults, f)
		case record.PhaseEvent:
			var p record.Phase
			if err = e.Decode(&p); p.Name == injecting {
				began = e.Time
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if len(r.Truth.Faults) != len(t.Faults) {
		return nil, fmt.Errorf("%d of %d faults showed: it is no case of what it should be", len(t.Faults),
			len(r.Truth.Faults))
	}
	if len(t.Faults) > 0 {
		if began.IsZero() {
			return nil, errors.New("the record does not tell when the fault was injected")
		}
		t.Injected = began.Unix()
	}
	return t, nil
}

func (t *Truth) write(dir string) error {
	if t.Injected > 0 {
		err := os.WriteFile(filepath.Join(dir, "inject_time.txt"), fmt.Appendln(nil, t.Injected), 0o644)
		if err != nil {
			return err
		}
	}
	return writeJSON(filepath.Join(dir, "truth.json"), t)
}

// service is the faulty one by which the case is called: the first that is right, or what the fault was injected into.
func (t *Truth) service() string {
	if c := t.Answer.Components; len(c) > 0 {
		return c[0].Name
	}
	return t.Faults[0].Target
}

// links are the files that a case has in the shape of RCAEval.
var links = map[string]string{
	"metrics.csv": casesDir, "simple_metrics.csv": casesDir, "logs.csv": casesDir, "traces.csv": casesDir,
	"inject_time.txt": truthDir,
}

// link puts the case where RCAEval's programs look for it: in a directory that is named by service and fault, with a
// number. A healthy system has no such name.
func (s *Set) link(id string, t *Truth) error {
	if len(t.Faults) == 0 {
		return nil
	}
	word := func(text string) string { return strings.NewReplacer("_", "-", "/", "-", " ", "-").Replace(text) }
	name := filepath.Join(rcaevalDir, word(t.App), word(t.service())+"_"+word(t.Faults[0].Kind))
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%s is no name for a directory", name)
	}
	dir := filepath.Join(s.Dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	up := filepath.Join("..", "..", "..", "..")
	first := filepath.Join(up, links["metrics.csv"], id, "metrics.csv")
	for n := 1; ; n++ {
		numbered := filepath.Join(dir, fmt.Sprint(n))
		if old, err := os.Readlink(filepath.Join(numbered, "metrics.csv")); err == nil && old == first {
			return nil // It was there before.
		}
		if _, err := os.Lstat(numbered); err == nil {
			continue
		}
		return s.put(filepath.Join(name, fmt.Sprint(n)), func(dir string) error {
			for file, part := range links {
				if err := os.Symlink(filepath.Join(up, part, id, file), filepath.Join(dir, file)); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
