// Package proc starts the programs that agents are made of, ends them, and tells how they ended.
package proc

import (
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// Process is a program that was started. Its methods are safe for concurrent use.
type Process struct {
	cmd    *exec.Cmd
	group  bool
	exited chan struct{}
}

// Start starts a command by calling start, which has to start it. If group is set, the program gets a process
// group of its own, as is right for one that no person controls from a terminal. The command's streams must be
// files.
func Start(cmd *exec.Cmd, group bool, start func() error) (*Process, error) {
	if group {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	if err := start(); err != nil {
		return nil, err
	}
	p := &Process{cmd, group, make(chan struct{})}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // The state tells the same.
	}()
	return p, nil
}

// PID is the program's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the program has exited.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Gone waits until the program has exited, and reports whether it did in time.
func (p *Process) Gone(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-t.C:
		return false
	}
}

// Status says how the program ended. It must have ended.
func (p *Process) Status() string {
	if st, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return fmt.Sprintf("was killed by signal %d (%v)", int(st.Signal()), st.Signal())
	}
	return fmt.Sprintf("exited with status %d", p.cmd.ProcessState.ExitCode())
}

// Failed reports whether the program exited with a status above 0. It must have ended.
func (p *Process) Failed() bool { return p.cmd.ProcessState.ExitCode() > 0 }

// Stop ends the program with a signal, or with SIGKILL if that does not help within a while. What is
// left of its group is killed in any case.
func (p *Process) Stop(sig syscall.Signal, within time.Duration) {
	if !p.Gone(0) {
		p.signal(sig)
		p.Gone(within)
	}
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// signal goes to the program, and to all of its group if that is its own.
func (p *Process) signal(sig syscall.Signal) {
	if p.group {
		_ = syscall.Kill(-p.PID(), sig)
		return
	}
	_ = p.cmd.Process.Signal(sig) // It does nothing to one that has exited.
}
