package report

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// What was done before, with nothing written since, is repeated, whatever is thought about it.
func TestRepeats(t *testing.T) {
	t.Chdir(t.TempDir())
	log, err := record.Create("1.jsonl", record.Run{ID: "1", Agent: "a"})
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	step := func(response string) {
		number++
		err = errors.Join(err, log.Append(record.StepEvent, record.Step{Number: number, Response: response, Action: "exec_shell"}))
	}
	pods := agent.Call("exec_shell", "kubectl get pods")
	step(pods)
	step("I look again.\n" + pods) // repeated
	step(agent.Call("exec_shell", "kubectl get nodes"))
	step(agent.Call("exec_shell", "kubectl delete pod x"))
	err = errors.Join(err, log.Append(record.WriteEvent, json.RawMessage(`{"verb":"delete"}`)))
	step(pods) // what came of it
	step("nonsense")
	step("nonsense") // repeated
	err = errors.Join(err, log.Append(record.ProblemEvent, json.RawMessage(`{"id":"p","task":"detection","app":"shop",
		"faults":["pod_kill geo","pod_kill rate","net_delay geo"],"load":"rate:\n    - constant: 10\n",
		"answer":{"cause":{"system_level":"Application"}}}`)),
		log.Append(record.VerdictEvent, session.Verdict{Class: session.AgentFailed, Results: map[string]any{"writes": 3}}), log.Close())
	if err != nil {
		t.Fatal(err)
	}
	r, errs := build([]string{"1.jsonl"})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := []Conduct{{
		Agent: "a", Repeated: Part{2, 7, 2.0 / 7}, Needless: NewShare(1, 1), Writes: 3, Lucky: NewShare(0, 0),
	}}
	if diff := cmp.Diff(want, r.Conduct); diff != "" {
		t.Error(diff)
	}
	var cuts []string
	for _, c := range r.Cuts {
		cuts = append(cuts, c.By+": "+c.Name)
		if n := c.Rows[0].Accuracy.Of; n != 1 {
			t.Errorf("%s: one run counts as %d", c.Name, n)
		}
	}
	if diff := cmp.Diff([]string{
		"fault: net_delay", "fault: pod_kill", "level: Application", "app: shop", "load: 10 requests/s",
	}, cuts); diff != "" {
		t.Error(diff)
	}
}

// Writes are needless where nothing was to be mended.
func TestNeedlessWrites(t *testing.T) {
	var b Builder
	for i, r := range []Run{
		{Task: problem.Detection, Faulty: true, Writes: 2},
		{Task: problem.Localization, Faulty: true},
		{Task: problem.Mitigation, Faulty: true, Writes: 5},
		{Task: problem.Incident, Faulty: true, Writes: 5},
		{Task: problem.Incident, Writes: 1},
		{Task: problem.Analysis, Writes: 9, Class: session.Infra},
		{Task: problem.Operation, Writes: 4},
		{Task: problem.OnCall, Faulty: true, Writes: 6},
	} {
		r.ID, r.Agent = string(rune('a'+i)), "x"
		r.Problem = r.ID
		if r.Class == "" {
			r.Class = session.AgentFailed
		}
		b.Add(&r)
	}
	got := b.Report().Conduct
	if len(got) != 1 || got[0].Needless != NewShare(2, 3) || got[0].Writes != 3 {
		t.Errorf("%+v", got)
	}
}

// An agent is best if no other is better in one way and not worse in the other.
func TestValues(t *testing.T) {
	var b Builder
	for _, a := range []struct {
		agent, ends string
		cost        float64
	}{{"dear", "sssa", 4}, {"cheap", "saaa", 1}, {"bad", "saaa", 2}, {"as good", "sssa", 5}, {"failing", "aaaa", 0.5}} {
		for _, r := range ran(a.agent, a.ends, 1, 1) {
			r.Cost = &a.cost
			b.Add(r)
		}
	}
	for _, r := range ran("free", "ssss", 1, 1) {
		b.Add(r)
	}
	var got []string
	for _, v := range b.Report().Values {
		mark := v.Agent
		if v.Best {
			mark += " best"
		}
		if v.Solved != nil {
			mark += " " + strings.TrimSuffix(strings.TrimRight(num(*v.Solved), "0"), ".")
		}
		got = append(got, mark)
	}
	want := []string{"failing best", "cheap best 4", "bad 8", "dear best 5.3", "as good 6.7"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Names that an agent or a document chose are shown as they are, wherever the report goes.
func TestHostileNames(t *testing.T) {
	var b Builder
	for _, r := range ran(`=@all|<img src=x>`+"`_*[a](b)", "sa", 1, 1) {
		b.Add(r)
	}
	r := b.Report()
	var md, table, page strings.Builder
	if err := errors.Join(r.WriteMarkdown(&md), r.WriteCSV(&table), r.WriteHTML(&page)); err != nil {
		t.Fatal(err)
	}
	if want := "| =&#64;all\\|&lt;img src=x&gt;\\`\\_\\*\\[a\\](b) |"; !strings.Contains(md.String(), want) {
		t.Errorf("no %s in\n%s", want, md.String())
	}
	if strings.Contains(page.String(), "<img") || !strings.Contains(page.String(), "&lt;img") {
		t.Error("the page has a tag of the agent's")
	}
	if !strings.Contains(table.String(), "\nall,,'=@all") {
		t.Errorf("a formula in\n%s", table.String())
	}
}
