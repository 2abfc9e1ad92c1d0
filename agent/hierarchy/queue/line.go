package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// This file is about the line to a server of the user's own, which may break: who sends or reads meanwhile waits until
// it is there again, or it is clear that the messages are lost.

const (
	// DefaultPatience is how long a server that is lost is waited for.
	DefaultPatience = 30 * time.Second
	reconnectWait   = 500 * time.Millisecond
	// pingEvery is how often a server is asked whether it is there. One that does not answer twice is not.
	pingEvery, pings = 10 * time.Second, 2
)

// ErrLost is the error of a queue whose server does not come back, or has come back without the messages.
var ErrLost = errors.New("the message queue is lost")

// line is how the connection is.
type line struct {
	at       string // the address of the server
	patience time.Duration

	mu     sync.Mutex
	down   chan struct{} // is closed when the connection is there again; nil while it is
	timer  *time.Timer   // that gives it up
	why    error         // once it is lost
	lost   chan struct{} // is closed then
	closed bool
	// readers are the waits that end when the connection breaks: what they wait for would not come over another one.
	readers map[*context.CancelFunc]bool
}

// until is a context that ends when the connection breaks, too.
func (l *line) until(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers == nil {
		l.readers = map[*context.CancelFunc]bool{}
	}
	l.readers[&cancel] = true
	return ctx, func() {
		cancel()
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.readers, &cancel)
	}
}

// silent drops what the library would print.
func silent(*nats.Conn, *nats.Subscription, error) {}

// whole reports whether the connection is there.
func (l *line) whole() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down == nil && l.why == nil
}

// giveUp says that the queue is lost.
func (l *line) giveUp(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil && !l.closed {
		l.why = fmt.Errorf("%w: %s at %s", ErrLost, why, cmp.Or(l.at, "this process"))
		close(l.lost)
	}
}

func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed = true; l.timer != nil {
		l.timer.Stop()
	}
}

// broken is called when the connection breaks.
func (q *Queue) broken(*nats.Conn, error) {
	l := &q.line
	l.mu.Lock()
	defer l.mu.Unlock()
	for end := range l.readers {
		(*end)()
	}
	if l.down == nil && !l.closed {
		l.down = make(chan struct{})
		l.timer = time.AfterFunc(l.patience, func() {
			l.giveUp(fmt.Sprintf("nothing was heard for %v of the server", l.patience))
		})
	}
}

// mended is called when the connection is there again. A server that was restarted may have lost what was in it.
func (q *Queue) mended(*nats.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), q.line.patience)
	defer cancel()
	if _, err := q.js.Stream(ctx, q.name); errors.Is(err, jetstream.ErrStreamNotFound) {
		q.line.giveUp("the messages are gone from the server, which was restarted,")
	}
	l := &q.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down != nil {
		l.timer.Stop()
		close(l.down)
		l.down = nil
	}
}

// insist does something that needs the server, and again if the connection broke meanwhile: what may or may not have
// been done is such that it can be done twice. What is under way ends when the connection breaks.
func (q *Queue) insist(ctx context.Context, do func(ctx context.Context) error) error {
	l := &q.line
	for since := time.Now(); ; {
		if err := l.await(ctx, nil); err != nil {
			return err
		}
		begun := time.Now()
		unbroken, stop := l.until(ctx)
		err := do(unbroken)
		stop()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !l.whole():
			continue
		case !interrupted(err):
			return err
		case time.Since(begun) > l.patience: // It was well until just now.
			since = time.Now()
		case time.Since(since) > l.patience:
			l.giveUp(fmt.Sprintf("the server, which answers with %q,", err))
		}
		// The connection is there again already, or its end is not known yet.
		if err := l.await(ctx, time.After(reconnectWait)); err != nil {
			return err
		}
	}
}

// await waits until the connection is there, and for a pause if there is one. The error is that it will not come.
func (l *line) await(ctx context.Context, pause <-chan time.Time) error {
	l.mu.Lock()
	down := l.down
	l.mu.Unlock()
	if down == nil && pause == nil {
		down = gone
	}
	select {
	case <-l.lost:
		return l.why // It is not changed any more.
	default:
	}
	select {
	case <-down:
		return nil
	case <-pause:
		return nil
	case <-l.lost:
		return l.why
	case <-ctx.Done():
		return ctx.Err()
	}
}

// gone is a wait that is over.
var gone = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// interrupted reports whether an error may be that of a connection that broke.
func interrupted(err error) bool {
	for _, e := range []error{
		nats.ErrConnectionClosed, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded,
		nats.ErrNoResponders, nats.ErrTimeout, nats.ErrStaleConnection, jetstream.ErrNoHeartbeat,
		jetstream.ErrConsumerLeadershipChanged, jetstream.ErrServerShutdown, jetstream.ErrNoStreamResponse,
		context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
