package terminal

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// modeOf returns the mode of a terminal, if this process has it. It is nil for anything else.
func modeOf(f *os.File) *term.State {
	fd := int(f.Fd())
	if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
		return nil
	}
	mode, err := term.GetState(fd)
	if err != nil {
		return nil
	}
	return mode
}

// regain takes the terminal back from a command that ended, as a shell does it: an interactive shell
// makes its own group the one in the foreground, and a program that is killed leaves its mode.
func regain(tty *os.File, mode *term.State) {
	fd := int(tty.Fd())
	signal.Ignore(syscall.SIGTTOU) // Else this process would be stopped for what follows.
	defer signal.Reset(syscall.SIGTTOU)
	if unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, unix.Getpgrp()) == nil {
		_ = term.Restore(fd, mode)
	}
}
