package tool

import (
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"slices"
	"strings"
)

// World is what a program of the agent's finds.
type World struct {
	Root    string   // the scratch root: "/" if it is the root of the process
	OwnRoot bool     // it is
	Line    *os.File // to who started the process
}

// Program is the main function of a process. It has the process' standard streams.
type Program func(w *World, args []string) int

// exitUsage is the exit code of a process that was not started by [Command].
const exitUsage = 2

// Run limits and confines this process and runs the program that args[0] names, with all of args. It
// returns the exit code. Without a word where it may go, nothing is run. Whoever started the process
// must not end before it: every program but the shell, which talks to it, ends then.
func Run(args []string, programs map[string]Program) int {
	return run(os.Stderr, args, programs, takePlace, confine)
}

func run(stderr io.Writer, args []string, programs map[string]Program, place func() (Place, bool),
	confine func(Place) (*World, error),
) int {
	if len(args) == 0 || programs[args[0]] == nil {
		fmt.Fprintf(stderr, "tool: name one of %s\n", strings.Join(slices.Sorted(maps.Keys(programs)), ", "))
		return exitUsage
	}
	p, ok := place()
	if !ok {
		fmt.Fprintf(stderr, "tool: %s and %s must say where %s may go\n", rootVar, portVar, args[0])
		return exitUsage
	}
	w, err := confine(p)
	if err != nil {
		fmt.Fprintf(stderr, "tool: %v\n", err)
		return exitUsage
	}
	return programs[args[0]](w, args)
}

// confine makes this process one of the agent's.
func confine(p Place) (*World, error) {
	if err := limit(); err != nil {
		return nil, err
	}
	w, err := Confine(p)
	if err != nil {
		return nil, err
	}
	w.Line, os.Stderr = os.NewFile(lineFD, "line"), os.NewFile(stderrFD, "/dev/stderr")
	log.SetOutput(os.Stderr)
	return w, nil
}

// EndWithStarter ends this process when who started it does.
func (w *World) EndWithStarter() {
	go func() {
		_, _ = io.Copy(io.Discard, w.Line)
		os.Exit(exitUsage)
	}()
}
