package hostile

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/problem/problemtest"
)

func TestTricks(t *testing.T) {
	tricks, err := Tricks()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	parts := 0
	for _, trick := range tricks {
		if names[trick.Class()+trick.Name] {
			t.Errorf("%s is there twice", trick.Name)
		}
		names[trick.Class()+trick.Name] = true
		if trick.Part {
			parts++
		}
		for _, step := range newPlan([]*Trick{trick}).Tricks[0].Steps {
			if len(step) >= 1<<20 {
				t.Errorf("%s: a line of %d bytes; the lab reads no more than a MiB", trick.Name, len(step))
			}
		}
		if _, err := problemtest.Library(t).Find(trick.Problem); err != nil {
			t.Errorf("%s: %v", trick.Name, err)
		}
	}
	if len(tricks) < 100 || parts < 15 {
		t.Errorf("%d tricks, %d of them for every test", len(tricks), parts)
	}
}

// lab is a lab that answers by a function. It returns what the agent logged.
func lab(t *testing.T, tricks []*Trick, answer func(line string) (string, bool)) []note {
	t.Helper()
	dir := t.TempDir()
	planFile, logFile := filepath.Join(dir, "plan"), filepath.Join(dir, "log")
	b, err := json.Marshal(newPlan(tricks))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(planFile, b, 0o600); err != nil {
		t.Fatal(err)
	}
	in, toAgent := io.Pipe()
	fromAgent, out := io.Pipe()
	go func() {
		defer toAgent.Close()
		e, d := json.NewEncoder(toAgent), json.NewDecoder(fromAgent)
		_ = e.Encode(map[string]any{"type": "hello"})
		_ = e.Encode(map[string]any{"type": "observation"})
		for {
			var line json.RawMessage
			if d.Decode(&line) != nil {
				return
			}
			text, ok := answer(string(line))
			if !ok {
				return
			}
			_ = e.Encode(map[string]any{"type": "observation", "text": text})
		}
	}()
	_ = Agent(planFile, logFile, in, out) // It fails if the lab goes away.
	out.Close()
	notes, err := readNotes(logFile)
	if err != nil {
		t.Fatal(err)
	}
	return notes
}

func TestResults(t *testing.T) {
	tricks, err := read("x.yaml", []byte(`
class: c
about: x
problem: p
tricks:
  - {name: shows a secret, shell: [leak], never: secret}
  - {name: "says too little", shell: [quiet], want: loud}
  - {name: is fine, shell: ['{{repeat 3 "x"}}'], want: xxx}
  - {name: kills, shell: [kill]}
  - {name: is not reached, shell: [more]}
`))
	if err != nil {
		t.Fatal(err)
	}
	notes := lab(t, tricks, func(line string) (string, bool) {
		switch {
		case strings.Contains(line, "echo still"):
			return aliveAnswer, true
		case strings.Contains(line, "leak"):
			return "a secret", true
		}
		return line, !strings.Contains(line, "kill")
	})
	dir := t.TempDir()
	var log bytes.Buffer
	for _, n := range notes {
		_ = json.NewEncoder(&log).Encode(n)
	}
	file := filepath.Join(dir, "log")
	if err := os.WriteFile(file, log.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &Options{Most: 10}
	results, err := o.results(tricks, []uint64{0, 0, 0, 0, 0}, file, nil, "fatal error: stack overflow")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`the agent saw "secret"`, "no \"loud\"", "", "no verdict: fatal error: stack overflow"}
	if len(results) != len(want) {
		t.Fatalf("%d results", len(results))
	}
	for i, r := range results {
		if r.Held != (want[i] == "") || !strings.Contains(r.Why, want[i]) {
			t.Errorf("%s: %v %s", r.Name, r.Held, r.Why)
		}
	}
	results, err = o.results(tricks[2:3], []uint64{11}, file, []byte(`{"verdict":{"class":"agent"}}`), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 1 || results[0].Held {
		t.Errorf("more memory than allowed: %+v", results)
	}
	var b strings.Builder
	Print(&b, results)
	if !strings.Contains(b.String(), "all             1      0") {
		t.Error(b.String())
	}
}
