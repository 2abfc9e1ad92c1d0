package hierarchy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/problem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestScenarios goes through incidents that were recorded for the runbook, in each way of working together.
func TestScenarios(t *testing.T) {
	for n, name := range []string{
		"container-killed", "faulty-build", "role-revoked", "scaled-to-zero", "two-causes", "disk-fails", "kernel-fails",
		"no-cpu", "out-of-memory", "pods-replaced", "tls-required", "user-dropped", "wrong-command", "wrong-port",
	} {
		modes := []mode{manager, peers, single}
		if n >= 5 { // What differs between them does not depend on the fault.
			modes = modes[n%3 : n%3+1]
		}
		for _, m := range modes {
			t.Run(name+"/"+string(m), func(t *testing.T) {
				w, task, want := scenario(t, name)
				r := play(t, options{mode: m}, agent.Briefing{Task: task}, w.answer)
				got := strings.Join(append(w.changes, r.answers...), "\n")
				if r.err != nil {
					t.Fatalf("%v\n%s", r.err, r.talk())
				}
				t.Logf("%d steps, %d messages\n%s", len(r.steps), len(r.messages), r.talk())
				if task != problem.Mitigation && got != want {
					t.Errorf("got %s, want %s", got, want)
				}
				for line := range strings.Lines(want) {
					call, err := aci.Parse(strings.TrimSpace(line))
					if err != nil {
						t.Fatal(err)
					}
					if len(call.Args) == 0 || strings.Contains(line, "kubectl delete pod -n n --ignore") {
						continue // Pods that wait are started anew if they still do.
					}
					if change := fmt.Sprint(call.Args[0]); task == problem.Mitigation && !slices.Contains(w.changes, change) {
						t.Errorf("did not %s, but\n%s", change, got)
					}
				}
			})
		}
	}
}
