// Package queue carries the messages of a group of agents: over NATS JetStream, in this process or on a server of
// the user's own. Delivery is at least once. What somebody took out and did not acknowledge comes again, also if it
// was taken by a reader that is gone; so whoever reads must know a message that it has seen.
//
//	q, err := queue.Open(ctx, queue.Config{Dir: scratch})
//	in, err := q.Inbox(ctx, "geo")
//	err = q.Send(ctx, "geo", "1", []byte("how are you?"))
//	d, err := in.Next(ctx)
//	...
//	err = d.Ack()
//
// Messages are kept in memory, within bounds: a sender beyond them is refused, and nobody's message is dropped.
package queue

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// MaxBody is how long a message may be.
	MaxBody = 64 << 10
	// maxWaiting and maxBytes are what all inboxes together hold.
	maxWaiting = 20_000
	maxBytes   = 16 << 20
	// maxMemory is what the server in this process may keep.
	maxMemory = 24 << 20
	// DefaultAckWait is how long a message is somebody's who says nothing of it.
	DefaultAckWait = 20 * time.Second
	// startTimeout is how long the server in this process may take to start, and the user's own to answer.
	startTimeout = 20 * time.Second
	// closeTimeout is how long the user's own may take to remove the queue.
	closeTimeout = 5 * time.Second
)

// ErrFull is the error of a message for which there is no room.
var ErrFull = errors.New("the queue is full")

// Config says which queue.
type Config struct {
	// URL is that of a NATS server with JetStream. If it is empty, one runs in this process, without a port.
	URL string
	// Login says who we are there.
	Login Login
	// Patience is how long a server that is lost is waited for; 0 is DefaultPatience.
	Patience time.Duration
	// Dir is for the few files of the server in this process; the messages are in memory.
	Dir string
	// AckWait is how long a message is somebody's who says nothing of it; 0 is DefaultAckWait.
	AckWait time.Duration
}

// Queue has an inbox for each name. It is safe for concurrent use.
type Queue struct {
	name   string // of the stream, and the first part of its subjects
	wait   time.Duration
	server *server.Server // in this process, or nil
	conn   *nats.Conn
	js     jetstream.JetStream
	line   line
}

// Open starts or joins a server. The queue is a stream of its own there, which Close removes.
func Open(ctx context.Context, c Config) (*Queue, error) {
	q := &Queue{
		name: "aiopslab-" + token(), wait: cmp.Or(c.AckWait, DefaultAckWait),
		line: line{at: c.URL, patience: cmp.Or(c.Patience, DefaultPatience), lost: make(chan struct{})},
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := q.open(ctx, c); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

func (q *Queue) open(ctx context.Context, c Config) error {
	options := append(c.Login.options(), nats.Name("aiopslab"), nats.Timeout(startTimeout), nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pings),
		nats.IgnoreAuthErrorAbort(), nats.ErrorHandler(silent), nats.DisconnectErrHandler(q.broken),
		nats.ReconnectHandler(q.mended))
	if c.URL == "" {
		s, err := serve(c.Dir)
		if err != nil {
			return fmt.Errorf("start the message queue: %w", err)
		}
		q.server = s
		options = append(options, nats.InProcessServer(s))
	}
	var err error
	if q.conn, err = nats.Connect(c.URL, options...); err != nil {
		return fmt.Errorf("connect to the message queue %s: %s", c.URL, c.Login.hidden(err.Error()))
	}
	if q.js, err = jetstream.New(q.conn); err != nil {
		return err
	}
	_, err = q.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: q.name, Subjects: []string{q.name + ".>"}, Storage: jetstream.MemoryStorage,
		Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew,
		MaxMsgs: maxWaiting, MaxBytes: maxBytes, MaxMsgSize: MaxBody + 1<<10, Duplicates: time.Minute,
	})
	if err != nil {
		return fmt.Errorf("set up the message queue: %w; the server must have JetStream", err)
	}
	return nil
}

