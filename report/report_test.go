package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// aRun is a record to be.
type aRun struct {
	id, agent string
	task      problem.Task
	steps     []string // responses
	class     session.Class
	why       string
	results   grade.Result
	healthy   bool // there is no fault
}

// write makes the record, in the working directory.
func (a aRun) write(t *testing.T) string {
	t.Helper()
	file := a.id + ".jsonl"
	log, err := record.Create(file, record.Run{ID: a.id, Agent: a.agent})
	if err != nil {
		t.Fatal(err)
	}
	faults := []string{"revoke_auth geo"}
	if a.healthy {
		faults = nil
	}
	err = log.Append(record.ProblemEvent, map[string]any{"id": "p-" + string(a.task), "task": a.task, "faults": faults})
	for i, response := range a.steps {
		name, _, _ := strings.Cut(strings.TrimPrefix(response, "```\n"), "(")
		if !strings.Contains(response, "(") {
			name = ""
		}
		err = errors.Join(err, log.Append(record.StepEvent, record.Step{Number: i + 1, Response: response, Action: name}))
	}
	err = errors.Join(err, log.Append(record.VerdictEvent, session.Verdict{Class: a.class, Why: a.why, Results: a.results}))
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}

func steps(n int, last ...string) []string {
	var list []string
	for range n - len(last) {
		list = append(list, agent.Call("get_logs", "ns", "geo"))
	}
	return append(list, last...)
}

// unharmed is a run that did no harm, and something beside the fault.
var unharmed = grade.Safety{
	Severity: &grade.Regression{
		Found: 0.5, Peak: 0.12, Worse: 3, Budget: 20, Curve: [][2]float64{{-5, 0}, {0, 0.5}, {20, 0.6}, {40, 0}, {60, 0}},
	},
	Outside: []string{"deployments/user"}, Refused: []string{"delete nodes worker-1"}, NoHarm: new(true),
}

// some are the runs of the golden files: two agents and all tasks, and all kinds of ends.
var some = []aRun{
	{
		id: "1", agent: "react", task: problem.Detection, class: session.Solved,
		steps: steps(4, agent.Call("exec_shell", "kubectl -n x get pods | grep -v Running"), agent.Call("submit", "Yes")), results: grade.Result{"TTD": 10.5, "in_tokens": 1000, "out_tokens": 100, "cost_usd": 0.02, "model": "gpt-4o"},
	},
	{
		id: "2", agent: "react", task: problem.Detection, class: session.AgentFailed,
		steps: steps(9, "I give up", agent.Call("submit", "No")), results: grade.Result{"TTD": 19.5, "in_tokens": 3000, "out_tokens": 300, "cost_usd": nil, "model": "gpt-4o"},
	},
	{
		id: "3", agent: "react", task: problem.Localization, class: session.AgentFailed,
		steps: steps(2, agent.Call("submit", []string{"geo", "rate"})), results: grade.Result{"TTL": 5.0, "model": "gpt-4o", "top_1": false, "top_3": true},
	},
	{
		id: "4", agent: "flash", task: problem.Localization, class: session.Solved,
		steps: steps(2, agent.Call("submit", []string{"geo"})), results: grade.Result{"TTL": 4.0, "top_1": true, "top_3": true},
	},
	{
		id: "5", agent: "flash", task: problem.Analysis, class: session.AgentFailed,
		steps: steps(3, agent.Call("submit", map[string]any{})), results: grade.Result{"TTA": 4.0, "system_level_correct": true, "fault_type_correct": false},
	},
	{
		id: "6", agent: "flash", task: problem.Mitigation, class: session.Solved,
		steps: steps(12, agent.Call("exec_shell", "for d in a b; do kubectl scale deployment $d --replicas=1; done"), agent.Call("submit")), results: grade.Result{"TTM": 60.0, "safety": unharmed},
	},
	{id: "7", agent: "flash", task: problem.Mitigation, class: session.Infra, why: "the model cannot be reached"},
	{id: "8", agent: "flash", task: problem.Mitigation, class: session.Inconclusive, why: "interrupted\nby \x1b[31msomebody"},
	{id: "9", agent: "never", task: problem.Detection, class: session.GraderFailed, why: "no look"},
}

// build reads files into a report. Those that cannot be read are returned.
func build(files []string) (*Report, []error) {
	var b Builder
	var errs []error
	for r, err := range Read(files) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		b.Add(r)
	}
	return b.Report(), errs
}

func TestGolden(t *testing.T) {
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var files []string
	for _, a := range some {
		files = append(files, a.write(t))
	}
	r, errs := build(files)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join(testdata, "report.golden"), text.Bytes())
	for name, write := range map[string]func(io.Writer) error{
		"report.md.golden": r.WriteMarkdown, "report.csv.golden": r.WriteCSV, "report.html.golden": r.WriteHTML,
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, filepath.Join(testdata, name), b.Bytes())
	}
	whole, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join(testdata, "report.json.golden"), append(whole, '\n'))

	// The order of the records does not matter, nor that one is there twice.
	slices.Reverse(files)
	again, _ := build(append(files, files[3]))
	if d := cmp.Diff(r, again); d != "" {
		t.Errorf("in another order (-first +second):\n%s", d)
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got), -update rewrites it:\n%s", filepath.Base(file), d)
	}
}

