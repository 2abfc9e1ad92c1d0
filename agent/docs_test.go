package agent_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// docs/agents.md shows an example as it is, which compiles and is short.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("../examples/glance/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), "```go\n"+string(code)+"```") {
		t.Error("docs/agents.md does not show examples/glance/main.go as it is; copy it there")
	}
	if n := strings.Count(string(code), "\n"); n > 30 {
		t.Errorf("the example has %d lines", n)
	}
	// It is compiled and not linked. To vet it would be to look at all of Kubernetes first, which `make lint` does.
	compile := exec.Command("go", "list", "-export", "../examples/glance")
	compile.Env = append(os.Environ(), "CGO_ENABLED=0") // The race detector's setting would compile all of Kubernetes once more.
	if out, err := compile.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
