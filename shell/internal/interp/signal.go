package interp

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// traps are what a shell does on signals, and on EXIT and ERR, which are treated as such.
type traps struct {
	mu      sync.Mutex
	actions map[string]string // by name without SIG; "" ignores; none is the default
	pending []string
	arrived chan struct{} // has an element while there are pending ones
	taken   bool          // the process handles its signals itself
	forward func(syscall.Signal)
}

func newTraps() *traps {
	return &traps{actions: map[string]string{}, arrived: make(chan struct{}, 1)}
}

// fork returns the traps of a subshell, which are only those that ignore.
func (t *traps) fork() *traps {
	c := newTraps()
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, action := range t.actions {
		if action == "" {
			c.actions[name] = ""
		}
	}
	return c
}

func (t *traps) get(name string) (action string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	action, ok = t.actions[name]
	return action, ok
}

// takeSignals makes signals come to the shell instead of ending it. A process that never asks for
// its signals dies of them, which is what a script without traps should do.
func (s *Shell) takeSignals(ctx context.Context) {
	t := s.traps
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken || s.subshell && !s.process {
		return
	}
	t.taken = true
	signals := s.env.Notify()
	if signals == nil {
		return
	}
	go func() {
		for {
			select {
			case sig := <-signals:
				s.deliver(t, sig)
			case <-ctx.Done():
				return
			}
		}
	}()
}

// takesSignal reports whether the shell itself, not a copy of it, handles a signal.
func (s *Shell) takesSignal(sig syscall.Signal) bool {
	s.traps.mu.Lock()
	defer s.traps.mu.Unlock()
	return s.traps.taken && sig != 0 && sig != syscall.SIGKILL && (!s.subshell || s.process)
}

// deliver does what the kernel does with a signal for the shell.
func (s *Shell) deliver(t *traps, sig syscall.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.forward != nil {
		t.forward(sig)
		return
	}
	name := tool.SignalName(sig)
	action, trapped := t.actions[name]
	switch {
	case trapped && action == "":
	case trapped:
		t.pending = append(t.pending, name)
		select {
		case t.arrived <- struct{}{}:
		default:
		}
	case s.env.PID == 1 || s.interactive || harmless(sig):
		// The kernel does not deliver to PID 1 what would take its default action.
	default:
		s.kill(kit.Killed{Signal: sig})
	}
}

// harmless are the signals whose default action is to do nothing, or to stop, which programs here
// cannot.
func harmless(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGCHLD, syscall.SIGURG, syscall.SIGWINCH, syscall.SIGCONT,
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGSTOP:
		return true
	}
	return false
}

// runTraps runs the actions of signals that have arrived.
func (s *Shell) runTraps(ctx context.Context) flow {
	for {
		s.traps.mu.Lock()
		if len(s.traps.pending) == 0 || s.trapping {
			s.traps.mu.Unlock()
			return flowNext
		}
		name := s.traps.pending[0]
		s.traps.pending = s.traps.pending[1:]
		action := s.traps.actions[name]
		if len(s.traps.pending) == 0 {
			select {
			case <-s.traps.arrived:
			default:
			}
		}
		s.traps.mu.Unlock()
		if fl := s.trap(ctx, action); fl != flowNext {
			return fl
		}
	}
}

// trap runs an action, which does not change the status unless it exits.
func (s *Shell) trap(ctx context.Context, action string) flow {
	if action == "" {
		return flowNext
	}
	status, line := s.status, s.line
	s.trapping = true
	fl := s.eval(ctx, action)
	s.trapping = false
	if s.line = line; fl != flowExit {
		s.status = status
	}
	return fl
}

// exitTrap runs the EXIT trap, once.
func (s *Shell) exitTrap(ctx context.Context) {
	s.traps.mu.Lock()
	action := s.traps.actions["EXIT"]
	delete(s.traps.actions, "EXIT")
	s.traps.mu.Unlock()
	if action == "" || ctx.Err() != nil {
		return
	}
	s.trap(ctx, action)
}

// errTrap runs the ERR trap of bash.
func (s *Shell) errTrap(ctx context.Context) flow {
	action, ok := s.traps.get("ERR")
	if !ok || s.trapping {
		return flowNext
	}
	return s.trap(ctx, action)
}

// errTrapped is the cause of a wait that a signal ended.
var errTrapped = errors.New("a trapped signal arrived")

// none reports whether no signal has a trap. Only the shell itself can change that.
func (t *traps) none() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.actions) == 0
}

// untilTrap returns a context that also ends when a signal arrives that has a trap.
func (s *Shell) untilTrap(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.traps.none() {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		select {
		case <-s.traps.arrived:
			select {
			case s.traps.arrived <- struct{}{}: // For runTraps to take.
			default:
			}
			cancel(errTrapped)
		case <-done:
		}
	}()
	return ctx, func() { close(done); cancel(nil) }
}

// builtinTrap is trap [action] signal...
func builtinTrap(s *Shell, ctx context.Context, args []string) flow {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) > 0 && args[0] == "-l" {
		return s.printf("%s\n", strings.Join(tool.SignalNames(), " "))
	}
	if len(args) == 0 || args[0] == "-p" {
		return s.listTraps()
	}
	action, reset := args[0], args[0] == "-"
	names := args[1:]
	if _, err := tool.ParseSignal(action); len(names) == 0 || err == nil && isNumber(action) {
		names, reset = args, true // trap INT, and trap 0 of old, reset.
	}
	for _, name := range names {
		canonical, ok := trapName(name)
		if !ok {
			s.fail(1, "trap: %s: invalid signal specification", name)
			continue
		}
		s.traps.mu.Lock()
		if reset {
			delete(s.traps.actions, canonical)
		} else {
			s.traps.actions[canonical] = action
		}
		s.traps.mu.Unlock()
		if canonical != "EXIT" && canonical != "ERR" && !reset {
			s.takeSignals(ctx)
		}
	}
	return flowNext
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// trapName returns the name by which traps are kept.
func trapName(name string) (string, bool) {
	switch upper := strings.ToUpper(name); upper {
	case "EXIT", "0":
		return "EXIT", true
	case "ERR", "DEBUG", "RETURN":
		return upper, true
	}
	sig, err := tool.ParseSignal(name)
	if err != nil {
		return "", false
	}
	return tool.SignalName(sig), true
}

func (s *Shell) listTraps() flow {
	s.traps.mu.Lock()
	actions := maps.Clone(s.traps.actions)
	s.traps.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(actions)) {
		quoted := "'" + strings.ReplaceAll(actions[name], "'", `'\''`) + "'"
		if s.bash && name != "EXIT" && name != "ERR" {
			name = "SIG" + name
		}
		if fl := s.printf("trap -- %s %s\n", quoted, name); fl != flowNext {
			return fl
		}
	}
	return flowNext
}