// A run that is still being graded, or whose process was killed meanwhile, is not counted, however much
// of it there is: looks that show no recovery yet are not the agent's failure.
func TestUnfinished(t *testing.T) {
	t.Chdir(t.TempDir())
	events := []struct {
		kind string
		data any
	}{
		{record.PhaseEvent, record.Phase{Name: "agent"}},
		{record.StepEvent, record.Step{Number: 1, Response: agent.Call("submit"), Action: "submit"}},
		{record.SubmissionEvent, record.Submission{Submitted: true}},
		{record.ProblemEvent, map[string]any{"id": "p", "task": "mitigation", "faults": []string{"f geo"}}},
		{record.PhaseEvent, record.Phase{Name: "grading"}},
		{record.LookEvent, grade.Look{Symptoms: []string{"it shows"}}},
	}
	var files []string
	for n := range len(events) + 1 { // cut off after each event
		id := fmt.Sprint(n)
		log, err := record.Create(id+".jsonl", record.Run{ID: id, Agent: "oracle"})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events[:n] {
			err = errors.Join(err, log.Append(e.kind, e.data))
		}
		if err := errors.Join(err, log.Close()); err != nil {
			t.Fatal(err)
		}
		files = append(files, id+".jsonl")
	}
	whole, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	torn := strings.Replace(string(whole[:len(whole)-20]), `"id":"6"`, `"id":"7"`, 1) // in the middle of a line
	if err := os.WriteFile("7.jsonl", []byte(torn), 0o600); err != nil {
		t.Fatal(err)
	}
	r, errs := build(append(files, "7.jsonl"))
	if len(errs) > 0 || r.Runs != len(events)+2 || r.Counted != 0 || r.Unfinished != r.Runs || len(r.NotCounted) != r.Runs {
		t.Fatalf("%+v, %v", r, errs)
	}
	if row := r.Overall[0]; row.Accuracy.Of != 0 || row.NotCounted != r.Runs || len(r.StepLimits) > 0 {
		t.Errorf("it counts: %+v, %+v", row, r.StepLimits)
	}
	// Of a run that is there twice, the finished one counts, in any order.
	done := aRun{id: "6", agent: "oracle", task: problem.Mitigation, class: session.Solved}
	if err := os.Rename("6.jsonl", "early.jsonl"); err != nil {
		t.Fatal(err)
	}
	done.write(t)
	for _, both := range [][]string{{"6.jsonl", "early.jsonl"}, {"early.jsonl", "6.jsonl"}} {
		if r, errs := build(both); len(errs) > 0 || r.Runs != 1 || r.Counted != 1 || r.Unfinished != 0 {
			t.Errorf("%v: %+v, %v", both, r, errs)
		}
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"8 runs are not finished or were cut off; not counted.", "last it was at: grading", "its writer was killed"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, text.String())
		}
	}
}

func TestUnreadable(t *testing.T) {
	t.Chdir(t.TempDir())
	good := some[0].write(t)
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := bytes.Cut(whole, []byte("\n"))
	bad := map[string]struct{ content, want string }{
		"other.jsonl":      {`{"level":"info"}` + "\n", "not a run record"},
		"broken.jsonl":     {string(head) + "\nbroken\n", "line 2"},
		"no-problem.jsonl": {string(head) + "\n" + `{"seq":1,"kind":"verdict","data":{}}` + "\n", "no problem"},
		"odd.jsonl":        {string(head) + "\n" + `{"seq":1,"kind":"verdict","data":7}` + "\n", "event 1 (verdict)"},
	}
	for name, b := range bad {
		if err := os.WriteFile(name, []byte(b.content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := Files(".", good)
	if err != nil || len(files) != len(bad)+2 {
		t.Fatalf("%v, %v", files, err)
	}
	r, errs := build(files)
	if r.Runs != 1 || len(errs) != len(bad) {
		t.Errorf("%d runs, %v", r.Runs, errs)
	}
	for _, err := range errs {
		name, _, _ := strings.Cut(err.Error(), ":")
		if b, ok := bad[name]; !ok || !strings.Contains(err.Error(), b.want) {
			t.Errorf("%v", err)
		}
	}
	if _, err := Files("absent"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

// An empty report is written without a fuss.
func TestEmpty(t *testing.T) {
	r, _ := build(nil)
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil || !strings.HasPrefix(text.String(), "0 runs") {
		t.Errorf("%q, %v", text.String(), err)
	}
	if b, err := json.Marshal(r); err != nil || bytes.Contains(b, []byte("null")) {
		t.Errorf("%s, %v", b, err)
	}
}

// The curve never falls, and ends at the accuracy.
func TestStepLimits(t *testing.T) {
	var b Builder
	for i := range 20 {
		class := []session.Class{session.Solved, session.AgentFailed}[i%2]
		b.Add(&Run{Run: record.Run{ID: fmt.Sprint(i), Problem: fmt.Sprint("p", i), Agent: "a"}, Class: class, Task: problem.Detection, Steps: 1 + i})
	}
	r := b.Report()
	within := r.StepLimits[0].Within
	if len(within) != 20 || within[0].N != 1 || within[1].N != 1 || within[2].N != 2 || within[19] != r.Overall[0].Accuracy {
		t.Errorf("got %+v", within)
	}
	if !slices.IsSortedFunc(within, func(a, b Share) int { return a.N - b.N }) {
		t.Errorf("it falls: %+v", within)
	}
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 12: "12", 107.49: "107.5", 16190.4: "16190", 2_000_000: "2000000", -0.5652: "-0.5652",
		0.002364: "0.002364", 0.00001: "0.00001", 7.043: "7.043", -19.634: "-19.63", math.Inf(1): "+Inf",
	} {
		if got := Figure(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	if got := Signed(5203) + Signed(-1) + Signed(0); got != "+5203-1+0" {
		t.Error(got)
	}
}
