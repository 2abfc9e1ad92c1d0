package campaign

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// aRecord is the record of a run.
func aRecord(t testing.TB, r local.Run, class session.Class) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "record.jsonl")
	l, err := record.Create(file, record.Run{ID: "1", Agent: r.Agent})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(l.Append(record.ProblemEvent, map[string]any{"id": r.Problem, "seed": r.Seed}),
		l.Append(record.VerdictEvent, session.Verdict{Class: class, Why: "so it is"}), l.Close())
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// pod is the world of a pod over this machine's files: a directory with the plan, and one for records.
type pod struct {
	env *kit.Env
	out *kittest.Buffer
	dir string
}

func newPod(t *testing.T, p *Plan, todo indexes) *pod {
	t.Helper()
	x := &pod{env: kit.HostEnv(), out: &kittest.Buffer{}, dir: t.TempDir()}
	data, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{planName: data, indexesName: []byte(todo.String())} {
		if err := os.WriteFile(filepath.Join(x.dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x.env.Stdout, x.env.Stderr, x.env.Vars = x.out, x.out, map[string]string{}
	x.env.Args = []string{"run", "--plan", x.dir, "--store", filepath.Join(x.dir, "records")}
	return x
}

func (x *pod) run(ctx context.Context, p kit.Program) int { return kit.Run(ctx, p, x.env) }

// TestWorker: a pod does the run of its index, once, and its status tells the Job whether to try again.
func TestWorker(t *testing.T) {
	plan := somePlan(5)
	runs := 0
	class, failure := session.Solved, error(nil)
	worker := Worker{Run: func(_ context.Context, _ *kit.Env, p *Plan, r local.Run) (Leavings, error) {
		runs++
		if !cmp.Equal(p, plan) {
			t.Errorf("the run is of the plan %+v", p)
		}
		return Leavings{Record: aRecord(t, r, class)}, failure
	}}
	for _, c := range []struct {
		name    string
		index   string
		class   session.Class
		err     error
		code    int
		runs    int
		printed string
		kept    string
	}{
		{"the first", "0", session.Solved, nil, 0, 1, "00001.jsonl recorded after 0s: revoke_auth_mongodb-mitigation-1 by oracle with seed 2, solved", "00001.jsonl"},
		{"again", "0", session.Solved, nil, 0, 0, "00001.jsonl is recorded already", "00001.jsonl"},
		{"an agent that failed is a result", "1", session.AgentFailed, nil, 0, 1, "00003.jsonl recorded", "00003.jsonl"},
		{"an environment that failed is none", "2", session.Infra, nil, 1, 1, "the environment failed: so it is", ""},
		{"a run that broke off", "2", session.Solved, errors.New("no memory"), 1, 1, "no memory", ""},
		{"an unknown problem", "2", session.Solved, BadInput(errors.New("no such problem")), ExitBadInput, 1, "no such problem", ""},
		{"no index", "", session.Solved, nil, ExitBadInput, 0, `JOB_COMPLETION_INDEX is ""; this Job is for 3 runs`, ""},
		{"an index of nothing", "3", session.Solved, nil, ExitBadInput, 0, `JOB_COMPLETION_INDEX is "3"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newPod(t, plan, indexes{1, 3, 4})
			records := filepath.Join(x.dir, "records")
			if c.runs == 0 && c.code == 0 {
				if err := errors.Join(os.Mkdir(records, 0o700), os.WriteFile(filepath.Join(records, c.kept), nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			runs, class, failure = 0, c.class, c.err
			x.env.Vars[indexVariable] = c.index
			if code := x.run(t.Context(), worker.Main); code != c.code || runs != c.runs || !strings.Contains(x.out.String(), c.printed) {
				t.Errorf("status %d after %d runs: %s", code, runs, x.out)
			}
			entries, _ := os.ReadDir(records)
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			if got := strings.Join(names, " "); got != c.kept {
				t.Errorf("kept are %q, not %q", got, c.kept)
			}
		})
	}
}

// TestWorkerOfAnotherRun: what is not the record of the run is not kept as such.
func TestWorkerOfAnotherRun(t *testing.T) {
	other := local.Run{Problem: "another-problem", Agent: "oracle", Seed: 1}
	for name, data := range map[string][]byte{
		"another run": aRecord(t, other, session.Solved),
		"nothing":     nil,
		"cut off":     aRecord(t, somePlan(1).Runs[0], session.Solved)[:200],
	} {
		x := newPod(t, somePlan(1), indexes{0})
		x.env.Vars[indexVariable] = "0"
		w := Worker{Run: func(context.Context, *kit.Env, *Plan, local.Run) (Leavings, error) {
			return Leavings{Record: data, Telemetry: []byte("of nothing")}, nil
		}}
		if code := x.run(t.Context(), w.Main); code != 1 {
			t.Errorf("%s: status %d: %s", name, code, x.out)
		}
		if list, _ := os.ReadDir(filepath.Join(x.dir, "records")); len(list) > 0 {
			t.Errorf("%s was kept: %v", name, list)
		}
	}
}

// TestKeeperRefuses: records of two plans do not mix, and a keeper ends with who sent for it.
func TestKeeperRefuses(t *testing.T) {
	x, y := newPod(t, somePlan(2), nil), newPod(t, somePlan(3), nil)
	y.env.Args = append(y.env.Args, "--store", filepath.Join(x.dir, "records"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	x.env.Args = append(x.env.Args, "--listen", "127.0.0.1:0")
	go func() { ended <- x.run(ctx, Keeper) }()
	for !strings.Contains(x.out.String(), "the records of 2 runs are at") {
		select {
		case code := <-ended:
			t.Fatalf("status %d: %s", code, x.out)
		case <-time.After(time.Millisecond):
		}
	}
	if code := y.run(t.Context(), Keeper); code != ExitBadInput || !strings.Contains(y.out.String(), "choose another --name") {
		t.Errorf("status %d: %s", code, y.out)
	}
	cancel()
	if code := <-ended; code != 0 {
		t.Errorf("status %d: %s", code, x.out)
	}
}

// TestModelVariables: a run has the variables of its model, and none that opens the store of the records.
func TestModelVariables(t *testing.T) {
	env := &kit.Env{Vars: map[string]string{
		"AWS_SECRET_ACCESS_KEY": "store", modelPrefix + "OPENAI_API_KEY": "a key", modelPrefix + "OPENAI_BASE_URL": "http://m/v1",
	}}
	want := []string{"OPENAI_API_KEY=a key", "OPENAI_BASE_URL=http://m/v1"}
	if diff := cmp.Diff(want, ModelVariables(env)); diff != "" {
		t.Error(diff)
	}
}
