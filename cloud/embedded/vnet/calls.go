package vnet

import "syscall"

// OnCall makes f decide which system calls on the sockets of a stack fail, and with which error. Nil makes all
// succeed again. f is called before each "socket", "connect", "bind", "listen", "accept", "read" and "write", on
// open sockets too, and returns 0 if the call may go on. A read that already waits is not interrupted.
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