// serve starts a server that listens nowhere.
func serve(dir string) (*server.Server, error) {
	s, err := server.NewServer(&server.Options{
		ServerName: "aiopslab", DontListen: true, NoLog: true, NoSigs: true, JetStream: true, StoreDir: dir,
		JetStreamMaxMemory: maxMemory, JetStreamMaxStore: 1 << 20, MaxPayload: MaxBody + 4<<10,
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(startTimeout) {
		s.Shutdown()
		return nil, errors.New("it did not come up")
	}
	return s, nil
}

// Close removes the queue and ends the server, if it is this process's.
func (q *Queue) Close() error {
	var err error
	q.line.close()
	if q.js != nil && q.server == nil && q.line.whole() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		if err = q.js.DeleteStream(ctx, q.name); errors.Is(err, jetstream.ErrStreamNotFound) {
			err = nil
		}
		cancel()
	}
	if q.conn != nil {
		q.conn.Close()
	}
	if q.server != nil {
		q.server.Shutdown()
		q.server.WaitForShutdown()
	}
	return err
}

// Send puts a message into an inbox. One with an id that was used within the last minute is dropped: so what may
// or may not have been sent can be sent again.
func (q *Queue) Send(ctx context.Context, to, id string, body []byte) error {
	if len(body) > MaxBody {
		return fmt.Errorf("a message may have %d bytes, and this one has %d", MaxBody, len(body))
	}
	return q.insist(ctx, func(ctx context.Context) error {
		_, err := q.js.Publish(ctx, q.subject(to), body, jetstream.WithMsgID(id))
		if api, ok := errors.AsType[*jetstream.APIError](err); ok && strings.Contains(api.Description, "maximum") {
			return fmt.Errorf("%w: %s", ErrFull, api.Description)
		}
		return err
	})
}

// Inbox opens the inbox of a name, which is there for as long as the queue is, whoever reads it. It begins with what
// waits there, and what a reader before did not acknowledge comes again.
func (q *Queue) Inbox(ctx context.Context, name string) (*Inbox, error) {
	i := &Inbox{queue: q}
	err := q.insist(ctx, func(ctx context.Context) (err error) {
		i.consumer, err = q.js.CreateOrUpdateConsumer(ctx, q.name, jetstream.ConsumerConfig{
			Durable: mangle(name), FilterSubject: q.subject(name), AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: q.wait, MaxAckPending: -1,
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open the inbox of %s: %w", name, err)
	}
	return i, nil
}

// Waiting is how many messages nobody has acknowledged.
func (q *Queue) Waiting(ctx context.Context) (uint64, error) {
	s, err := q.js.Stream(ctx, q.name)
	if err != nil {
		return 0, err
	}
	return s.CachedInfo().State.Msgs, nil
}

func (q *Queue) subject(name string) string { return q.name + "." + mangle(name) }

// mangle makes a token of a subject of the name of a service. Such names have no underscores.
func mangle(name string) string {
	return strings.NewReplacer(".", "_", " ", "__", "*", "__", ">", "__").Replace(name)
}

func token() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // It does not fail.
	return hex.EncodeToString(b)
}

// Inbox is where a name's messages arrive.
type Inbox struct {
	queue    *Queue
	consumer jetstream.Consumer
}

// Next waits for a message.
func (i *Inbox) Next(ctx context.Context) (d *Delivery, err error) {
	err = i.queue.insist(ctx, func(ctx context.Context) error {
		for {
			m, err := i.consumer.Next(jetstream.FetchContext(ctx))
			switch {
			case err == nil:
				d = &Delivery{Body: m.Data(), Times: 1, message: m}
				if meta, err := m.Metadata(); err == nil {
					d.Times = int(min(meta.NumDelivered, 1<<30))
				}
				return nil
			case errors.Is(err, nats.ErrTimeout) || errors.Is(err, jetstream.ErrNoMessages):
				if i.queue.line.whole() && ctx.Err() == nil {
					continue
				}
			}
			return err
		}
	})
	return d, err
}

// Delivery is a message that was taken out. It comes again unless it is acknowledged in time.
type Delivery struct {
	Body    []byte
	Times   int // how often it was delivered, from 1
	message jetstream.Msg
}

// Ack says that the message is done with.
func (d *Delivery) Ack() error { return d.message.Ack() }

// Working says that it is being worked on, and is not to come again soon.
func (d *Delivery) Working() error { return d.message.InProgress() }

// Again gives it back, to come at once.
func (d *Delivery) Again() error { return d.message.Nak() }
