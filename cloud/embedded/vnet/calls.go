package vnet

import "syscall"

// OnCall makes f decide which calls into the kernel fail for the sockets of a stack, and with what;
// nil makes all succeed again. f is asked before each of "socket", "connect", "bind", "listen",
// "accept", "read" and "write", on open sockets too, and answers 0 for those that may go on.
// A read that waits already is not interrupted.
func (s *Stack) OnCall(f func(call string) syscall.Errno) {
	if f == nil {
		s.calls.Store(nil)
	} else {
		s.calls.Store(&f)
	}
}

// fault returns what a call fails with, or 0. When nothing is disturbed it costs one load.
func (s *Stack) fault(call string) syscall.Errno {
	f := s.calls.Load()
	if f == nil {
		return 0
	}
	return (*f)(call)
}

// check is fault for several calls in a row, as an error that names the one that failed.
func (s *Stack) check(calls ...string) error {
	if s.calls.Load() == nil {
		return nil
	}
	for _, call := range calls {
		if errno := s.fault(call); errno != 0 {
			return sysError(call, errno)
		}
	}
	return nil
}
