package vnet

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// failing answers one call with an errno.
func failing(call string, errno syscall.Errno) func(string) syscall.Errno {
	return func(c string) syscall.Errno {
		if c == call {
			return errno
		}
		return 0
	}
}

func TestCallsFailInTheKernelsWords(t *testing.T) {
	_, client, server := pair(t)
	echo(t, server)
	ctx := context.Background()
	tcp := func() error {
		c, err := client.DialContext(ctx, "tcp", "10.244.1.3:7")
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write([]byte("hello")); err != nil {
			return err
		}
		_, err = io.ReadFull(c, make([]byte, 5))
		return err
	}
	udp := func() error {
		c, err := client.DialContext(ctx, "udp", "10.244.1.3:53")
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write([]byte("?")); err != nil {
			return err
		}
		if _, err := c.Read(make([]byte, 9)); errors.Is(err, syscall.ECONNREFUSED) {
			return nil // Nobody is there, which is no fault.
		} else {
			return err
		}
	}
	announce := func() error {
		l, err := client.Listen("tcp", ":81")
		if err == nil {
			l.Close()
		}
		return err
	}
	for _, c := range []struct {
		call  string
		errno syscall.Errno
		do    func() error
		want  string
	}{
		{"socket", syscall.EMFILE, tcp, "dial tcp 10.244.1.3:7: socket: too many open files"},
		{"connect", syscall.ENOMEM, tcp, "dial tcp 10.244.1.3:7: connect: cannot allocate memory"},
		{"connect", syscall.ENOBUFS, udp, "dial udp 10.244.1.3:53: connect: no buffer space available"},
		{"write", syscall.ENOBUFS, tcp, "->10.244.1.3:7: write: no buffer space available"},
		{"write", syscall.ENOMEM, udp, "->10.244.1.3:53: write: cannot allocate memory"},
		{"read", syscall.ENOMEM, tcp, "->10.244.1.3:7: read: cannot allocate memory"},
		{"read", syscall.EIO, udp, "->10.244.1.3:53: read: input/output error"},
		{"bind", syscall.ENOMEM, announce, "listen tcp [::]:81: bind: cannot allocate memory"},
		{"listen", syscall.EADDRINUSE, announce, "listen tcp [::]:81: listen: address already in use"},
	} {
		client.OnCall(failing(c.call, c.errno))
		if err := c.do(); err == nil || !strings.HasSuffix(err.Error(), c.want) || !errors.Is(err, c.errno) {
			t.Errorf("%s: %v; want ...%s", c.call, err, c.want)
		}
		client.OnCall(nil)
		if err := c.do(); err != nil {
			t.Errorf("%s, undisturbed: %v", c.call, err)
		}
	}
	// The stack of the server never failed; that of the client fails alone.
	client.OnCall(failing("connect", syscall.ENOMEM))
	if c, err := server.DialContext(ctx, "tcp", "10.244.1.3:7"); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
}

func TestOpenConnectionsFailToo(t *testing.T) {
	_, client, server := pair(t)
	echo(t, server)
	c := dial(t, client, "10.244.1.3:7")
	roundTrip(t, c, 100)
	client.OnCall(failing("write", syscall.ENOBUFS))
	if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.ENOBUFS) {
		t.Error(err)
	}
	client.OnCall(nil)
	roundTrip(t, c, 100)
}

// A connection that cannot be accepted stays in the queue, as in the kernel's.
func TestAcceptFailsWithoutLosingTheConnection(t *testing.T) {
	_, client, server := pair(t)
	l := listen(t, server, ":7")
	type accepted struct {
		c   net.Conn
		err error
	}
	results := make(chan accepted)
	waiting := make(chan struct{})
	go func() {
		close(waiting)
		for range 3 {
			c, err := l.Accept()
			results <- accepted{c, err}
		}
	}()
	<-waiting
	var asked atomic.Int32
	server.OnCall(func(call string) syscall.Errno {
		if call == "accept" && asked.Add(1) <= 2 {
			return syscall.EMFILE
		}
		return 0
	})
	c := dial(t, client, "10.244.1.3:7")
	for range 2 {
		r := <-results
		if r.err == nil || r.err.Error() != "accept tcp [::]:7: accept4: too many open files" {
			t.Fatalf("%v", r.err)
		}
		// Servers ask whether it is worth trying again.
		if e, ok := errors.AsType[interface {
			error
			Temporary() bool
		}](r.err); !ok || !e.Temporary() {
			t.Error("a server would give up")
		}
	}
	r := <-results
	if r.err != nil {
		t.Fatal(r.err)
	}
	if r.c.RemoteAddr().String() != c.LocalAddr().String() {
		t.Errorf("accepted %v, not %v", r.c.RemoteAddr(), c.LocalAddr())
	}
}
