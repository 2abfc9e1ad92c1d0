package nginx

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// counters are what stub_status shows.
type counters struct {
	connections atomic.Int64 // accepted so far
	requests    atomic.Int64

	mu    sync.Mutex
	state map[net.Conn]http.ConnState
}

// track follows a connection's state.
func (c *counters) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == nil {
		c.state = map[net.Conn]http.ConnState{}
	}
	if state == http.StateClosed || state == http.StateHijacked {
		delete(c.state, conn)
		return
	}
	c.state[conn] = state
}

// showStatus answers with the counters in the original's format. A connection whose request is being
// answered counts as one that is written to.
func (x *exchange) showStatus() outcome {
	c := &x.in.counters
	c.mu.Lock()
	active, writing := len(c.state), 0
	for _, s := range c.state {
		if s == http.StateActive {
			writing++
		}
	}
	c.mu.Unlock()
	accepted := c.connections.Load()
	x.w.Header().Set("Content-Type", "text/plain")
	x.reply(http.StatusOK, fmt.Sprintf("Active connections: %d \nserver accepts handled requests\n %d %d %d \n"+
		"Reading: 0 Writing: %d Waiting: %d \n",
		active, accepted, accepted, c.requests.Load(), writing, active-writing))
	return outcome{done: true}
}
