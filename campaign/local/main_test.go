package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// role says what a process of this test binary is: a worker, or a campaign.
const role = "LOCAL_TEST_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(role) {
	case "worker":
		err = fakeWorker(os.Args[1:])
	case "campaign":
		err = fakeCampaign(os.Args[1])
	default:
		goleak.VerifyTestMain(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fakeWorker is the process of a run that takes milliseconds: DIR JOURNAL AGENT PROBLEM SEED. What it is to do is the
// problem.
func fakeWorker(args []string) error {
	dir, journal, agent, problem := args[0], args[1], args[2], args[3]
	seed, err := strconv.ParseUint(args[4], 10, 64)
	if err != nil {
		return err
	}
	go func() { // It ends with the campaign, in the middle of whatever it does.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	who := fmt.Sprint(agent, " ", problem, " ", seed)
	if err := note(journal, "begun "+who); err != nil {
		return err
	}
	class := session.Class(problem)
	switch problem {
	case "dies":
		return errors.New("there is no room")
	case "hangs":
		select {}
	case "once": // It fails until it is asked again.
		if class = session.Infra; seen(journal, "ended "+who) {
			class = session.Solved
		}
	case "slow":
		class = session.Solved
	}
	if err := leaveRecord(dir, agent, problem, seed, class, func() {
		if problem == "slow" {
			time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond)
		}
	}); err != nil {
		return err
	}
	return note(journal, "ended "+who)
}

// note appends a line to the journal of a test, in one piece.
func note(journal, line string) error {
	f, err := os.OpenFile(journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// leaveRecord writes what a run leaves.
func leaveRecord(dir, agent, problem string, seed uint64, class session.Class, pause func()) error {
	file := filepath.Join(dir, session.NewID()+".jsonl")
	l, err := record.Create(file, record.Run{ID: "1", Agent: agent})
	if err != nil {
		return err
	}
	for _, e := range []struct {
		kind string
		data any
	}{
		{record.PhaseEvent, record.Phase{Name: "deploying"}},
		{record.StepEvent, record.Step{Number: 1}},
		{record.ProblemEvent, map[string]any{"id": problem, "seed": seed, "task": "detection"}},
		{record.VerdictEvent, session.Verdict{
			Class: class, Why: "so it is", Results: map[string]any{"cost_usd": 0.25},
		}},
	} {
		pause()
		if err := l.Append(e.kind, e.data); err != nil {
			return err
		}
	}
	pause()
	if err := l.Close(); err != nil {
		return err
	}
	pause()
	return writeWhole(sessionFile(file), []byte("{}"))
}

// world is a campaign over fake workers.
func world(t testing.TB, dir string) (c *Campaign, journal string) {
	t.Helper()
	f, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	journal = filepath.Join(filepath.Dir(dir), "journal")
	return fakes(f, journal), journal
}

func fakes(f *Folder, journal string) *Campaign {
	return &Campaign{
		Folder: f, Workers: 3, Retries: DefaultRetries,
		Command: func(t *Try) *exec.Cmd {
			exe, _ := os.Executable()
			cmd := exec.Command(exe, t.Dir, journal, t.Agent, t.Problem, fmt.Sprint(t.Seed))
			cmd.Env = append(os.Environ(), role+"=worker")
			return cmd
		},
		Abandon: func(t *Try, why string) error {
			if file := recordIn(t.Dir); file != "" {
				if err := os.Remove(file); err != nil {
					return err
				}
			}
			return leaveRecord(t.Dir, t.Agent, t.Problem, t.Seed, session.Infra, func() {})
		},
	}
}

// fakeCampaign is a process that goes on with the campaign of [TestKilled].
func fakeCampaign(dir string) error {
	f, err := Open(context.Background(), filepath.Join(dir, "folder"), nil)
	if err != nil {
		return err
	}
	defer f.Close()
	c := fakes(f, filepath.Join(dir, "journal"))
	c.Runs, c.Retries = killedRuns(), 1000
	sum, err := c.Run(context.Background())
	if err == nil && (sum.Left > 0 || sum.Why != nil) {
		b, _ := json.Marshal(sum)
		return fmt.Errorf("the campaign has ended early: %s, %w", b, sum.Why)
	}
	return err
}
