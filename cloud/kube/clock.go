package kube

import (
	"net/http"
	"sync/atomic"
	"time"
)

// clock tells the time of the API server. Runs on several machines, whose clocks may differ, say by it until when they
// are alive.
type clock struct{ ahead atomic.Int64 } // of this machine's, in nanoseconds

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// hear learns from a response what the time is. It is given in seconds, so a smaller difference is none.
func (c *clock) hear(r *http.Response) {
	t, err := http.ParseTime(r.Header.Get("Date"))
	if err != nil {
		return
	}
	ahead := time.Until(t)
	if ahead.Abs() <= 2*time.Second {
		ahead = 0
	}
	c.ahead.Store(int64(ahead))
}

// listen has the clock hear every response of a transport.
func (c *clock) listen(next http.RoundTripper) http.RoundTripper { return &listener{next, c} }

type listener struct {
	next  http.RoundTripper
	clock *clock
}

// RoundTrip implements http.RoundTripper.
func (l *listener) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if err == nil {
		l.clock.hear(response)
	}
	return response, err
}
