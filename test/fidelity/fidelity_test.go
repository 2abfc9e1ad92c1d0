package main

import (
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/internal/manifest"
)

// Every situation can be read, and says until when to wait in a way that is known.
func TestSituations(t *testing.T) {
	list, err := readSituations()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 40 {
		t.Errorf("there are %d situations", len(list))
	}
	words := map[string]int{ // how many words each has
		"waiting": 2, "init": 2, "phase": 2, "event": 2, "deployment": 2, "job": 2, "evicted": 1, "deleting": 1, "pod": 1,
		"service": 1, "daemonset": 1,
	}
	for _, s := range list {
		if words[s.until[0]] != len(s.until) {
			t.Errorf("%s: until %q", s.name, s.until)
		}
		if !strings.HasSuffix(s.what, ".") {
			t.Errorf("%s is about %q", s.name, s.what)
		}
		if objects, err := manifest.Parse([]byte(s.manifest)); err != nil || len(objects) == 0 {
			t.Errorf("%s: %d objects, %v", s.name, len(objects), err)
		}
	}
}

func TestNormal(t *testing.T) {
	for fact, want := range map[string]string{
		"pod d-7dd9f668c9-m8f6v on n1 at 10.244.0.5":                                                     "pod d-RANDOM on NODE at IP",
		"back-off 2m40s restarting failed container=main pod=p_ns(0e5a3b5e-1111-2222-3333-444455556666)": "back-off TIME restarting failed container=main pod=p_NAMESPACE(UID)",
		"(combined from similar events): Error creating: pods":                                           "Error creating: pods",
		"Successfully pulled image in 1.2s (1.2s including waiting). Image size: 123 bytes.":             "Successfully pulled image in a TIME. Image size: SIZE.",
	} {
		if got := normal(fact, "ns"); got != want {
			t.Errorf("%q becomes %q", fact, got)
		}
	}
}

// A difference counts unless it is explained, and one that is not there any more is none.
func TestCompare(t *testing.T) {
	known, err := readExplained("# nothing\n\nslow | log of .* | it is slower\n")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	bad := compare(&b, Seen{
		"same": {"a"}, "slow": {"a", "log of p: x"}, "other": {"a", "b"}, "gone": {"a"},
	}, Seen{
		"same": {"a"}, "slow": {"a", "log of p: y"}, "other": {"a", "c"},
	}, known)
	if bad != 2 {
		t.Errorf("%d differ", bad)
	}
	for _, want := range []string{
		"same                   same\n", "slow                   explained\n    - log of p: x   (it is slower)\n",
		"other                  DIFFERS\n    - b\n    + c\n", "gone                   DIFFERS\n",
		"4 situations: 1 the same, 1 explained, 2 differ; 5 of 11 facts are on one side only",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if _, err := readExplained(explained); err != nil {
		t.Error(err)
	}
	if _, err := readExplained("without parts"); err == nil {
		t.Error("a line without parts is read")
	}
}
