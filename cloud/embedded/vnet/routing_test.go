package vnet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

var (
	service  = netip.MustParseAddrPort("10.96.0.20:80")
	endpoint = netip.MustParseAddrPort("10.244.1.3:8080")
)

func TestRouterRewritesTheDestination(t *testing.T) {
	n, client, server := pair(t)
	l := listen(t, server, ":8080")
	n.SetRouter(routes{service: endpoint})
	c := dial(t, client, service.String())
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if got := c.RemoteAddr().String(); got != service.String() {
		t.Errorf("the client sees %s, want the service it dialled", got)
	}
	if got := s.LocalAddr().String(); got != endpoint.String() {
		t.Errorf("the server sees itself as %s", got)
	}
	n.SetRouter(routes{service: ErrReject})
	if _, err := client.DialContext(context.Background(), "tcp", service.String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial a service without endpoints: %v", err)
	}
}

func TestAdmitterDropsAndChangeRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, client, server := pair(t)
		listen(t, server, ":8080")
		var open atomic.Bool
		n.SetAdmitter(admitFunc(func(_ netip.Addr, dst netip.AddrPort) bool { return open.Load() || dst.Port() != 8080 }))
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if _, err := client.DialContext(ctx, "tcp", endpoint.String()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial against the policy: %v", err)
		}
		if _, err := client.DialContext(context.Background(), "tcp", "10.244.1.3:81"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial a closed port the policy allows: %v", err)
		}
		start := time.Now()
		time.AfterFunc(5*time.Second, func() { open.Store(true); n.Changed() })
		dial(t, client, endpoint.String()).Close()
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("the dial took %v, want it to end when the policy opened", d)
		}
		client.host.Close()
		server.host.Close()
	})
}

func TestDatagramsThroughAService(t *testing.T) {
	n, client, server := pair(t)
	n.SetRouter(routes{service: endpoint})
	srv, err := server.ListenPacket("udp", ":8080")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		buf := make([]byte, 100)
		for {
			k, from, err := srv.ReadFrom(buf)
			if err != nil {
				return
			}
			srv.WriteTo(buf[:k], from)
		}
	}()
	// Dialled and undialled sockets both see the reply come from the service.
	c, err := client.DialContext(context.Background(), "udp", service.String())
	if err != nil {
		t.Fatal(err)
	}
	c.Write([]byte("ping"))
	buf := make([]byte, 100)
	if k, err := c.Read(buf); err != nil || string(buf[:k]) != "ping" {
		t.Fatalf("read %q, %v", buf[:k], err)
	}
	p, err := client.ListenPacket("udp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	p.WriteTo([]byte("pong"), net.UDPAddrFromAddrPort(service))
	k, from, err := p.ReadFrom(buf)
	if err != nil || string(buf[:k]) != "pong" || from.String() != service.String() {
		t.Fatalf("read %q from %v, %v", buf[:k], from, err)
	}
	srv.Close()
}

func TestLoopbackAndBindings(t *testing.T) {
	_, client, server := pair(t)
	l := listen(t, server, "127.0.0.1:90")
	dial(t, server, "localhost:90").Close()
	if _, err := client.DialContext(context.Background(), "tcp", "10.244.1.3:90"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial a loopback port from outside: %v", err)
	}
	if _, err := server.Listen("tcp", ":90"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listen on the wildcard beside loopback: %v", err)
	}
	if _, err := server.Listen("tcp", "10.244.1.3:90"); err != nil {
		t.Errorf("listen on another address of the host: %v", err)
	}
	l.Close()
}

func TestCounters(t *testing.T) {
	_, client, server := pair(t)
	c, s := connected(t, client, server)
	c.Write(make([]byte, 5000))
	s.Write(make([]byte, 100))
	cc, sc := client.host.Counters(), server.host.Counters()
	if cc.SentBytes.Load() != 5000 || sc.ReceivedBytes.Load() != 5000 || cc.ReceivedBytes.Load() != 100 || sc.SentBytes.Load() != 100 {
		t.Errorf("client %d sent %d received, server %d sent %d received",
			cc.SentBytes.Load(), cc.ReceivedBytes.Load(), sc.SentBytes.Load(), sc.ReceivedBytes.Load())
	}
}

func TestPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, client, server := pair(t)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := client.Ping(ctx, serverAddr); err != nil {
			t.Errorf("ping a host: %v", err)
		}
		remove := n.Disturb(anywhere, Link{Delay: 50 * time.Millisecond})
		if d, err := client.Ping(ctx, serverAddr); err != nil || d != 100*time.Millisecond {
			t.Errorf("ping over a slow link: %v, %v", d, err)
		}
		remove()
		if _, err := client.Ping(ctx, netip.MustParseAddr("10.244.9.9")); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("ping nobody: %v", err)
		}
		if _, err := client.Ping(ctx, service.Addr()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ping a service: %v", err)
		}
		client.host.Close()
		server.host.Close()
	})
}

func TestSockets(t *testing.T) {
	_, client, server := pair(t)
	listen(t, server, ":80")
	dial(t, client, "10.244.1.3:80")
	var listening, established int
	for _, s := range server.host.Sockets() {
		if s.Listening {
			listening++
		} else {
			established++
		}
	}
	if listening != 1 || established != 1 {
		t.Errorf("%d listening and %d established, want one each", listening, established)
	}
}
