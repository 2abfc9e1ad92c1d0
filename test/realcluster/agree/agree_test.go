package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/record"
)

// lab stands for the lab's program: it knows problems, and what comes of runs.
type lab struct {
	t     *testing.T
	dir   string
	calls []string
	got   map[string][]string // what verify comes to, by problem and agent, try by try; solved if it is not named
}

func (l *lab) call(_ context.Context, args ...string) ([]byte, error) {
	l.calls = append(l.calls, strings.Join(args, " "))
	switch args[0] {
	case "problems":
		return map[string][]byte{
			"mitigation": []byte(`[{"id":"m-1"},{"id":"m-2","lacks":"Chaos Mesh is not there"},{"id":"m-3"}]`),
			"incident":   []byte(`[{"id":"i-1"}]`),
			"operation":  []byte(`[{"id":"o-1"}]`),
		}[args[2]], nil
	case "run":
		file := filepath.Join(l.dir, fmt.Sprintf("run-%d.jsonl", len(l.calls)))
		log, err := record.Create(file, record.Run{ID: "1", Agent: "runbook"})
		if err != nil {
			l.t.Fatal(err)
		}
		for q, a := range map[string]string{"detection": `"Yes"`, "localization": `["b","a"]`} {
			if err := log.Append(record.AnswerEvent, record.Answer{Question: q, Answer: json.RawMessage(a)}); err != nil {
				l.t.Fatal(err)
			}
		}
		if err := log.Close(); err != nil {
			l.t.Fatal(err)
		}
		return fmt.Appendf(nil, `{"record":%q,"verdict":{"class":"solved","why":"because"}}`, file), nil
	}
	key := args[1] + " " + args[3]
	got := "solved"
	if list := l.got[key]; len(list) > 0 {
		got, l.got[key] = list[0], list[1:]
	}
	switch got {
	case "nothing":
		return nil, errors.New("exit status 4")
	case "no cells":
		return []byte("null"), nil
	}
	return fmt.Appendf(nil, `[{"want":"solved","got":%q,"why":"because"}]`, got), nil
}

// What gives whole rows comes first, and what the cluster cannot have does not come at all.
func TestPlan(t *testing.T) {
	l, dir := &lab{t: t}, t.TempDir()
	var out strings.Builder
	if err := command(t.Context(), []string{"plan", dir}, &out, l.call); err != nil {
		t.Fatal(err)
	}
	plan, err := lines[row](folder(dir).plan())
	if err != nil {
		t.Fatal(err)
	}
	var first []string
	for _, r := range plan[:8] {
		first = append(first, r.Problem+" "+r.Agent)
	}
	want := []string{
		"m-1 oracle", "m-1 noop", "m-3 oracle", "m-3 noop", "i-1 runbook", "o-1 oracle", "o-1 noop",
		"m-1 restart-everything",
	}
	if d := cmp.Diff(want, first); d != "" {
		t.Error(d)
	}
	if !strings.Contains(out.String(), "not there: m-2: Chaos Mesh is not there") {
		t.Errorf("the plan does not say what is missing:\n%s", &out)
	}
}

