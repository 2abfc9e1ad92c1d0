package problem_test

import (
	"encoding/csv"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/problem/problemtest"
)

// AIOpsLab's ids of the applications are all there, and its answers are ours, unless the document
// says why they are not. testdata/aiopslab.tsv is its registry.
func TestCatalogHasAIOpsLab(t *testing.T) {
	f, err := os.Open("testdata/aiopslab.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes = '\t', true
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, row := range rows[1:] {
		id, task, app, expected, cause, state := row[0], row[1], row[2], row[3], row[4], row[5]
		known[id] = true
		p, err := problemtest.Library(t).Find(id)
		if err != nil {
			t.Error(err)
			continue
		}
		origin := map[string]problem.Origin{"active": problem.AIOpsLab, "disabled": problem.Disabled}[state]
		if string(p.Task) != task || p.Origin != origin || strings.ReplaceAll(p.App.Title, " ", "") != app {
			t.Errorf("%s: task %s, origin %s, app %s; AIOpsLab has %s, %s, %s", id, p.Task, p.Origin, p.App.Title, task, origin, app)
		}
		a := p.Document.Answer
		if p.Document.Differs != "" || !p.Faulty() {
			continue
		}
		if !slices.ContainsFunc(a.Components, func(c problem.Component) bool { return c.Name == expected }) {
			t.Errorf("%s: the answer is %v, AIOpsLab's is %s; say why in differs", id, a.Components, expected)
		}
		if level, kind, ok := strings.Cut(cause, " / "); ok && (a.Cause.SystemLevel != level || a.Cause.FaultType != kind) {
			t.Errorf("%s: the cause is %v, AIOpsLab's is %s; say why in differs", id, a.Cause, cause)
		}
	}
	for _, p := range problemtest.Library(t).Problems {
		if p.Origin != problem.Ours && !known[p.ID] {
			t.Errorf("%s is not AIOpsLab's", p.ID)
		}
	}
}

// Who always answers Yes is right half of the time, but for AIOpsLab's own controls.
func TestHealthyTwins(t *testing.T) {
	yes, no := 0, 0
	for _, p := range problemtest.Library(t).Problems {
		if !p.Asks(problem.Detection) || strings.HasPrefix(p.ID, "noop_") {
			continue
		}
		if p.Anomaly() == "Yes" {
			yes++
		} else {
			no++
		}
	}
	if yes == 0 || yes != no {
		t.Errorf("%d detections with a fault, %d without", yes, no)
	}
}

// Every fault is used by a problem, and every mitigation can be solved.
func TestCatalogIsComplete(t *testing.T) {
	used := map[string]bool{}
	for _, p := range problemtest.Library(t).Problems {
		for _, f := range p.Faults() {
			used[f.Kind] = true
		}
		if p.Faulty() && p.Asks(problem.Mitigation) {
			if fix, err := p.Solution(); err != nil || len(fix) == 0 {
				t.Errorf("%s has no solution: %v", p.ID, err)
			}
		}
		for remedy, why := range p.TrueFixes() {
			if !slices.Contains(fault.Remedies, remedy) || len(why) < 10 {
				t.Errorf("%s: true fix %q: %q", p.ID, remedy, why)
			}
		}
	}
	// TCP hides packets that come twice, so no user and no agent can tell.
	unseen := []string{"noop", "network_duplicate"}
	for _, k := range fault.Kinds() {
		if !used[k.Name] && !slices.Contains(unseen, k.Name) {
			t.Errorf("no problem has the fault %s", k.Name)
		}
	}
}

func TestFindNamesTheNearest(t *testing.T) {
	_, err := problemtest.Library(t).Find("revoke_auth_mongodb-mitigaton-1")
	if err == nil || !strings.Contains(err.Error(), `did you mean "revoke_auth_mongodb-mitigation-1"?`) {
		t.Errorf("got %v", err)
	}
}

func TestSuites(t *testing.T) {
	for _, s := range problem.Suites {
		list, err := problemtest.Library(t).Suite(s.Name)
		if err != nil || (len(list) == 0) != (s.Name == "own") {
			t.Errorf("suite %s: %d problems, %v", s.Name, len(list), err)
		}
	}
	// Every application has a suite: all of its problems, and no others.
	for _, a := range problemtest.Library(t).Apps {
		name, _, _ := strings.Cut(a.Name, "-")
		list, err := problemtest.Library(t).Suite(name)
		others := func(p *problem.Problem) bool { return p.App != a }
		want := slices.DeleteFunc(slices.Clone(problemtest.Library(t).Problems), others)
		if err != nil || !slices.Equal(list, want) {
			t.Errorf("suite %s: %d problems, %v; %s has %d", name, len(list), err, a.Name, len(want))
		}
	}
	if _, err := problemtest.Library(t).Suite("hotels"); err == nil || !strings.Contains(err.Error(), "there are: all, aiopslab") {
		t.Errorf("got %v", err)
	}
}

// Each analysis accepts one cause, or two, and its document says what can be seen that supports them. No answer
// that looks at nothing is right in more than 15 % of them, be those about churn counted, as an agent meets them, or not,
// as in 'aiopslab audit'.
func TestNoConstantCause(t *testing.T) {
	churns := func(f problem.FaultSpec) bool { return f.Kind == "pod_kill" || f.Kind == "container_kill" }
	right, n := map[bool]map[fault.Cause]int{true: {}, false: {}}, map[bool]int{}
	for _, p := range problemtest.Library(t).Problems {
		if p.Task != problem.Analysis || !p.Faulty() {
			continue
		}
		a := p.Answer()
		for _, all := range []bool{true, false} {
			if !all && slices.ContainsFunc(p.Document.Faults, churns) {
				continue
			}
			n[all]++
			for _, c := range append([]fault.Cause{*a.Cause}, a.Also...) {
				right[all][c]++
			}
		}
		if len(a.Also) > 1 || len(a.Because) < 40 {
			t.Errorf("%s accepts %d causes because %q", p.ID, 1+len(a.Also), a.Because)
		}
	}
	for all, causes := range right {
		for c, hits := range causes {
			if 100*hits > 15*n[all] {
				t.Errorf("%v is right in %d of %d analyses; those of churn are counted: %v", c, hits, n[all], all)
			}
		}
	}
	if n[false] == 0 || n[false] == n[true] {
		t.Error("there are no analyses")
	}
}

// Every document with a fault asks all questions, or says why it does not. Of a fault that only the injector can undo,
// its kind says that.
func TestNothingIsLeftOutWithoutAReason(t *testing.T) {
	seen := map[*problem.Document]bool{}
	asked, left := 0, 0
	for _, p := range problemtest.Library(t).Problems {
		d := p.Document
		if seen[d] || len(d.Faults) == 0 || d.Goal != nil || d.Shift != nil {
			continue
		}
		seen[d] = true
		mendable := true
		for _, f := range d.Faults {
			k, err := fault.Find(fault.Kinds(), f.Kind)
			if err != nil {
				t.Fatal(err)
			}
			fix, err := k.Fix(fault.Target{App: p.App, Service: f.Target}, &f.Params)
			if err != nil {
				t.Fatal(err)
			}
			mendable = mendable && len(fix) > 0
		}
		for _, task := range problem.Tasks[:4] {
			switch reason := d.Without[task]; {
			case slices.Contains(d.Tasks, task):
				asked++
			case task == problem.Mitigation && !mendable && reason == "":
			case len(reason) < 40:
				t.Errorf("%s has no %s because %q: say why", d.File, task, reason)
			default:
				left++
			}
		}
	}
	if asked < 200 || left < 20 {
		t.Errorf("%d questions are asked, and %d left out with a reason", asked, left)
	}
}
