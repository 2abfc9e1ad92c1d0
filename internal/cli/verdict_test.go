package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// The exit status of a run is that of docs/grading.md, in which each class of verdict has a row.
func TestVerdictCodes(t *testing.T) {
	doc, err := os.ReadFile("../../docs/grading.md")
	if err != nil {
		t.Fatal(err)
	}
	for class, want := range map[session.Class]int{
		session.Solved:       0,
		session.AgentFailed:  4,
		session.Infra:        3,
		session.GraderFailed: 5,
		session.Inconclusive: 5,
		"a class of later":   5, // What is not known says nothing of the agent.
	} {
		err := verdictStatus(&session.Outcome{Verdict: session.Verdict{Class: class}})
		if got := report(io.Discard, err); got != want {
			t.Errorf("%s: status %d, want %d", class, got, want)
		}
		row := ""
		for line := range strings.Lines(string(doc)) {
			if strings.HasPrefix(line, "| `"+string(class)+"` |") {
				row = strings.TrimSpace(line)
			}
		}
		if class != "a class of later" && !strings.HasSuffix(row, "| "+string(rune('0'+want))+" |") {
			t.Errorf("docs/grading.md says of %s: %q; want %d", class, row, want)
		}
	}
}

// Errors have the status that they were given, however they are wrapped.
func TestErrorCodes(t *testing.T) {
	odd := errors.New("odd")
	for _, tt := range []struct {
		name   string
		err    error
		status int
		prints string
	}{
		{"none", nil, ExitOK, ""},
		{"an error", odd, ExitError, "aiopslab: odd\n"},
		{"of two lines", errors.New("odd\neven"), ExitError, "aiopslab: odd; even\n"},
		{"of usage", fail(ExitUsage, odd, "Do otherwise."), ExitUsage, "aiopslab: odd\naiopslab: hint: Do otherwise.\n"},
		{"of the environment", fail(ExitEnvironment, odd, ""), ExitEnvironment, "aiopslab: odd\n"},
		{"a status", exitStatus(ExitNotFound), ExitNotFound, ""},
		{"a status within", errors.Join(exitStatus(ExitUnsolved)), ExitUnsolved, ""},
	} {
		var b bytes.Buffer
		if got := report(&b, tt.err); got != tt.status || b.String() != tt.prints {
			t.Errorf("%s: status %d and %q, want %d and %q", tt.name, got, b.String(), tt.status, tt.prints)
		}
	}
}

// The last line of a transcript can be typed: it names a problem of a file by its task, unless another has the same.
func TestProblemName(t *testing.T) {
	builtIn := find(t, "misconfig_app_hotel_res-detection-1")
	s := &State{}
	own := func(id string, healthy bool) *problem.Problem {
		d := &problem.Document{File: "p/burst.yaml"}
		return &problem.Problem{ID: id, Task: problem.Detection, App: builtIn.App, Document: d, Healthy: healthy}
	}
	for want, p := range map[string]*problem.Problem{
		"misconfig_app_hotel_res-detection-1":           builtIn,
		"p/burst.yaml --task detection":                 own("burst-detection-1", false),
		"p/burst.yaml --task burst-detection-1-healthy": own("burst-detection-1-healthy", true),
	} {
		if got := strings.Join(s.dirs.name(p), " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Lines of several processes do not get mixed up.
func TestLines(t *testing.T) {
	var b bytes.Buffer
	l := &lines{w: &b}
	one, two := l.writer(), l.writer()
	io.WriteString(one, "a")
	io.WriteString(two, "1\n2")
	io.WriteString(one, "b\nc\nd")
	io.WriteString(two, "\n")
	if got := b.String(); got != "1\nab\nc\n2\n" {
		t.Errorf("got %q", got)
	}
}
