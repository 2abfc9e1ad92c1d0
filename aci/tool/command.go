package tool

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// The variables that tell a process where it may go.
const (
	rootVar     = "AIOPSLAB_TOOL_ROOT"
	portVar     = "AIOPSLAB_TOOL_PORT"
	ownVar      = "AIOPSLAB_TOOL_OWN_ROOT"
	readOnlyVar = "AIOPSLAB_TOOL_READ_ONLY"
)

// The descriptors of a process, beside its standard input and output, and 2 for its last words.
const (
	lineFD   = 3 // to who started it; it ends with it
	stderrFD = 4
)

// Place is where a process may go.
type Place struct {
	Root     string // the scratch root, a directory of the host
	Port     int    // of the API
	OwnRoot  bool   // the scratch root is to be the root of the process
	ReadOnly bool   // it may write no files
}

// environ are the variables that tell a process its place.
func (p Place) environ() []string {
	return []string{
		rootVar + "=" + p.Root, portVar + "=" + strconv.Itoa(p.Port),
		ownVar + "=" + strconv.FormatBool(p.OwnRoot), readOnlyVar + "=" + strconv.FormatBool(p.ReadOnly),
	}
}

// takePlace reads the place from the variables, which it removes: a program may show its own.
func takePlace() (p Place, ok bool) {
	port, err := strconv.Atoi(os.Getenv(portVar))
	p = Place{
		Root: os.Getenv(rootVar), Port: port, OwnRoot: os.Getenv(ownVar) == "true",
		ReadOnly: os.Getenv(readOnlyVar) == "true",
	}
	for _, name := range []string{rootVar, portVar, ownVar, readOnlyVar} {
		os.Unsetenv(name)
	}
	return p, err == nil && p.Root != ""
}

// pipePatience is how long the end of a process waits for its last words.
const pipePatience = 500 * time.Millisecond

// Command returns a process that is not started yet. self is the command line that leads to [Run],
// line is the process' way to us. It is in a group of its own, which [Kill] ends.
// The caller sets standard input and output, and more variables if there are any.
func Command(self []string, p Place, line, stderr *os.File, args ...string) *exec.Cmd {
	full := slices.Concat(self, args)
	cmd := exec.Command(full[0], full[1:]...)
	cmd.Env = append(p.environ(), "TERM=dumb", "TZ=UTC", "NO_COLOR=1")
	cmd.ExtraFiles = []*os.File{line, stderr}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.OwnRoot {
		ownNamespace(cmd.SysProcAttr)
	}
	cmd.WaitDelay = pipePatience
	return cmd
}

// Kill ends a process that was started, and what it may have started.
func Kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// niceness is how far the processes of an agent stand back behind the lab itself, which has to
// serve and to measure whatever they do.
const niceness = 2

// Start starts a process of [Command].
func Start(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, niceness)
	return nil
}
