package external

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// maxStderr is how much of the end of the standard error is kept.
const maxStderr = 64 << 10

// process is a program with pipes to it, in a process group of its own.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	tail   tail

	exited chan struct{} // closed when the program has exited
	quiet  chan struct{} // closed when its standard error is read to the end
}

func run(argv []string) (*process, error) {
	var pipes [6]*os.File
	defer func() {
		for _, f := range pipes { // Those that are handed on are nil by then.
			if f != nil {
				f.Close()
			}
		}
	}()
	for i := 0; i < len(pipes); i += 2 {
		var err error
		if pipes[i], pipes[i+1], err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), exited: make(chan struct{}), quiet: make(chan struct{})}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = pipes[0], pipes[3], pipes[5]
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.stdin, p.stdout, p.stderr = pipes[1], pipes[2], pipes[4]
	pipes[1], pipes[2], pipes[4] = nil, nil, nil
	go func() {
		defer close(p.quiet)
		_, _ = io.Copy(&p.tail, p.stderr)
	}()
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // The state tells the same.
	}()
	return p, nil
}

// signal goes to the program and all it started, unless they moved to groups of their own.
func (p *process) signal(sig syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, sig) }

// gone waits until the program has exited, and reports whether it did in time.
func (p *process) gone(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-t.C:
		return false
	}
}

// status says how the program ended. It must have.
func (p *process) status() string {
	if st, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return fmt.Sprintf("was killed by signal %d (%v)", int(st.Signal()), st.Signal())
	}
	return fmt.Sprintf("exited with status %d", p.cmd.ProcessState.ExitCode())
}

// stop ends the program, and whatever of its group is left.
func (p *process) stop(politely time.Duration) {
	if !p.gone(0) {
		p.signal(syscall.SIGTERM)
		p.gone(politely)
	}
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// drain lets a pipe be read up to what is in it now, though another process may hold it open.
func drain(f *os.File, within time.Duration) { _ = f.SetReadDeadline(time.Now().Add(within)) }

func (p *process) close() error {
	return errors.Join(p.stdin.Close(), p.stdout.Close(), p.stderr.Close())
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	b    []byte
	gone int64 // bytes that were dropped
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if more := len(t.b) - maxStderr; more > 0 {
		t.b = append(t.b[:0], t.b[more:]...)
		t.gone += int64(more)
	}
	return len(p), nil
}

// text returns what is kept, and how many bytes are not.
func (t *tail) text() (text string, gone int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.b), "\uFFFD"), t.gone
}

// lastWords are the last lines, on one line, for a verdict.
func (t *tail) lastWords() string {
	const lines, most = 3, 400
	text, _ := t.text()
	var list []string
	for _, l := range strings.Split(text, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			list = append(list, l)
		}
	}
	r := []rune(strings.Join(list[max(0, len(list)-lines):], "; "))
	return string(r[max(0, len(r)-most):])
}
