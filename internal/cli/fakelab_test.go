package cli_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/aiopslab/aiopslab/internal/cli"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// The variables of fakelab.
const (
	// fakeFill is when a run fills the disk of its records, and which: "verdict 3" is before its verdict, of the run with
	// seed 3. The other moments are "step" and "session".
	fakeFill = "FAKELAB_FILL"
	// fakeJournal is a file that gets a line when a run begins, and when it has left all that it leaves.
	fakeJournal = "FAKELAB_JOURNAL"
)

// fakelab is the lab, but that its runs start no cluster: they are solved at once.
func fakelab() int {
	if len(os.Args) < 2 || os.Args[1] != "run" {
		return cli.Main(context.Background(), cli.Process())
	}
	go func() { // As every run of a campaign, it ends with its standard input.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	if err := fakeRun(os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "fakelab:", err)
		return cli.ExitEnvironment
	}
	return cli.ExitOK
}

func fakeRun(problem string, args []string) error {
	known := map[string]string{}
	for i := 0; i+1 < len(args); i++ {
		if name, ok := strings.CutPrefix(args[i], "--"); ok {
			known[name] = args[i+1]
		}
	}
	who := problem + " " + known["seed"]
	if err := noteDown("begun " + who); err != nil {
		return err
	}
	var seed uint64
	if _, err := fmt.Sscan(known["seed"], &seed); err != nil {
		return err
	}
	id := session.NewID()
	file := filepath.Join(known["results"], id+".jsonl")
	l, err := record.Create(file, record.Run{ID: id, Agent: known["agent"]})
	if err != nil {
		return err
	}
	for _, e := range []struct {
		kind string
		data any
	}{
		{record.ModelEvent, map[string]any{"number": 1, "cost_usd": 0.25}},
		{record.StepEvent, record.Step{Number: 1, Observation: strings.Repeat("x", 8<<10)}},
		{record.ProblemEvent, map[string]any{"id": problem, "seed": seed, "task": "detection"}},
		{record.VerdictEvent, session.Verdict{
			Class: session.Solved, Why: "so it is", Results: map[string]any{"TTD": 1.5, "cost_usd": 0.25},
		}},
	} {
		if err := fillDisk(e.kind, known); err != nil {
			return err
		}
		if err := l.Append(e.kind, e.data); err != nil {
			return err
		}
	}
	if err := l.Close(); err != nil {
		return err
	}
	if err := fillDisk("session", known); err != nil {
		return err
	}
	beside := strings.TrimSuffix(file, ".jsonl") + ".json"
	if err := os.WriteFile(beside+".draft", []byte("{}\n"), 0o600); err != nil {
		return err
	}
	if err := os.Rename(beside+".draft", beside); err != nil {
		return err
	}
	return noteDown("ended " + who)
}

// fillDisk takes all that is left of the disk of the records, if it is the moment.
func fillDisk(moment string, known map[string]string) error {
	if os.Getenv(fakeFill) != moment+" "+known["seed"] {
		return nil
	}
	f, err := os.Create(filepath.Join(known["part-of"], "..", "zeros"))
	if err != nil {
		return err
	}
	for size := 1 << 20; size > 0; size /= 2 { // To the last byte.
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
	return f.Close()
}

// noteDown appends a line to the journal, which is on another disk.
func noteDown(line string) error {
	f, err := os.OpenFile(os.Getenv(fakeJournal), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}
