package page

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/problem/problemtest"
)

func TestCompareAgents(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		id := fmt.Sprintf("p%02d-mitigation-1", i)
		simple(t, dir, fmt.Sprintf("a%02d", i), "react", "", id, "agent", 10)
		class := "solved"
		if i%4 == 0 {
			class = "agent"
		}
		simple(t, filepath.Join(dir, "more"), fmt.Sprintf("b%02d", i), "flash", "", id, class, 20)
	}
	simple(t, filepath.Join(dir, "other"), "c", "alone", "", "other-mitigation-1", "solved", 1)
	v := visit(t, Options{Dir: dir})
	has(t, v.get(Prefix+"compare"), `<optgroup label="Agents">`, `<option value="agent:flash">flash</option>`,
		`<option value="folder:more">more</option>`)
	page := v.get(Prefix + "compare?a=agent:react&b=agent:flash")
	has(t, page, "flash solves 75 % more than react, 95 % ", "15 (75\u202f%)", "<th scope=\"row\">time (s)</th>", "&#43;10",
		`href="/view/compare?run=a01&amp;run=b01"`)
	lacks(t, page, "run=a00&amp;run=b00")
	for query, want := range map[string]string{
		"?a=agent:react&b=agent:react":  "Choose two that differ",
		"?a=agent:react&b=agent:nobody": "has no runs",
		"?a=agent:react&b=agent:alone":  "no runs of the same problem with the same seed",
		"?run=a00":                      "1 run ticked; tick two",
	} {
		has(t, v.get(Prefix+"compare"+query), want)
	}
}

func TestCompareRuns(t *testing.T) {
	dir := t.TempDir()
	shortly("run-1", "react").ended("revoke-mitigation-1", "solved", "well", nil).save(t, dir)
	other := shortly("run-2", "flash")
	other.lines[6] = strings.ReplaceAll(other.lines[6], "kubectl set image deployment/geo geo=new", "kubectl delete pod geo")
	other.ended("revoke-mitigation-1", "agent", "not well", nil).save(t, dir)
	v := visit(t, Options{Dir: dir})
	page := v.get(Prefix + "compare?run=run-1&run=run-2")
	has(t, page, "They part at step 2.", "$ kubectl delete pod geo", "$ kubectl set image deployment/geo geo=new",
		`href="/view/runs/run-2?at=13.50"`, "the same")
	has(t, v.get(Prefix+"compare?run=run-1&run=run-1"), "Both took the same steps.")
	if status, _, _ := v.do("GET", Prefix+"compare?run=run-1&run=none", ""); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
}

func TestProblems(t *testing.T) {
	dir := t.TempDir()
	id := "revoke_auth_mongodb-mitigation-1"
	simple(t, dir, "run-1", "react", "", id, "solved", 10)
	v := visit(t, Options{Dir: dir, Library: problemtest.Library(t)})
	list := v.get(Prefix + "problems")
	has(t, list, id, "1 of 1 solved")
	few := v.get(Prefix + "problems?app=social-network&task=detection&q=scale")
	has(t, few, "scale_pod_zero_social_net-detection-1")
	lacks(t, few, id, "-mitigation-")
	page := v.get(Prefix + "problems/" + id)
	has(t, page, "Hotel Reservation", "mongodb-geo", "You are on call", "exec_shell(command", "/view/runs/run-1")
	before, truth, found := strings.Cut(page, `<details class="card truth">`)
	if !found || !strings.Contains(truth, "revoke_auth") || strings.Contains(before, "kind:") || strings.Contains(page, "truth\" open") {
		t.Error("the truth is not behind a click")
	}
	has(t, v.get(Prefix+"problems/noop_detection_hotel_reservation-1"), "Nothing is wrong")
	if status, _, _ := v.do("GET", Prefix+"problems/none", ""); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
	drawn := map[string]bool{}
	for _, p := range problemtest.Library(t).Problems { // Every application can be drawn.
		if drawn[p.App.Name] {
			continue
		}
		drawn[p.App.Name] = true
		if status, _, _ := v.do("GET", Prefix+"problems/"+p.ID, ""); status != http.StatusOK {
			t.Errorf("%s: %d", p.ID, status)
		}
	}
	without := visit(t, Options{Dir: dir})
	if status, _, _ := without.do("GET", Prefix+"problems", ""); status != http.StatusNotFound {
		t.Errorf("%d", status)
	}
}
