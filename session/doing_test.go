package session

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The lab counts what the agent does, second by second, and knows whether the machine was late before.
func TestMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requests, late atomic.Int64
		late.Store(int64(50 * time.Millisecond))
		m := startMonitor(requests.Load, func() time.Duration { return time.Duration(late.Load()) })
		dialled := m.counted(func(context.Context, string, string) (net.Conn, error) {
			a, b := net.Pipe()
			go func() {
				for one := make([]byte, 1); ; {
					if _, err := b.Read(one); err != nil {
						return
					}
				}
			}()
			return a, nil
		})
		connect := func(sends int) {
			c, err := dialled(t.Context(), "tcp", "geo:8083")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for range sends {
				if _, err := c.Write([]byte("x")); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(500 * time.Millisecond)
		late.Store(int64(100 * time.Millisecond))
		for range 10 { // an agent that looks around
			connect(1)
			requests.Add(20)
			time.Sleep(time.Second)
		}
		for range 150 {
			connect(2)
		}
		late.Store(int64(3 * time.Second))
		d := m.end()
		want := Doing{
			Connections: 160, Sent: 310, Requests: 200, PeakConnections: 150, PeakSent: 300, PeakRequests: 20,
			LateBefore: 50 * time.Millisecond, Late: 3 * time.Second,
		}
		if d != want || m.end() != want {
			t.Errorf("got %+v\nwant %+v", d, want)
		}
		if d.much() == "" {
			t.Error("150 connections at once are not much")
		}
	})
	if much := (Doing{Connections: 500, Sent: 500, Requests: 5000, PeakConnections: 8, PeakSent: 8, PeakRequests: 60}).much(); much != "" {
		t.Errorf("a diligent agent is suspected: %s", much)
	}
}

// One connection is enough for a flood.
func TestMuchOverOneConnection(t *testing.T) {
	if (Doing{Connections: 1, PeakConnections: 1, PeakSent: 400}).much() == "" {
		t.Error("400 requests in a second over one connection are not much")
	}
}
