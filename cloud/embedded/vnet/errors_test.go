package vnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// transport is what both the kernel and vnet offer, so that one scenario can run on each.
type transport struct {
	listen func(addr string) (net.Listener, error)
	dial   func(ctx context.Context, addr string) (net.Conn, error)
	packet func(addr string) (net.Conn, error)
}

func kernelAndVnet(t *testing.T) map[string]transport {
	var d net.Dialer
	_, s, _ := pair(t)
	return map[string]transport{
		"kernel": {
			listen: func(addr string) (net.Listener, error) { return net.Listen("tcp", addr) },
			dial:   func(ctx context.Context, addr string) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) },
			packet: func(addr string) (net.Conn, error) { return d.Dial("udp", addr) },
		},
		"vnet": {
			listen: func(addr string) (net.Listener, error) { return s.Listen("tcp", addr) },
			dial:   func(ctx context.Context, addr string) (net.Conn, error) { return s.DialContext(ctx, "tcp", addr) },
			packet: func(addr string) (net.Conn, error) { return s.DialContext(context.Background(), "udp", addr) },
		},
	}
}

// TestErrorsEqualTheKernels runs each scenario over loopback TCP and over vnet and compares texts
// (ports aside) and what errors.Is says.
func TestErrorsEqualTheKernels(t *testing.T) {
	ctx := context.Background()
	// established returns both ends of a connection over loopback.
	established := func(tr transport) (net.Conn, net.Conn, error) {
		l, err := tr.listen("127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		defer l.Close()
		c, err := tr.dial(ctx, l.Addr().String())
		if err != nil {
			return nil, nil, err
		}
		s, err := l.Accept()
		return c, s, err
	}
	onConn := func(f func(c, s net.Conn) error) func(transport) error {
		return func(tr transport) error {
			c, s, err := established(tr)
			if err != nil {
				return err
			}
			defer c.Close()
			defer s.Close()
			return f(c, s)
		}
	}
	read := func(c net.Conn) error { _, err := c.Read(make([]byte, 1)); return err }
	for _, tc := range []struct {
		name string
		run  func(transport) error
		is   []error
	}{
		{"dial refused", func(tr transport) error {
			_, err := tr.dial(ctx, "127.0.0.1:1")
			return err
		}, []error{syscall.ECONNREFUSED}},
		{"dial cancelled", func(tr transport) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, err := tr.dial(ctx, "127.0.0.1:1")
			return err
		}, []error{context.Canceled}},
		{"dial too late", func(tr transport) error {
			ctx, cancel := context.WithDeadline(ctx, time.Unix(1, 0))
			defer cancel()
			_, err := tr.dial(ctx, "127.0.0.1:1")
			return err
		}, []error{context.DeadlineExceeded}},
		{"address in use", func(tr transport) error {
			l, err := tr.listen("127.0.0.1:0")
			if err != nil {
				return err
			}
			defer l.Close()
			_, err = tr.listen(l.Addr().String())
			return err
		}, []error{syscall.EADDRINUSE}},
		{"not our address", func(tr transport) error {
			_, err := tr.listen("192.0.2.1:80")
			return err
		}, []error{syscall.EADDRNOTAVAIL}},
		{"accept on a closed listener", func(tr transport) error {
			l, err := tr.listen("127.0.0.1:0")
			if err != nil {
				return err
			}
			l.Close()
			_, err = l.Accept()
			return err
		}, []error{net.ErrClosed}},
		{"read past the deadline", onConn(func(c, _ net.Conn) error {
			c.SetReadDeadline(time.Unix(1, 0))
			return read(c)
		}), []error{os.ErrDeadlineExceeded}},
		{"read after own close", onConn(func(c, _ net.Conn) error {
			c.Close()
			return read(c)
		}), []error{net.ErrClosed}},
		{"write after own close", onConn(func(c, _ net.Conn) error {
			c.Close()
			_, err := c.Write([]byte("x"))
			return err
		}), []error{net.ErrClosed}},
		{"close twice", onConn(func(c, _ net.Conn) error {
			c.Close()
			return c.Close()
		}), []error{net.ErrClosed}},
		{"read after the peer's close", onConn(func(c, s net.Conn) error {
			s.Close()
			return read(c)
		}), []error{io.EOF}},
		{"read after a reset", onConn(func(c, s net.Conn) error {
			// A peer that closes with unread data resets the connection.
			if _, err := c.Write([]byte("unread")); err != nil {
				return err
			}
			s.SetReadDeadline(time.Now().Add(5 * time.Second))
			if err := read(s); err != nil { // The rest is in its buffer now.
				return err
			}
			s.Close()
			return read(c)
		}), []error{syscall.ECONNRESET}},
		{"read what arrived before a reset", onConn(func(c, s net.Conn) error {
			if _, err := c.Write([]byte("unread")); err != nil {
				return err
			}
			if _, err := s.Write([]byte("a")); err != nil {
				return err
			}
			s.SetReadDeadline(time.Now().Add(5 * time.Second))
			if err := read(s); err != nil {
				return err
			}
			s.Close()
			if err := read(c); err != nil {
				return fmt.Errorf("data that arrived was lost: %w", err)
			}
			return read(c)
		}), []error{syscall.ECONNRESET}},
		{"write to a peer that is gone", onConn(func(c, s net.Conn) error {
			s.Close()
			if err := read(c); err != io.EOF {
				return err
			}
			for range 1000 { // The kernel needs a round trip to notice.
				if _, err := c.Write([]byte("x")); err != nil {
					return err
				}
			}
			return nil
		}), []error{syscall.EPIPE}},
		{"UDP to a closed port", func(tr transport) error {
			c, err := tr.packet("127.0.0.1:1")
			if err != nil {
				return err
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(5 * time.Second))
			if _, err := c.Write([]byte("x")); err != nil {
				return err
			}
			return read(c)
		}, []error{syscall.ECONNREFUSED}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			texts := map[string]string{}
			for name, tr := range kernelAndVnet(t) {
				err := tc.run(tr)
				if err == nil {
					t.Fatalf("%s: no error", name)
				}
				texts[name] = regexp.MustCompile(`127\.0\.0\.1:\d\d+`).ReplaceAllString(err.Error(), "127.0.0.1:PORT")
				for _, target := range tc.is {
					if !errors.Is(err, target) {
						t.Errorf("%s: %v (%T) is not %v", name, err, err, target)
					}
				}
				if ne, ok := errors.AsType[net.Error](err); name == "vnet" && ok {
					if want := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded); ne.Timeout() != want {
						t.Errorf("Timeout() is %v, want %v", ne.Timeout(), want)
					}
				}
			}
			if texts["vnet"] != texts["kernel"] {
				t.Errorf("texts differ\nkernel: %s\nvnet:   %s", texts["kernel"], texts["vnet"])
			}
		})
	}
}

