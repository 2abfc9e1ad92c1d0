package server

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const pythonDir = "../clients/python"

// python runs Python's client against a lab, and returns what it prints.
func python(t *testing.T, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	l := newLab(t, Options{Token: "open sesame"}, &fakeBackend{})
	cmd := exec.Command(path, args...)
	cmd.Dir = pythonDir
	cmd.Env = append(os.Environ(), "AIOPSLAB_URL="+l.server.URL, "AIOPSLAB_TOKEN=open sesame", "PYTHONPATH=.", "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestPython(t *testing.T) {
	out := python(t, "-W", "error", "-m", "unittest", "discover", "-s", "tests")
	if !strings.Contains(out, "OK") || strings.Contains(out, "skipped") || strings.Contains(out, "Ran 0 ") {
		t.Error(out)
	}
}

func TestPythonExamples(t *testing.T) {
	if out := python(t, "examples/agent.py", healthy); !strings.HasPrefix(out, "solved {") {
		t.Error(out)
	}
	out := python(t, "examples/train.py", "4", faulty, healthy)
	if strings.Count(out, "\n") != 4 || !strings.Contains(out, "solved, return 0.99") {
		t.Error(out)
	}
}

// Registering an agent takes 15 lines of Python at most, the agent included.
func TestPythonRegistration(t *testing.T) {
	b, err := os.ReadFile(pythonDir + "/examples/agent.py")
	if err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(string(b), "\nclass Agent")
	lines := 0
	for line := range strings.Lines(code) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	if !ok || lines > 15 {
		t.Errorf("%d lines", lines)
	}
}
