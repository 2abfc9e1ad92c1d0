package kv

import (
	"errors"
	"net"
	"syscall"
)

// refused reports whether a request never reached anybody.
func refused(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) || errors.Is(err, syscall.ECONNREFUSED) {
		return true
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
