package flower

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/app/flower/flowerpb"
)

const (
	maxWaiting  = 256              // messages in a mailbox
	messageLife = 10 * time.Second // until nobody waits for the reply any more
)

// mailbox holds messages until somebody has answered them. Whoever takes one and goes away leaves it to the next.
type mailbox struct {
	mu      sync.Mutex
	waiting []letter
	out     map[string]letter // those that were taken, by ID
	changed chan struct{}     // closed, and made anew, with each change
}

// letter is a message that was put in at a time.
type letter struct {
	*flowerpb.Message
	at time.Time
}

func newMailbox() *mailbox {
	return &mailbox{out: map[string]letter{}, changed: make(chan struct{})}
}

// tell wakes up whoever waits. The lock is held.
func (b *mailbox) tell() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// put adds a message. It reports whether there was room.
func (b *mailbox) put(m *flowerpb.Message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
	if len(b.waiting)+len(b.out) >= maxWaiting {
		return false
	}
	b.waiting = append(b.waiting, letter{m, time.Now()})
	b.tell()
	return true
}

// forget drops what is too old for anybody to wait for. The lock is held.
func (b *mailbox) forget() {
	b.waiting = slices.DeleteFunc(b.waiting, func(l letter) bool { return time.Since(l.at) > messageLife })
	for id, l := range b.out {
		if time.Since(l.at) > messageLife {
			delete(b.out, id)
		}
	}
}

// answered takes a message out for good. It reports whether it was still waited for.
func (b *mailbox) answered(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.out[id]
	delete(b.out, id)
	b.tell()
	return ok
}

// serve sends messages one after the other, and no more at once than the window, until the context ends or sending
// fails. What was sent and not answered then waits for somebody else.
func (b *mailbox) serve(ctx context.Context, window int, send func(*flowerpb.Message) error) error {
	var mine []string
	defer func() { b.takeBack(mine) }()
	for {
		b.mu.Lock()
		b.forget()
		mine = slices.DeleteFunc(mine, func(id string) bool { _, is := b.out[id]; return !is })
		var next letter
		if len(b.waiting) > 0 && len(mine) < window {
			next, b.waiting = b.waiting[0], b.waiting[1:]
			b.out[next.MessageId] = next
			mine = append(mine, next.MessageId)
		}
		changed := b.changed
		b.mu.Unlock()
		if next.Message != nil {
			if err := send(next.Message); err != nil {
				return err
			}
			continue
		}
		select {
		case <-changed:
		case <-time.After(messageLife): // What is out may be too old by now.
		case <-ctx.Done():
			return nil
		}
	}
}

// takeBack puts messages that nobody has answered to the front again.
func (b *mailbox) takeBack(ids []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range slices.Backward(ids) {
		if l, ok := b.out[id]; ok {
			delete(b.out, id)
			b.waiting = slices.Insert(b.waiting, 0, l)
		}
	}
	b.tell()
}
