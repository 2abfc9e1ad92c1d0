package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/agent/cage"
	"github.com/aiopslab/aiopslab/problem"
)

// cageFlags say what a program that is an agent may use of the machine.
type cageFlags struct {
	off         bool
	read, write []string
}

func (f *cageFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&f.off, "unconfined", false,
		"let the agent's program use the machine as you can; the record and the verdict say so")
	flags.StringArrayVar(&f.read, "agent-read", nil, "let the agent's program read this `directory` or file as well")
	flags.StringArrayVar(&f.write, "agent-write", nil,
		"let the agent's program change this `directory` or file as well")
	c.MarkFlagsMutuallyExclusive("unconfined", "agent-read")
	c.MarkFlagsMutuallyExclusive("unconfined", "agent-write")
}

// check refuses what has no effect: an agent that is no program is not confined, and a misspelt name is
// no directory.
func (f *cageFlags) check(program bool) error {
	if !program && (f.off || len(f.read) > 0 || len(f.write) > 0) {
		return fail(ExitUsage,
			errors.New("--unconfined, --agent-read and --agent-write are for an agent that is a program"),
			"Name one as in --agent 'exec:python3 agent.py'.")
	}
	for flag, names := range map[string][]string{"--agent-read": f.read, "--agent-write": f.write} {
		for _, name := range names {
			if _, err := os.Stat(name); err != nil {
				return fail(ExitUsage, fmt.Errorf("%s: %w", flag, err), "")
			}
		}
	}
	return nil
}

// args are the flags for a run of another process.
func (f *cageFlags) args() (list []string) {
	if f.off {
		list = append(list, "--unconfined")
	}
	for _, name := range f.read {
		list = append(list, "--agent-read", name)
	}
	for _, name := range f.write {
		list = append(list, "--agent-write", name)
	}
	return list
}

// of is the cage for a run: what the lab knows of problems and of runs is hidden.
func (f *cageFlags) of(s *State, results string, p *problem.Problem) *cage.Cage {
	c := &cage.Cage{Off: f.off, Read: f.read, Write: f.write}
	c.Hidden = append(c.Hidden, results, filepath.Join(tempDir(s), envPattern), s.dirs.problems, s.dirs.apps,
		worldsDir(s))
	if !p.BuiltIn() {
		c.Hidden = append(c.Hidden, p.Document.File)
	}
	for _, stream := range []any{s.Stdin, s.Stdout, s.Stderr} { // A log, or what is printed.
		if f, ok := stream.(*os.File); ok {
			c.Hidden = append(c.Hidden, fileOf(f))
		}
	}
	return c
}

// fileOf is the name of an open file that is a regular one, or "".
func fileOf(f *os.File) string {
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return ""
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return ""
	}
	return name
}