// A side goes on where it was broken off: what is recorded is not run again, what says nothing of its agent is tried
// twice, and half a line, which a killed process leaves, is nothing.
func TestResume(t *testing.T) {
	dir := t.TempDir()
	l := &lab{t: t, dir: dir, got: map[string][]string{
		"m-1 oracle": {"infra", "solved"}, "m-1 noop": {"nothing", "nothing", "solved"}, "m-3 silence-the-alerts": {"no cells"},
	}}
	var out strings.Builder
	ran := func() (n int) {
		t.Helper()
		l.calls = nil
		if err := command(t.Context(), []string{"run", "real", dir}, &out, l.call); err != nil {
			t.Fatal(err)
		}
		for _, c := range l.calls {
			if !strings.HasPrefix(c, "problems") {
				n++
				if !strings.Contains(c, "--cloud kubeconfig --past 0s") || !strings.Contains(c, "--seed 1 ") {
					t.Errorf("the run is %q", c)
				}
			}
		}
		return n
	}
	all := ran()
	if want := 4 + 1 + 2 + 12; all != want {
		t.Errorf("%d runs, want %d", all, want)
	}
	file := folder(dir).side(realSide)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b[:len(b)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	if n := ran(); n != 3 {
		t.Errorf("then %d runs, want those with infra, without a result, and the last: %q", n, l.calls)
	}
	if n := ran(); n != 0 {
		t.Errorf("in the end %d runs: %q", n, l.calls)
	}
	list, err := lines[outcome](file)
	if err != nil {
		t.Fatal(err)
	}
	last, _ := latest(list)
	if got := last[row{mitigations, "m-1", "oracle"}].Got; got != "solved" {
		t.Errorf("the second try is %q", got)
	}
	got := last[row{incidents, "i-1", "runbook"}].Answers
	if d := cmp.Diff(map[string]any{"detection": "Yes", "localization": []any{"b", "a"}}, got); d != "" {
		t.Error(d)
	}
}

// The time limit is for what begins, and the embedded cloud runs what the real cluster has planned.
func TestSides(t *testing.T) {
	dir := t.TempDir()
	l := &lab{t: t, dir: dir}
	var out strings.Builder
	if err := command(t.Context(), []string{"run", "embedded", dir}, &out, l.call); err == nil {
		t.Error("the embedded cloud runs what nobody has planned")
	}
	if err := command(t.Context(), []string{"run", "-for", "1ns", "real", dir}, &out, l.call); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "19 of 19 runs are left") {
		t.Errorf("after the time is over:\n%s", &out)
	}
	l.calls = nil
	if err := command(t.Context(), []string{"run", "embedded", dir}, &out, l.call); err != nil {
		t.Fatal(err)
	}
	if len(l.calls) != 19 || slices.ContainsFunc(l.calls, func(c string) bool { return strings.Contains(c, "kubeconfig") }) {
		t.Errorf("the embedded cloud runs %q", l.calls)
	}
	for _, args := range [][]string{nil, {"run", dir}, {"run", "other", dir}, {"table"}} {
		if err := command(t.Context(), args, &out, l.call); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// The table has both sides, and counts what both tell.
func TestTable(t *testing.T) {
	write := func(file string, list []any) {
		t.Helper()
		var b strings.Builder
		for _, v := range list {
			if err := json.NewEncoder(&b).Encode(v); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := folder(t.TempDir())
	oracle, noop := row{mitigations, "m-1", "oracle"}, row{mitigations, "m-1", "noop"}
	late, book := row{mitigations, "m-2", "oracle"}, row{incidents, "i-1", "runbook"}
	other, lucky := row{incidents, "i-2", "runbook"}, row{remedies, "m-1", "scale-to-zero"}
	write(f.plan(), []any{oracle, noop, late, row{mitigations, "m-2", "noop"}, book, other, lucky})
	write(f.side(realSide), []any{
		outcome{row: oracle, Want: "solved", Got: "infra", Seconds: 1},
		outcome{row: oracle, Want: "solved", Got: "solved", Seconds: 67.2},
		outcome{row: noop, Want: "agent", Got: "solved", Why: "it mended itself", Seconds: 70},
		outcome{row: late, Want: "solved", Got: "infra", Why: "starved", Seconds: 9},
		outcome{row: book, Got: "solved", Seconds: 50, Answers: map[string]any{"detection": "Yes", "localization": []any{"b", "a"}}},
		outcome{row: other, Got: "agent", Seconds: 50, Answers: map[string]any{"detection": "Yes", "localization": []any{"a"}}},
		outcome{row: lucky, Got: none},
	})
	write(f.side(embeddedSide), []any{
		outcome{row: oracle, Want: "solved", Got: "solved", Seconds: 30},
		outcome{row: noop, Want: "agent", Got: "agent", Why: "nothing was done", Seconds: 31},
		outcome{row: book, Got: "solved", Seconds: 20, Answers: map[string]any{"detection": "Yes", "localization": []any{"a", "b"}}},
		outcome{row: other, Got: "agent", Seconds: 20, Answers: map[string]any{"detection": "Yes", "localization": []any{"c"}}},
		outcome{row: lucky, Got: none},
	})
	var out strings.Builder
	if err := command(t.Context(), []string{"table", string(f)}, &out, nil); err != nil {
		t.Fatal(err)
	}
	want := `## Mitigations

| problem | oracle | noop |
|---|---|---|
| m-1 | solved, 67 / 30 s | **solved / not solved**, 70 / 31 s |
| m-2 | **infra / not run**, 9 / - s | not run |

verdicts: 1 of 2 the same, 50 %; 2 not told by both sides

- m-1, noop, real: solved, must be not solved: it mended itself
- m-1, noop, embedded: not solved, must be not solved: nothing was done
- m-2, oracle, real: infra, must be solved: starved

## Incidents, runbook

| problem | verdict | detection | localization |
|---|---|---|---|
| i-1 | solved, 50 / 20 s | Yes | ["a","b"] |
| i-2 | not solved, 50 / 20 s | Yes | **["a"] / ["c"]** |

verdicts: 2 of 2 the same, 100 %

answers to detection: 2 of 2 the same, 100 %

answers to localization: 1 of 2 the same, 50 %

incidents with the same answers to all: 1 of 2 the same, 50 %

`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}
