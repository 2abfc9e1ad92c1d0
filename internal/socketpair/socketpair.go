// Package socketpair joins a process with a child that it starts: each has one end of a connection, and
// no other child inherits it.
package socketpair

import (
	"os"
	"syscall"
)

// New returns the two ends of a connection. Give one of them to the child, by exec.Cmd's ExtraFiles.
func New() (here, there *os.File, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
	}
	return os.NewFile(uintptr(fds[0]), "here"), os.NewFile(uintptr(fds[1]), "there"), nil
}