func TestDeadHostResetsItsPeers(t *testing.T) {
	_, client, server := pair(t)
	c, _ := connected(t, client, server)
	blocked := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		blocked <- err
	}()
	server.Host().Close()
	err := <-blocked
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("read from a host that went away: %v", err)
	}
	if want := "read: connection reset by peer"; !regexp.MustCompile(want + "$").MatchString(err.Error()) {
		t.Errorf("text %q does not end in %q", err, want)
	}
}

func TestStackClosesOnlyItsOwn(t *testing.T) {
	_, client, server := pair(t)
	other := server.Host().NewStack()
	keep := listen(t, other, ":81")
	listen(t, server, ":80")
	server.Close()
	if _, err := client.DialContext(context.Background(), "tcp", "10.244.1.3:80"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial the closed stack's port: %v", err)
	}
	dial(t, client, "10.244.1.3:81").Close()
	keep.Close()
	if _, err := server.Listen("tcp", ":80"); err == nil {
		t.Error("a closed stack can listen")
	}
}

func TestUnreachable(t *testing.T) {
	n := New(Config{
		Subnets:     []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")},
		Virtual:     []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		HostTimeout: time.Millisecond,
	})
	s := addStack(t, n, clientAddr)
	for addr, want := range map[string]string{
		"10.244.9.9:80": "dial tcp 10.244.9.9:80: connect: no route to host",
		"192.0.2.1:80":  "dial tcp 192.0.2.1:80: connect: network is unreachable",
		"10.96.3.3:80":  "dial tcp 10.96.3.3:80: i/o timeout",
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		_, err := s.DialContext(ctx, "tcp", addr)
		cancel()
		if err == nil || err.Error() != want {
			t.Errorf("dial %s: %v, want %s", addr, err, want)
		}
	}
}
