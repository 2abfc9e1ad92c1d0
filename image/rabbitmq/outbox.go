package rabbitmq

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	// fullOutbox is how many bytes may wait for a client before it is sent no more messages, and jammedOutbox before
	// nothing more is read of what it sends.
	fullOutbox   = 256 << 10
	jammedOutbox = 1 << 20
	// writeTimeout is how long a client may take none of what it is sent.
	writeTimeout = 30 * time.Second
)

// outbox has what is to be sent to a client.
type outbox struct {
	holder *kit.Holder

	mu     sync.Mutex
	buf    []byte
	closed bool
	fill   chan struct{} // has one token if there is something to send, or it was closed
	room   chan struct{} // closed when there is room again; nil if there is
}

func newOutbox(h *kit.Holder) *outbox { return &outbox{holder: h, fill: make(chan struct{}, 1)} }

// send queues frames. It does not wait.
func (o *outbox) send(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.buf = append(o.buf, p...)
	_ = o.holder.Add(len(p)) // If it is too much, the container ends.
	if len(o.buf) > jammedOutbox && o.room == nil {
		o.room = make(chan struct{})
	}
	o.wake()
}

func (o *outbox) wake() {
	select {
	case o.fill <- struct{}{}:
	default:
	}
}

// close lets what is queued be sent, and no more.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.wake()
}

func (o *outbox) crowded() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed || len(o.buf) > fullOutbox
}

// await waits until there is room for answers.
func (o *outbox) await(ctx context.Context) error {
	o.mu.Lock()
	room := o.room
	o.mu.Unlock()
	if room == nil {
		return nil
	}
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run writes to a client until it is closed or the client has gone. Drained is called when there is room for messages
// again.
func (o *outbox) run(c net.Conn, drained func()) {
	defer o.discard()
	for range o.fill {
		o.mu.Lock()
		p, closed := o.buf, o.closed
		o.buf = nil
		if o.room != nil {
			close(o.room)
			o.room = nil
		}
		o.mu.Unlock()
		if len(p) > 0 {
			_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
			_, err := c.Write(p)
			_ = o.holder.Add(-len(p))
			if err != nil {
				return
			}
		}
		if closed {
			return
		}
		if len(p) > fullOutbox {
			drained()
		}
	}
}

// discard drops what can no longer be sent.
func (o *outbox) discard() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	_ = o.holder.Add(-len(o.buf))
	o.buf = nil
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}
