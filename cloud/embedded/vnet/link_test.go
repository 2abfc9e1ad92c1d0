package vnet

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func anywhere(_, _ netip.Addr) bool { return true }

// echo answers everything it is sent on port 7.
func echo(t *testing.T, s *Stack) {
	t.Helper()
	l := listen(t, s, ":7")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(c, c)
				c.Close()
			}()
		}
	}()
}

// roundTrip returns how long one message to the echo server and back takes.
func roundTrip(t *testing.T, rw io.ReadWriter, size int) time.Duration {
	t.Helper()
	start := time.Now()
	if _, err := rw.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(rw, make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}

// inBubble runs f on a network whose time is virtual.
func inBubble(t *testing.T, f func(t *testing.T, n *Network, client, server *Stack)) {
	synctest.Test(t, func(t *testing.T) {
		n, client, server := pair(t)
		f(t, n, client, server)
		client.host.Close()
		server.host.Close()
	})
}

func TestDelayIsPaidPerDirection(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network, client, server *Stack) {
		echo(t, server)
		remove := n.Disturb(func(src, _ netip.Addr) bool { return src == serverAddr }, Link{Delay: 300 * time.Millisecond})
		start := time.Now()
		c := dial(t, client, "10.244.1.3:7")
		if d := time.Since(start); d != 300*time.Millisecond {
			t.Errorf("dial took %v, want one delayed SYN-ACK", d)
		}
		if d := roundTrip(t, c, 10); d != 300*time.Millisecond {
			t.Errorf("round trip took %v, want 300ms", d)
		}
		remove()
		if d := roundTrip(t, c, 10); d != 0 {
			t.Errorf("round trip took %v after the delay was removed", d)
		}
	})
}

func TestDelaysOverlapAndOthersAreSpared(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network, client, server *Stack) {
		echo(t, server)
		bystander := addStack(t, n, netip.MustParseAddr("10.244.2.9"))
		defer n.Disturb(func(src, dst netip.Addr) bool { return src == clientAddr && dst == serverAddr }, Link{Delay: time.Second})()
		c := dial(t, client, "10.244.1.3:7")
		start := time.Now()
		for range 5 {
			if _, err := c.Write([]byte("ab")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.ReadFull(c, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("five writes in flight took %v, want 1s", d)
		}
		if d := roundTrip(t, dial(t, bystander, "10.244.1.3:7"), 10); d != 0 {
			t.Errorf("a bystander's round trip took %v", d)
		}
	})
}

func TestJitterStaysInItsRange(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network, client, server *Stack) {
		echo(t, server)
		c := dial(t, client, "10.244.1.3:7")
		defer n.Disturb(func(src, _ netip.Addr) bool { return src == clientAddr }, Link{Delay: 100 * time.Millisecond, Jitter: 40 * time.Millisecond})()
		seen := map[time.Duration]bool{}
		for range 50 {
			d := roundTrip(t, c, 10)
			if d < 60*time.Millisecond || d > 140*time.Millisecond {
				t.Fatalf("round trip took %v, want 100ms ± 40ms", d)
			}
			seen[d] = true
		}
		if len(seen) < 25 {
			t.Errorf("50 round trips took only %d different times", len(seen))
		}
	})
}

func TestBandwidthIsSharedByASender(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network, client, server *Stack) {
		echo(t, server)
		a, b := dial(t, client, "10.244.1.3:7"), dial(t, client, "10.244.1.3:7")
		defer n.Disturb(func(src, _ netip.Addr) bool { return src == clientAddr }, Link{Bandwidth: 100_000})()
		start := time.Now()
		for _, c := range []io.Writer{a, b} {
			if _, err := c.Write(make([]byte, 50_000)); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []io.Reader{a, b} {
			if _, err := io.ReadFull(c, make([]byte, 50_000)); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("100 kB at 100 kB/s took %v", d)
		}
	})
}

func TestLossCostsRetransmissions(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network, client, server *Stack) {
		echo(t, server)
		c := dial(t, client, "10.244.1.3:7")
		defer n.Disturb(func(src, _ netip.Addr) bool { return src == clientAddr }, Link{Loss: 0.3})()
		slow, total := 0, 200
		for range total {
			switch d := roundTrip(t, c, 10); {
			case d == 0:
			case d >= minRTO:
				slow++
			default:
				t.Fatalf("round trip took %v, want none or at least one retransmission", d)
			}
		}
		if slow < total*15/100 || slow > total*45/100 {
			t.Errorf("%d of %d round trips were slow at 30%% loss", slow, total)
		}
	})
}

func TestPartition(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network, client, server *Stack) {
		echo(t, server)
		c := dial(t, client, "10.244.1.3:7")
		heal := n.Disturb(anywhere, Link{Down: true})

		c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := c.Write([]byte("0123456789")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read over a dead link: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if _, err := client.DialContext(ctx, "tcp", "10.244.1.3:7"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial over a dead link: %v", err)
		}
		start := time.Now()
		_, err := client.DialContext(context.Background(), "tcp", "10.244.1.3:7")
		if !errors.Is(err, syscall.ETIMEDOUT) || time.Since(start) < time.Minute {
			t.Errorf("dial without a deadline: %v after %v", err, time.Since(start))
		}

		// What was sent before is delivered once the link is back.
		heal()
		c.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := io.ReadFull(c, make([]byte, 10)); err != nil {
			t.Errorf("read after the link came back: %v", err)
		}
	})
}

func TestDialIsRetriedWhenTheLinkComesBack(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Network, client, server *Stack) {
		echo(t, server)
		heal := n.Disturb(anywhere, Link{Down: true})
		start := time.Now()
		time.AfterFunc(10*time.Second, heal)
		dial(t, client, "10.244.1.3:7").Close()
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("dial took %v, want the 10s of the outage", d)
		}
	})
}

func TestDatagramLossDuplicationCorruption(t *testing.T) {
	for name, tc := range map[string]struct {
		link     Link
		min, max int
	}{
		"perfect":   {Link{}, 200, 200},
		"loss":      {Link{Loss: 0.5}, 60, 140},
		"corrupt":   {Link{Corrupt: 0.5}, 60, 140},
		"duplicate": {Link{Duplicate: 0.5}, 260, 340},
		"down":      {Link{Down: true}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, n *Network, client, server *Stack) {
				defer n.Disturb(anywhere, tc.link)()
				in, err := server.ListenPacket("udp", ":53")
				if err != nil {
					t.Fatal(err)
				}
				out, err := client.DialContext(context.Background(), "udp", "10.244.1.3:53")
				if err != nil {
					t.Fatal(err)
				}
				got := 0
				for range 200 {
					if _, err := out.Write([]byte("x")); err != nil {
						t.Fatal(err)
					}
					for {
						in.SetReadDeadline(time.Now().Add(time.Millisecond))
						if _, _, err := in.ReadFrom(make([]byte, 10)); err != nil {
							break
						}
						got++
					}
				}
				if got < tc.min || got > tc.max {
					t.Errorf("%d of 200 datagrams arrived, want %d to %d", got, tc.min, tc.max)
				}
			})
		})
	}
}
