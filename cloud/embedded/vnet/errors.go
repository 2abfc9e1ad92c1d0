package vnet

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
)

// dialTimeout is what package net reports when a dial's context runs out of time: it reads
// "i/o timeout" and is both os.ErrDeadlineExceeded and context.DeadlineExceeded.
type dialTimeout struct{}

func (dialTimeout) Error() string   { return "i/o timeout" }
func (dialTimeout) Timeout() bool   { return true }
func (dialTimeout) Temporary() bool { return true }
func (dialTimeout) Is(err error) bool {
	return err == os.ErrDeadlineExceeded || err == context.DeadlineExceeded
}

// dialCanceled is what package net reports when a dial's context is cancelled.
type dialCanceled struct{}

func (dialCanceled) Error() string     { return "operation was canceled" }
func (dialCanceled) Is(err error) bool { return err == context.Canceled }

// contextError maps a context's error to the one package net shows for it.
func contextError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return dialTimeout{}
	}
	return dialCanceled{}
}

// sysError wraps an errno as the system call that returned it would.
func sysError(call string, errno syscall.Errno) error { return os.NewSyscallError(call, errno) }

func opError(op, network string, source, addr net.Addr, err error) error {
	return &net.OpError{Op: op, Net: network, Source: source, Addr: addr, Err: err}
}
