package local

import (
	"bufio"
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
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// role says what a process of this test binary is: a worker, a runner, or a campaign. A campaign has runners if the
// variable warm is set, and starts processes ahead if the variable ahead is. It is also set for these.
const (
	role  = "LOCAL_TEST_ROLE"
	warm  = "LOCAL_TEST_WARM"
	ahead = "LOCAL_TEST_AHEAD"
)

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(role) {
	case "worker":
		err = fakeWorker(os.Args[1:])
	case "runner":
		err = fakeRunner()
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
	in, turn := bufio.NewReader(os.Stdin), make(chan bool)
	go func() { // It ends with the campaign, in the middle of whatever it does.
		if os.Getenv(ahead) != "" {
			_, err := in.ReadString('\n')
			turn <- err == nil
		}
		_, _ = io.Copy(io.Discard, in)
		os.Exit(1)
	}()
	if os.Getenv(ahead) != "" {
		if err := note(args[1], "ahead "+strings.Join(args[2:], " ")); err != nil {
			return err
		}
		if args[3] == "gone ahead" || !<-turn {
			os.Exit(1)
		}
	}
	return fakeTry(args)
}

// fakeRunner is the process of one such run after another.
func fakeRunner() error {
	orders := make(chan Order)
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			var o Order
			if json.Unmarshal(lines.Bytes(), &o) != nil {
				break
			}
			orders <- o
		}
		os.Exit(1)
	}()
	for o := range orders {
		a := Answer{}
		if err := note(o.Args[1], fmt.Sprint("in ", os.Getpid(), " ", o.Args[3])); err != nil {
			return err
		}
		if err := fakeTry(o.Args); err != nil {
			a.Why = err.Error()
		}
		if err := json.NewEncoder(os.Stdout).Encode(a); err != nil {
			return err
		}
	}
	return nil
}

// patience is for how long a run waits for another process.
const patience = 10 * time.Second

// fakeTry does what a run does.
func fakeTry(args []string) error {
	dir, journal, agent, problem := args[0], args[1], args[2], args[3]
	seed, err := strconv.ParseUint(args[4], 10, 64)
	if err != nil {
		return err
	}
	who := fmt.Sprint(agent, " ", problem, " ", seed)
	if err := note(journal, "begun "+who); err != nil {
		return err
	}
	class := session.Class(problem)
	switch problem {
	case "dies":
		return errors.New("there is no room")
	case "gone":
		os.Exit(1)
	case "hangs":
		select {}
	case "once": // It fails until it is asked again.
		if class = session.Infra; seen(journal, "ended "+who) {
			class = session.Solved
		}
	case "slow", "gone ahead":
		class = session.Solved
	case "patient": // It ends once another process waits for its turn.
		class = session.Solved
		for end := time.Now().Add(patience); !seen(journal, "ahead a solved 1"); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return errors.New("nobody waits")
			}
		}
	}
	file := filepath.Join(dir, session.NewID()+".jsonl")
	if err := leaveRecord(file, Run{agent, "", problem, seed}, class, price, func(before string) {
		switch before {
		case record.ModelEvent:
			_ = note(journal+paidSuffix, "paying") // If that fails, so does what looks for it.
		case record.ProblemEvent:
			_ = note(journal+paidSuffix, "paid")
		}
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

const (
	// price is what a run costs that asks its model.
	price = 0.25
	// paidSuffix is of the journal of what was paid.
	paidSuffix = ".paid"
)

// leaveRecord writes what a run leaves. Pause is told what comes next.
func leaveRecord(file string, run Run, class session.Class, cost float64, pause func(before string)) error {
	if err := writeRecord(file, run, class, cost, pause); err != nil {
		return err
	}
	pause("")
	return writeWhole(sessionFile(file), []byte("{}"))
}

func writeRecord(file string, run Run, class session.Class, cost float64, pause func(before string)) error {
	l, err := record.Create(file, record.Run{ID: "1", Agent: run.Agent})
	if err != nil {
		return err
	}
	for _, e := range []struct {
		kind string
		data any
	}{
		{record.PhaseEvent, record.Phase{Name: "deploying"}},
		{record.BriefingEvent, record.Briefing{}},
		{record.ModelEvent, map[string]any{"number": 1, "cost_usd": cost}},
		{record.StepEvent, record.Step{Number: 1}},
		{record.ProblemEvent, map[string]any{"id": run.Problem, "seed": run.Seed, "task": "detection"}},
		{record.VerdictEvent, session.Verdict{
			Class: class, Why: "so it is", Results: map[string]any{"cost_usd": cost},
		}},
	} {
		pause(e.kind)
		if err := l.Append(e.kind, e.data); err != nil {
			return err
		}
	}
	pause("")
	return l.Close()
}

// abandon leaves the record of a run that was lost, in place of what there is of it: what that had cost it has cost.
func abandon(t *Try, _ string) error {
	file, cost := recordIn(t.Dir), 0.
	if file == "" {
		file = filepath.Join(t.Dir, session.NewID()+".jsonl")
	} else {
		var err error
		if cost, err = spentIn(file); err != nil {
			return err
		}
	}
	draft, at := filepath.Join(t.Dir, "lost"), func(string) {}
	if err := writeRecord(draft, t.Run, session.Infra, cost, at); err != nil {
		return err
	}
	if err := os.Rename(draft, file); err != nil {
		return err
	}
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
	c := &Campaign{
		Folder: f, Workers: 3, Retries: DefaultRetries,
		Command: func(t *Try) *exec.Cmd {
			exe, _ := os.Executable()
			cmd := exec.Command(exe, t.Dir, journal, t.Agent, t.Problem, fmt.Sprint(t.Seed))
			cmd.Env = append(os.Environ(), role+"=worker", ahead+"=")
			if t.Ahead {
				cmd.Env = append(cmd.Env, ahead+"=yes")
			}
			return cmd
		},
		Abandon: abandon,
	}
	if os.Getenv(warm) != "" {
		c.warmUp()
	}
	if os.Getenv(ahead) != "" {
		c.Ahead = 2
	}
	return c
}

// warmUp has runs of one problem follow each other in one process.
func (c *Campaign) warmUp() {
	c.Kin = func(r Run) string { return r.Problem }
	c.Runner = func() *exec.Cmd {
		exe, _ := os.Executable()
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), role+"=runner")
		return cmd
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
