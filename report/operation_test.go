package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// anOperation is a record to be of one.
type anOperation struct {
	id, agent, problem string
	goal               map[string]any
	class              session.Class
	results            grade.Result
}

func (o anOperation) write(t *testing.T) string {
	t.Helper()
	log, err := record.Create(o.id+".jsonl", record.Run{ID: o.id, Agent: o.agent})
	if err != nil {
		t.Fatal(err)
	}
	truth := map[string]any{"id": o.problem, "task": problem.Operation}
	if o.goal != nil {
		truth["goal"] = o.goal
	}
	err = errors.Join(log.Append(record.ProblemEvent, truth), log.Append(record.StepEvent, record.Step{Number: 1}),
		log.Append(record.VerdictEvent, session.Verdict{Class: o.class, Results: o.results}), log.Close())
	if err != nil {
		t.Fatal(err)
	}
	return o.id + ".jsonl"
}

// The report has what the study of self-managing services tells: by level, of one service and of several, and for each
// operation what became of each try.
func TestOperationsGolden(t *testing.T) {
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	group := func(rounds, turns float64, assignment any) grade.Result {
		return grade.Result{
			"level": "L5", "success": true, "rounds": rounds, "messages": 2 * turns, "turns": map[string]any{"a": turns},
			"assignment_accuracy": assignment, "TTO": 30.0,
		}
	}
	goal := func(level string, services ...string) map[string]any {
		return map[string]any{"level": level, "services": services}
	}
	failed := group(3, 10, nil)
	failed["success"] = false
	led := group(3, 12, 1.0)
	led["manager"], led["turns"] = "m", map[string]any{"m": 6.0, "a": 10.0, "b": 5.0}
	high, low := goal("L5", "catalogue", "front-end"), goal("L1", "catalogue")
	old := group(1, 4, 1.0)
	old["level"] = "L2"
	var files []string
	for _, o := range []anOperation{
		{"1", "hierarchy", "o-L5-traffic-high-1", high, session.Solved, group(2, 20, 0.5)},
		{"2", "hierarchy", "o-L5-traffic-high-1", high, session.AgentFailed, failed},
		{"3", "hierarchy", "o-L5-traffic-high-1", high, session.Solved, group(4, 30, 1.0)},
		{"4", "hierarchy", "o-L5-traffic-high-1", high, session.Infra, group(9, 90, 1.0)},
		{"5", "hierarchy", "o-L1-scale-low-1", low, session.Solved, group(1, 5, 1.0)},
		{"6", "react", "o-L1-scale-low-1", low, session.AgentFailed, grade.Result{"level": "L1", "success": false, "TTO": 9.0}},
		// The same service twice is one, and an older record does not tell.
		{"7", "hierarchy", "o-L2-cpu-low-1", goal("L2", "catalogue", "catalogue"), session.Solved, group(1, 8, nil)},
		{"8", "hierarchy", "o-L2-older-1", nil, session.Solved, old},
		{"0", "hierarchy", "o-L2-cpu-low-1", nil, session.AgentFailed, old},
		// What the study has, too: a maintainer alone, and a manager with its maintainers. At L4 not all had a chance.
		{"a", "hierarchy:single", "autonomic-L2-latency-low-1", goal("L2", "catalogue"), session.Solved, group(0, 4, nil)},
		{"b", "react", "autonomic-L4-rising-traffic-low-1", goal("L4", "catalogue"), session.AgentFailed, grade.Result{"level": "L4"}},
		{"c", "hierarchy", "autonomic-L5-cpu-stress-high-1", high, session.Solved, led},
		{"9", "=evil|`*", "=\x1b[31mo|evil", goal("=L1|\n", "a", "b"), session.Solved, group(1, 2, 1.0)},
	} {
		files = append(files, o.write(t))
	}
	r, errs := build(files)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for name, write := range map[string]func(io.Writer) error{
		"operation.golden": r.WriteText, "operation.md.golden": r.WriteMarkdown, "operation.csv.golden": r.WriteCSV,
		"operation.html.golden": r.print().writeTables,
		"operation.json.golden": func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(map[string]any{"groups": r.Groups, "operations": r.Operations})
		},
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join(testdata, name), b.Bytes())
	}
	slices.Reverse(files)
	again, _ := build(files)
	if d := cmp.Diff(r, again); d != "" {
		t.Errorf("in another order (-first +second):\n%s", d)
	}
	last := r.Operations[len(r.Operations)-1]
	if got, want := fmt.Sprint(last.Trials), "[true false true]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// writeTables writes the page without its figures.
func (p *printer) writeTables(w io.Writer) error { return p.writePage(w, "Operations", nil) }
