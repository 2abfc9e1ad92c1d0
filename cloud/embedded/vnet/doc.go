// Package vnet is an in-memory IPv4 network: hosts with addresses, TCP and UDP between them, and
// links that can be disturbed. It needs no privileges and opens no socket of the operating system.
//
// A [Network] holds [Host]s; a host is what a network namespace is to the kernel (a pod, a node).
// Whoever opens sockets on a host does so through a [Stack], which remembers them, so that the end
// of one container closes its sockets and leaves its neighbours' alone:
//
//	n := vnet.New(vnet.Config{})
//	h, _ := n.AddHost(netip.MustParseAddr("10.244.0.5"))
//	ln, _ := h.NewStack().Listen("tcp", ":80")
//	c, _ := other.NewStack().DialContext(ctx, "tcp", "10.244.0.5:80")
//
// Connections are stream-exact [net.Conn]s: deadlines, half-close, addresses of the kernel's types,
// and the kernel's errors ([syscall.ECONNREFUSED], [syscall.ECONNRESET], [os.ErrDeadlineExceeded])
// in the texts package net gives them. Addresses are numeric; names are resolved by the caller.
//
// Two hooks make it a cluster network: a [Router] rewrites a destination as kube-proxy does, and an
// [Admitter] drops what a NetworkPolicy forbids. Both may be swapped at any time.
package vnet
