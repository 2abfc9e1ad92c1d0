// Package cage is what a program that is an agent may use of the machine it runs on.
//
//	c := &cage.Cage{Hidden: []string{"results"}}
//	err := c.Start(cmd, scratch)
//
// Such a program has the user's rights, and so it could read what the lab writes of other runs and its
// own, look into the lab's processes, or end them when it is about to lose. A cage leaves it what it
// needs: the system's files, its interpreter and libraries, its own directory and what its arguments
// name, all to read; a scratch directory to write to; and the network, where its model is. It cannot
// signal, trace or inspect other processes, see what they are in /proc, speak with other programs of
// its user over sockets of the machine (a session bus, tmux, an SSH agent, a container engine: they
// would do outside what it may not do itself), or get rights that it does not have.
//
// Landlock is what an unprivileged process can put between the two, and a filter of system calls does
// the rest. Where a system has neither, [Cage.Gap] says so, and so does the verdict.
package cage

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Cage says what a program may use beside what every program needs.
type Cage struct {
	Off bool // the program has its user's rights
	// Read and Write are files and trees that it may read, and change.
	Read, Write []string
	// Hidden are files and trees that it may not even read, wherever they are, or patterns of their names.
	Hidden []string
}

// Advice is what to do about a program that lacks something.
const Advice = "a program that is an agent is confined, see docs/agents.md: if it lacks a file, name its directory " +
	"with --agent-read or --agent-write, or lift the confinement with --unconfined"

// Start starts a command in the cage. The scratch directory is its to write to, and where its temporary
// files go. The command's streams must be files.
func (c *Cage) Start(cmd *exec.Cmd, scratch string) error {
	if c.Off || !possible() {
		return cmd.Start()
	}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "TMPDIR="+scratch, "KUBECACHEDIR="+filepath.Join(scratch, "cache"))
	err := start(cmd, c.grants(cmd, scratch))
	if errors.Is(err, syscall.EACCES) {
		err = errors.Join(err, errors.New(Advice))
	}
	return err
}

// Advise returns what to add to the error of a program that failed, or "".
func (c *Cage) Advise() string {
	if c.Off || !possible() {
		return ""
	}
	return "; " + Advice
}

// Holds says what holds the program in, for the record.
func (c *Cage) Holds() string {
	if gap := c.Gap(); gap != "" {
		return gap
	}
	return describe()
}

// Possible reports whether programs can be confined on this system.
func Possible() bool { return possible() }

// Gap says why the program is not confined, or not wholly; it is empty if it is.
func (c *Cage) Gap() string {
	if c.Off {
		return "unconfined: as --unconfined asks for"
	}
	return gap()
}
