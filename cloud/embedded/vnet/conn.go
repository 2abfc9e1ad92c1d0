package vnet

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

var (
	errClosed   = net.ErrClosed
	errDeadline = os.ErrDeadlineExceeded
)

// Conn is one end of a TCP connection. Beyond net.Conn it has the methods of net.TCPConn that
// matter without a kernel. It is safe for concurrent use.
type Conn struct {
	local, remote *net.TCPAddr
	in, out       *pipe
	from, to      *Host // the end's own host, and the peer's
	stack         *Stack

	readDeadline, writeDeadline deadline

	closeOnce sync.Once
	closed    chan struct{}
}

var _ net.Conn = (*Conn)(nil)

// connect joins two hosts. dialled is the address the client asked for, which is the server's own
// only if no service lay between.
func connect(client *Stack, server *listener, port uint16, dialled *net.TCPAddr) (c, s *Conn) {
	n := client.host.net
	there := newPipe(&path{net: n, src: client.host, dst: server.stack.host})
	back := newPipe(&path{net: n, src: server.stack.host, dst: client.host})
	source := &net.TCPAddr{IP: client.host.addr.AsSlice(), Port: int(port)}
	target := &net.TCPAddr{IP: server.stack.host.addr.AsSlice(), Port: server.addr.Port}
	if dialled.IP.IsLoopback() && server.stack.host == client.host {
		source.IP, target.IP = dialled.IP, dialled.IP
	}
	c = &Conn{
		local: source, remote: dialled, in: back, out: there, from: client.host, to: server.stack.host,
		stack: client, closed: make(chan struct{}),
	}
	s = &Conn{
		local: target, remote: source, in: there, out: back, from: server.stack.host, to: client.host,
		stack: server.stack, closed: make(chan struct{}),
	}
	return c, s
}

func (c *Conn) Read(b []byte) (int, error) {
	if errno := c.stack.fault("read"); errno != 0 {
		return 0, c.failure("read", errno)
	}
	n, err := c.in.read(b, &c.readDeadline, c.closed)
	if err != nil && err != io.EOF {
		err = c.failure("read", err)
	}
	return n, err
}

func (c *Conn) Write(b []byte) (int, error) {
	if errno := c.stack.fault("write"); errno != 0 {
		return 0, c.failure("write", errno)
	}
	n, err := c.out.write(b, &c.writeDeadline, c.closed)
	c.from.sent(n)
	c.to.received(n)
	if err != nil {
		err = c.failure("write", err)
	}
	return n, err
}

func (c *Conn) failure(op string, err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		err = sysError(op, errno)
	}
	return opError(op, "tcp", c.local, c.remote, err)
}

// Close sends what was written and ends both directions. Like the kernel it resets the connection
// if data was received that nobody read.
func (c *Conn) Close() error {
	err := opError("close", "tcp", c.local, c.remote, errClosed)
	c.closeOnce.Do(func() {
		err = nil
		close(c.closed)
		c.stack.forget(c)
		if c.in.deafen() {
			c.out.abort()
		} else {
			c.out.finish()
		}
	})
	return err
}

// abort ends the connection at once; the peer sees a reset.
func (c *Conn) abort() {
	c.closeOnce.Do(func() {
		close(c.closed)
		c.stack.forget(c)
		c.in.abort()
		c.out.abort()
	})
}

// CloseWrite ends the outgoing direction: the peer reads EOF after what was written.
func (c *Conn) CloseWrite() error {
	if isClosed(c.closed) {
		return opError("close", "tcp", c.local, c.remote, errClosed)
	}
	c.out.finish()
	return nil
}

// LocalAddr returns a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns a *net.TCPAddr: for the dialling side the address it dialled, which may be a
// service's.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *Conn) SetReadDeadline(t time.Time) error {
	if isClosed(c.closed) {
		return opError("set", "tcp", nil, c.local, errClosed)
	}
	c.readDeadline.set(t)
	return nil
}

func (c *Conn) SetWriteDeadline(t time.Time) error {
	if isClosed(c.closed) {
		return opError("set", "tcp", nil, c.local, errClosed)
	}
	c.writeDeadline.set(t)
	return nil
}
