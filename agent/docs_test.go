package agent_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

// docs/agents.md shows example_test.go as it is.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), "```go\n"+string(code)+"```") {
		t.Error("docs/agents.md does not show example_test.go as it is; copy it there")
	}
}

func TestExample(t *testing.T) {
	a, err := Entry.New(agent.Briefing{Task: problem.Detection, Namespace: "test-hotel-reservation"})
	if err != nil {
		t.Fatal(err)
	}
	var last string
	for _, observation := range []string{"Please take the next action", "geo-1 0/1 CrashLoopBackOff 3 1m"} {
		if last, err = a.Act(context.Background(), observation); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := aci.Parse(last); err != nil || c.Name != "submit" || c.Args[0] != "Yes" {
		t.Errorf("got %s: %v, %v", last, c, err)
	}
}
