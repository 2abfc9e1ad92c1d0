package rabbitmq

import (
	"sort"
	"time"
)

// item is a message in a queue.
type item struct {
	message     *message
	seq         uint64 // orders the messages of a queue
	redelivered bool
	kept        bool   // is on the disk
	number      uint64 // of the record there
	due         time.Time
}

func (i *item) expired(now time.Time) bool { return !i.due.IsZero() && now.After(i.due) }

// queue has messages in order.
type queue struct {
	name                string
	durable, autoDelete bool
	owner               *conn // of an exclusive queue
	ttl                 time.Duration
	maxLength           int // -1 is any
	gone                bool

	ready     []*item // from head on
	head      int
	unacked   int
	consumers []*consumer
	turn      int // of the consumer that is next
}

// consumer is told of the messages of a queue.
type consumer struct {
	tag       string
	channel   *channel
	queue     *queue
	noAck     bool
	exclusive bool
	prefetch  int // 0 is any
	unacked   int
}

func (q *queue) len() int     { return len(q.ready) - q.head }
func (q *queue) first() *item { return q.ready[q.head] }

// push appends a message.
func (q *queue) push(i *item) {
	i.due = i.message.expires
	if q.ttl >= 0 {
		if due := time.Now().Add(q.ttl); i.due.IsZero() || due.Before(i.due) {
			i.due = due
		}
	}
	q.ready = append(q.ready, i)
}

// pop takes the first message.
func (q *queue) pop() *item {
	i := q.ready[q.head]
	q.ready[q.head] = nil
	q.head++
	if q.head > 64 && q.head > len(q.ready)/2 {
		q.ready = append(make([]*item, 0, q.len()), q.ready[q.head:]...)
		q.head = 0
	}
	return i
}

// requeue puts a message back where it was.
func (q *queue) requeue(i *item) {
	i.redelivered = true
	if q.head > 0 && (q.len() == 0 || i.seq < q.first().seq) {
		q.head--
		q.ready[q.head] = i
		return
	}
	rest := q.ready[q.head:]
	at := q.head + sort.Search(len(rest), func(n int) bool { return rest[n].seq > i.seq })
	q.ready = append(q.ready, nil)
	copy(q.ready[at+1:], q.ready[at:])
	q.ready[at] = i
}

// next is a consumer that takes one more message, by turns.
func (q *queue) next() *consumer {
	for range q.consumers {
		q.turn = (q.turn + 1) % len(q.consumers)
		if c := q.consumers[q.turn]; c.willing() {
			return c
		}
	}
	return nil
}

// willing reports whether a consumer may be sent a message: by its prefetch and that of its channel, and if what was
// sent before has gone.
func (c *consumer) willing() bool {
	if c.channel.conn.out.crowded() {
		return false
	}
	if c.noAck {
		return true
	}
	ch := c.channel
	return (c.prefetch == 0 || c.unacked < c.prefetch) && (ch.prefetch == 0 || len(ch.unacked) < ch.prefetch)
}

// dispatch sends the messages of a queue to its consumers.
func (b *broker) dispatch(q *queue) {
	now := time.Now()
	for {
		b.expire(q, now)
		if q.len() == 0 {
			return
		}
		c := q.next()
		if c == nil {
			return
		}
		b.deliver(c, q.pop())
	}
}

// deliver sends a message to a consumer.
func (b *broker) deliver(c *consumer, i *item) {
	ch := c.channel
	tag := ch.track(i, c.queue, c, c.noAck)
	b.counts.delivered++
	if i.redelivered {
		b.counts.redelivered++
	}
	p := method(ch.id, basicDeliver).shortstr(c.tag).longlong(tag).bit(i.redelivered).shortstr(i.message.exchange).
		shortstr(i.message.key).end(0)
	ch.conn.out.send(p.content(ch.id, i.message, ch.conn.frameMax))
	if c.noAck {
		b.drop(i)
	}
}
