// Command agree tells how far a real cluster and the embedded cloud agree: the verdicts of the reference solution, of
// doing nothing and of blunt remedies, and what the runbook agent answers, problem by problem.
//
//	test/realcluster/run go run ./test/realcluster/agree plan DIR              # what it can have: DIR/plan.jsonl
//	test/realcluster/run go run ./test/realcluster/agree run -for 15m real DIR # appends to DIR/real.jsonl
//	go run ./test/realcluster/agree run embedded DIR                           # the same, on the embedded cloud
//	go run ./test/realcluster/agree table DIR                                  # both side by side
//
// The plan begins with what gives whole rows: each mitigation with the reference solution and with doing nothing; then
// runbook's incidents, operations, and what remains, the remedies. A run that is recorded is not run again, so what
// is broken off goes on by the same command; one that says nothing of its agent is tried a second time. All of it
// takes hours, most of them for the remedies.
//
// It needs aiopslab in PATH.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, aiopslab)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agree:", err)
		os.Exit(1)
	}
}

// caller runs the lab's program, and returns what it prints.
type caller func(ctx context.Context, args ...string) ([]byte, error)

// aiopslab is the program that is installed. It is told to stop if ctx ends, and takes away what it has made.
func aiopslab(ctx context.Context, args ...string) ([]byte, error) {
	var out bytes.Buffer
	c := exec.CommandContext(ctx, "aiopslab", args...)
	c.Stdout, c.Stderr = &out, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 3 * time.Minute
	err := c.Run()
	return out.Bytes(), err
}

var errUsage = errors.New("say 'plan DIR', 'run [-for TIME] real|embedded DIR' or 'table DIR'")

func command(ctx context.Context, args []string, out io.Writer, call caller) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	limit := flags.Duration("for", 0, "begin no run after this `time`")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	rest := flags.Args()
	switch {
	case args[0] == "plan" && len(rest) == 1:
		return makePlan(ctx, folder(rest[0]), out, call)
	case args[0] == "run" && len(rest) == 2 && (rest[0] == realSide || rest[0] == embeddedSide):
		return folder(rest[1]).runAll(ctx, rest[0], *limit, out, call)
	case args[0] == "table" && len(rest) == 1:
		return folder(rest[0]).table(out)
	}
	return errUsage
}
