package session

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"
)

// What an agent may do in a second without being suspected of what happens to the system. Users of an
// application send some 20 to 50 requests in that time, and a kubectl command a dozen.
const (
	muchNetwork = 30  // connections into the cluster, or pieces of data sent over them
	muchAPI     = 100 // requests to the API
)

// Doing is what an agent did that may disturb a system, and how busy the machine was. It tells whose fault it is
// if the system cannot be judged.
type Doing struct {
	Connections int `json:"connections"` // into the cluster, by the agent's shell
	Sent        int `json:"sent"`        // pieces of data over them
	Requests    int `json:"requests"`    // to the API
	// The most of them in one second.
	PeakConnections int `json:"peak_connections"`
	PeakSent        int `json:"peak_sent"`
	PeakRequests    int `json:"peak_requests"`
	// LateBefore is how late the load sent its requests, at the 99th percentile, in the last seconds before the
	// agent's turn, and Late the same during its turn. Nothing that an agent does can affect the first.
	LateBefore time.Duration `json:"late_before"`
	Late       time.Duration `json:"late"`
}

// much says what of the agent's doing was enough to disturb a system, or "".
func (d Doing) much() string {
	var list []string
	if d.PeakConnections >= muchNetwork || d.PeakSent >= muchNetwork {
		list = append(list, fmt.Sprintf("%d connections and %d requests over them in a second", d.PeakConnections,
			d.PeakSent))
	}
	if d.PeakRequests >= muchAPI {
		list = append(list, fmt.Sprintf("%d requests to the API in a second", d.PeakRequests))
	}
	return strings.Join(list, ", ")
}

// monitor counts what the agent does while it has its turn. It is safe for concurrent use.
type monitor struct {
	connections, sent atomic.Int64
	requests          func() int64         // so far, to the API
	late              func() time.Duration // of the load, in the last seconds

	cancel context.CancelFunc
	done   chan struct{} // closed when nothing is counted any more

	// Of the goroutine that samples, until done.
	last [3]int64 // connections, sent and requests at the last sample
	d    Doing
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// counted is a way to dial whose connections are counted.
func (m *monitor) counted(d dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		m.connections.Add(1) // One that is refused is a connection as well.
		conn, err := d(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countedConn{conn, &m.sent}, nil
	}
}

// countedConn counts what is written to a connection.
type countedConn struct {
	net.Conn
	sent *atomic.Int64
}

func (c *countedConn) Write(b []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(b)
}

// CloseWrite ends one direction, where the connection can.
func (c *countedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// sample takes note of the last second.
func (m *monitor) sample() {
	now := [3]int64{m.connections.Load(), m.sent.Load(), m.requests()}
	in := func(i int) int { return int(now[i] - m.last[i]) }
	d := &m.d
	d.Connections, d.Sent, d.Requests = int(now[0]), int(now[1]), int(now[2])
	d.PeakConnections, d.PeakSent, d.PeakRequests = max(d.PeakConnections, in(0)), max(d.PeakSent, in(1)),
		max(d.PeakRequests, in(2))
	d.Late = max(d.Late, m.late())
	m.last = now
}

// startMonitor begins to count.
func startMonitor(requests func() int64, late func() time.Duration) *monitor {
	ctx, cancel := context.WithCancel(context.Background())
	m := &monitor{
		requests: requests, late: late, cancel: cancel, done: make(chan struct{}),
		d: Doing{LateBefore: late()},
	}
	go m.run(ctx)
	return m
}

// run samples once a second until ctx ends.
func (m *monitor) run(ctx context.Context) {
	defer close(m.done)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.sample()
		case <-ctx.Done():
			m.sample()
			return
		}
	}
}

// end stops counting, and returns what the agent did. It may be called more than once.
func (m *monitor) end() Doing {
	m.cancel()
	<-m.done
	return m.d
}
