package terminal

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A shell on a terminal has job control; when it has submitted it is ended, and the terminal is the
// lab's again.
func TestShellOnTerminal(t *testing.T) {
	for _, shell := range []string{"bash", "sh"} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip(err)
			}
			tty := newTerminal(t, shell)
			tty.expect("Leave the shell to give up.")
			tty.typed("set -o | grep monitor; echo st''arted\n")
			tty.expect("started")
			tty.typed("sleep 1000\n")
			tty.until(func() bool { return tty.running() == "sleep" })
			tty.typed("\x03") // Ctrl-C ends the sleep, and nothing else.
			tty.until(func() bool { return tty.running() == shell })
			tty.typed("submit perhaps; echo st''ill here\n")
			tty.expect("still here")
			tty.typed("submit Yes\n")
			tty.expect(`response "` + "```" + `\nsubmit(\"Yes\")\n` + "```" + `", <nil>`)
			tty.expect("close: <nil>")
			tty.typed("hello\n")
			tty.expect(`then read "hello\n", <nil>`)
		})
	}
}

// control calls a function with the descriptor of a file, which stays one whose reads end when it is
// closed.
func control(t *testing.T, f *os.File, do func(fd int) error) {
	t.Helper()
	c, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := c.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}

// terminal is a pseudo-terminal with the test binary on it.
type terminal struct {
	t    *testing.T
	ptmx *os.File
	cmd  *exec.Cmd

	mu    sync.Mutex
	shown bytes.Buffer
}

func newTerminal(t *testing.T, shell string) *terminal {
	t.Helper()
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	var n int
	control(t, ptmx, func(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0) })
	control(t, ptmx, func(fd int) (err error) { n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN); return err })
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer tty.Close()
	p := &terminal{t: t, ptmx: ptmx, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), "TERMINAL_TEST_SHELL="+shell, "HOME="+t.TempDir(), "PS1=$ ", "ENV=", "TERM=dumb")
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = tty, tty, tty
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 4096)
		for {
			n, err := ptmx.Read(b)
			p.mu.Lock()
			p.shown.Write(b[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		ptmx.Close()
		<-read
	})
	return p
}

func (p *terminal) typed(text string) {
	p.t.Helper()
	if _, err := p.ptmx.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *terminal) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown.String()
}

func (p *terminal) expect(text string) {
	p.t.Helper()
	p.until(func() bool { return strings.Contains(p.screen(), text) })
}

func (p *terminal) until(holds func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("it does not come about; the screen has\n%s", p.screen())
		}
	}
}

// foreground is the process group that has the terminal.
func (p *terminal) foreground() int {
	var n int
	control(p.t, p.ptmx, func(fd int) (err error) { n, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP); return err })
	return n
}

// running is the name of the program that leads that group.
func (p *terminal) running() string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.foreground())) // It may be gone.
	return strings.TrimSpace(string(b))
}
