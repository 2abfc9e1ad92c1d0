package tool

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
)

// signals are the names of signals, without SIG, in the order kill -l shows them.
var signals = []struct {
	name   string
	signal syscall.Signal
}{
	{"HUP", syscall.SIGHUP},
	{"INT", syscall.SIGINT},
	{"QUIT", syscall.SIGQUIT},
	{"ILL", syscall.SIGILL},
	{"TRAP", syscall.SIGTRAP},
	{"ABRT", syscall.SIGABRT},
	{"BUS", syscall.SIGBUS},
	{"FPE", syscall.SIGFPE},
	{"KILL", syscall.SIGKILL},
	{"USR1", syscall.SIGUSR1},
	{"SEGV", syscall.SIGSEGV},
	{"USR2", syscall.SIGUSR2},
	{"PIPE", syscall.SIGPIPE},
	{"ALRM", syscall.SIGALRM},
	{"TERM", syscall.SIGTERM},
	{"CHLD", syscall.SIGCHLD},
	{"CONT", syscall.SIGCONT},
	{"STOP", syscall.SIGSTOP},
	{"TSTP", syscall.SIGTSTP},
	{"TTIN", syscall.SIGTTIN},
	{"TTOU", syscall.SIGTTOU},
	{"URG", syscall.SIGURG},
	{"XCPU", syscall.SIGXCPU},
	{"XFSZ", syscall.SIGXFSZ},
	{"VTALRM", syscall.SIGVTALRM},
	{"PROF", syscall.SIGPROF},
	{"WINCH", syscall.SIGWINCH},
	{"IO", syscall.SIGIO},
	{"SYS", syscall.SIGSYS},
}

// ParseSignal reads a signal's name, with or without SIG and in any case, or its number. Signal 0,
// which only asks whether a process exists, is "0" or "EXIT".
func ParseSignal(s string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(s); err == nil && n >= 0 && n < 65 {
		return syscall.Signal(n), nil
	}
	name := strings.TrimPrefix(strings.ToUpper(s), "SIG")
	if name == "EXIT" {
		return 0, nil
	}
	for _, sig := range signals {
		if sig.name == name {
			return sig.signal, nil
		}
	}
	return 0, fmt.Errorf("bad signal name '%s'", s)
}

// SignalName returns a signal's name without SIG, or its number.
func SignalName(s syscall.Signal) string {
	for _, sig := range signals {
		if sig.signal == s {
			return sig.name
		}
	}
	return strconv.Itoa(int(s))
}

// SignalNames returns the names of all signals, without SIG.
func SignalNames() []string {
	names := make([]string, len(signals))
	for i, s := range signals {
		names[i] = s.name
	}
	return names
}
