package problem

import (
	"os"
	"strings"
	"testing"
)

const good = `id: scale-{task}-1
title: user-service is scaled to no replicas
app: social-network
load: {rate: 20}
faults:
  - {kind: scale_pods_to_zero, target: user-service}
tasks: [detection, localization, analysis, mitigation]
answer:
  components: [{name: user-service}]
  cause: {system_level: Virtualization, fault_type: Operation Error}
`

func TestParse(t *testing.T) {
	list, err := Parse("mine.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	want := "scale-detection-1 scale-detection-1-healthy scale-localization-1 scale-analysis-1 scale-mitigation-1"
	if got := strings.Join(ids, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if list[0].Anomaly() != "Yes" || list[1].Anomaly() != "No" || list[1].Faulty() {
		t.Error("the twin is not healthy")
	}
	a, err := list[0].Bind()
	if err != nil || len(a) != 1 {
		t.Errorf("bind: %v, %v", a, err)
	}
}

// What is wrong with a document is said, with the file, the line where there is one, and what would
// be right.
func TestParseErrors(t *testing.T) {
	replace := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %q in the document", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for _, tt := range []struct{ name, doc, want string }{
		{"unknown field", replace("title:", "titel:"), `mine.yaml:2: unknown field "titel"; did you mean "title"?`},
		{"no task in the id", replace("-{task}", ""), "{task} where the task's name goes"},
		{"unknown app", replace("social-network", "hotel"), `app "hotel": want one of hotel-reservation, social-network`},
		{"unknown task", replace("mitigation]", "repair]"), `task "repair": want one of detection, localization, analysis, mitigation`},
		{"unknown fault", replace("scale_pods_to_zero", "scale_pod_to_zero"), `did you mean "scale_pods_to_zero"?`},
		{"unknown target", replace("target: user-service", "target: user-servic"), `did you mean "user-service"?`},
		{"unknown component", replace("name: user-service", "name: nobody"), `social-network has no service "nobody"`},
		{"unknown level", replace("Virtualization", "Cloud"), `system_level "Cloud": want one of Hardware`},
		{"no answer", good[:strings.Index(good, "answer:")], "answer.components is missing"},
		{"no load", replace("load: {rate: 20}", "load: {}"), "load.rate is missing"},
		{"unknown mix", replace("rate: 20", "rate: 20, mix: none"), "load.mix"},
		{"empty", "", "the document is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list, err := Parse("mine.yaml", []byte(tt.doc))
			if err == nil {
				t.Fatalf("got %d problems", len(list))
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "mine.yaml") {
				t.Errorf("got %v\nwant %s", err, tt.want)
			}
		})
	}
}

// A fault that only the injector can undo has no mitigation.
func TestNoMitigationWithoutAFix(t *testing.T) {
	doc := strings.Replace(good, "kind: scale_pods_to_zero", "kind: pod_failure", 1)
	if _, err := Parse("mine.yaml", []byte(doc)); err == nil || !strings.Contains(err.Error(), "there can be no mitigation task") {
		t.Errorf("got %v", err)
	}
}

// The document in docs/problems.md is one.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile("../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "```yaml\n")
	doc, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("there is no document")
	}
	list, err := Parse("mine.yaml", []byte(doc))
	if err != nil || len(list) != 5 {
		t.Errorf("%d problems, %v", len(list), err)
	}
}
