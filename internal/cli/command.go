package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// catchSignals returns a channel of the signals that end an environment. They no longer kill the
// process, until release is called.
func catchSignals() (signals <-chan os.Signal, release func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as it is below nohup
		signal.Notify(c, syscall.SIGHUP)
	}
	return c, func() { signal.Stop(c) }
}

// untilSignal returns a context that ends with the first signal, of which tell is told; the second
// kills the process.
func untilSignal(ctx context.Context, tell func()) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals, release := catchSignals()
	go func() {
		defer release()
		select {
		case <-signals:
			tell()
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// statusOf is the exit status that tells of a signal.
func statusOf(sig os.Signal) exitStatus {
	n, _ := sig.(syscall.Signal)
	return exitStatus(ExitSignal + int(n))
}

// runCommand runs a command against the environment and takes over its exit status. Signals are the
// command's business.
func runCommand(s *State, p *place, signals <-chan os.Signal, argv []string) error {
	cmd, err := startCommand(s, p.env, argv)
	if err != nil {
		code := ExitNotRunnable
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			code = ExitNotFound
		}
		return fail(code, fmt.Errorf("run %s: %w", argv[0], err), "")
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case err := <-done:
			return commandStatus(err)
		case sig := <-signals:
			if sig != os.Interrupt || !inForeground() { // else the terminal has sent it to the command too
				_ = cmd.Process.Signal(sig)
			}
		case <-p.broken:
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-done
			return p.why()
		}
	}
}

func startCommand(s *State, e environment, argv []string) (*exec.Cmd, error) {
	bin := filepath.Join(e.dir, "bin")
	if err := linkSelf(bin); err != nil {
		return nil, err
	}
	path := os.Getenv("PATH") + string(os.PathListSeparator) + bin
	if err := os.Setenv("PATH", path); err != nil { // Where the command itself is looked up.
		return nil, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Stdin, s.Stdout, s.Stderr
	return cmd, cmd.Start()
}

// commandStatus turns what Wait returns into this process' exit status.
func commandStatus(err error) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return err
	}
	if st, ok := exit.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		return statusOf(st.Signal())
	}
	return exitStatus(exit.ExitCode())
}

// linkSelf makes this program available as kubectl and aiopslab, for users who have none in PATH.
func linkSelf(bin string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Mkdir(bin, 0o700); err != nil {
		return err
	}
	return errors.Join(os.Symlink(self, filepath.Join(bin, "kubectl")),
		os.Symlink(self, filepath.Join(bin, "aiopslab")))
}

// inForeground reports whether Ctrl-C on the terminal reaches this process and its children.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
