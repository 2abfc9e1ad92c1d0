package inlet

import (
	"context"
	"net"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// line is a listener that gives what is put in it: connections and errors.
type line chan any

func (l line) Accept() (net.Conn, error) {
	switch v := (<-l).(type) {
	case error:
		return nil, v
	case net.Conn:
		return v, nil
	}
	return nil, net.ErrClosed
}

func (l line) Close() error   { close(l); return nil }
func (l line) Addr() net.Addr { return nil }

func TestServeGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var served int
		var failed []time.Duration
		l := make(line, 100)
		a, b := net.Pipe()
		for _, v := range []any{a, syscall.EMFILE, syscall.EMFILE, syscall.EMFILE, b, syscall.EMFILE, a} {
			l <- v
		}
		l.Close()
		Serve(t.Context(), l, func(net.Conn) { served++ }, func(err error) {
			if err != syscall.EMFILE {
				t.Error(err)
			}
			failed = append(failed, time.Since(start))
		})
		const ms = time.Millisecond
		if want := []time.Duration{0, 5 * ms, 15 * ms, 35 * ms}; served != 3 || !slices.Equal(failed, want) {
			t.Errorf("served %d, failed after %v; want 3, %v", served, failed, want)
		}
	})
}

func TestServeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := make(line, 1)
		l <- syscall.EMFILE
		Serve(ctx, l, nil, func(error) { cancel() })

		c, peer := net.Pipe()
		l <- c
		Serve(ctx, l, nil, nil)
		if _, err := peer.Read(make([]byte, 1)); err == nil {
			t.Error("nobody has closed the connection")
		}
	})
}
