// Package inlet accepts connections for servers. When the kernel is short of something, say of file descriptors,
// it reports that and tries again, so the server lives on.
package inlet

import (
	"context"
	"errors"
	"net"
	"time"
)

// A failed Accept is tried again after a while, which doubles each time.
const (
	firstPause = 5 * time.Millisecond
	maxPause   = time.Second
)

// Serve gives each connection to handle, until the listener is closed or ctx ends. It tells report
// what went wrong and goes on.
func Serve(ctx context.Context, ln net.Listener, handle func(net.Conn), report func(error)) {
	pause := firstPause
	for {
		c, err := ln.Accept()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if err == nil {
				c.Close()
			}
			return
		case err == nil:
			pause = firstPause
			handle(c)
			continue
		}
		report(err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, maxPause)
	}
}
