package rabbitmq

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aiopslab/aiopslab/image/internal/meter"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// How much there may be of what clients make.
const (
	maxConns     = 300
	maxChannels  = 255 // of a connection
	maxConsumers = 2000
	maxExchanges = 500
	maxQueues    = 1000
	maxBindings  = 5000
	maxBody      = 4 << 20
	// watermark is how many bytes of messages there may be until publishers have to wait.
	watermark = 32 << 20
	// itemBytes is what a message takes in a queue besides its content.
	itemBytes = 320
)

// What operations cost.
const (
	publishCost = 30 * time.Microsecond
	deliverCost = 20 * time.Microsecond
	methodCost  = 50 * time.Microsecond
)

// message is one that was published. It is not changed any more.
type message struct {
	exchange, key string
	header        []byte // flags and values of the properties, as they came
	body          []byte
	persistent    bool
	expires       time.Time // zero is never
}

func (m *message) size() int { return itemBytes + len(m.header) + len(m.body) + len(m.key) }

// broker is a node: its exchanges, queues and users. All of it is guarded by mu.
type broker struct {
	env      *kit.Env
	settings *settings
	log      *journal
	meter    *meter.Meter
	holder   *kit.Holder
	disk     *store
	started  time.Time
	pids     atomic.Uint64

	mu        sync.Mutex
	users     map[string]*user
	exchanges map[string]*exchange
	queues    map[string]*queue
	conns     map[*conn]struct{}
	bindings  int
	consumers int
	bytes     int           // of messages
	seq       uint64        // of messages in queues
	relief    chan struct{} // closed when publishers may go on; nil if none has to wait
	counts    counts
}

// counts are what metrics tell.
type counts struct {
	published, routed, returned, unroutable, confirmed past.Number
	delivered, redelivered, acknowledged, got          past.Number
	connOpened, connClosed                             past.Number
	channelOpened, channelClosed                       past.Number
}

// remember has the node go on counting from a past, if it is told one.
func (b *broker) remember() {
	c := &b.counts
	tally := past.NewTally(&c.published, &c.routed, &c.returned, &c.unroutable, &c.confirmed, &c.delivered,
		&c.redelivered, &c.acknowledged, &c.got, &c.connOpened, &c.connClosed, &c.channelOpened, &c.channelClosed)
	b.env.Recall(kit.Beginning, func(context.Context, *past.Past) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		tally.Mark()
		return nil
	})
	b.env.Recall(kit.Source, func(_ context.Context, p *past.Past) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		tally.Age(p, b.env.Started)
		return nil
	})
}

func newBroker(env *kit.Env, s *settings, log *journal) *broker {
	b := &broker{
		env: env, settings: s, log: log, meter: meter.New(env.CPU), holder: kit.NewHolder(env), started: env.Since(),
		users: map[string]*user{}, exchanges: map[string]*exchange{}, queues: map[string]*queue{},
		conns: map[*conn]struct{}{},
	}
	b.pids.Store(700)
	for _, e := range []exchange{
		{name: "", kind: kindDirect},
		{name: "amq.direct", kind: kindDirect},
		{name: "amq.fanout", kind: kindFanout},
		{name: "amq.topic", kind: kindTopic},
	} {
		e.durable = true
		b.exchanges[e.name] = &e
	}
	return b
}

// pid is a number for a new process.
func (b *broker) pid() uint64 { return b.pids.Add(uint64(3)) }

// route returns the queues that a message goes to, each once.
func (b *broker) route(e *exchange, key string) (list []*queue) {
	if e.name == "" {
		if q := b.queues[key]; q != nil {
			list = append(list, q)
		}
		return list
	}
	for _, at := range e.bindings {
		if e.matches(at.key, key) && !slices.Contains(list, at.queue) {
			list = append(list, at.queue)
		}
	}
	return list
}

// publish puts a message into the queues that it is for, and says whether there are any. An error is one of the disk.
func (b *broker) publish(m *message) (routed bool, err error) {
	b.counts.published++
	e := b.exchanges[m.exchange]
	if e == nil {
		return false, soft(codeNotFound, "no exchange '%s' in vhost '%s'", m.exchange, b.settings.vhost)
	}
	queues := b.route(e, m.key)
	for _, q := range queues {
		b.seq++
		i := &item{message: m, seq: b.seq}
		if q.durable && m.persistent {
			if fault := b.disk.keep(q.name, i); fault != nil {
				err = fault
			}
		}
		b.grow(m.size())
		q.push(i)
		b.enforce(q)
		b.dispatch(q)
	}
	if len(queues) > 0 {
		b.counts.routed++
	}
	return len(queues) > 0, err
}

// grow counts the bytes of messages. With too many, publishers have to wait from now on, or with fewer no longer.
func (b *broker) grow(n int) {
	b.bytes += n
	_ = b.holder.Add(n) // If it is too much, the container ends.
	switch {
	case b.bytes > watermark && b.relief == nil:
		b.relief = make(chan struct{})
		b.log.warn("memory resource limit alarm set on node '%s'. Publishers will be blocked until this alarm clears",
			b.settings.node)
		for c := range b.conns {
			c.tellBlocked(true)
		}
	case b.bytes < watermark*9/10 && b.relief != nil:
		close(b.relief)
		b.relief = nil
		b.log.warn("memory resource limit alarm cleared on node '%s'", b.settings.node)
		for c := range b.conns {
			c.tellBlocked(false)
		}
	}
}

// drop forgets an item for good.
func (b *broker) drop(i *item) {
	b.grow(-i.message.size())
	if i.kept {
		b.disk.forget(i)
	}
}

// enforce takes away what is too much for a queue, the oldest first.
func (b *broker) enforce(q *queue) {
	for q.maxLength >= 0 && q.len() > q.maxLength {
		b.drop(q.pop())
	}
}

// expire takes away what nobody has taken in time.
func (b *broker) expire(q *queue, now time.Time) {
	for q.len() > 0 && q.first().expired(now) {
		b.drop(q.pop())
	}
}

// bind has an exchange send to a queue.
func (b *broker) bind(e *exchange, q *queue, key string) error {
	if slices.ContainsFunc(e.bindings, func(at binding) bool { return at.queue == q && at.key == key }) {
		return nil
	}
	if b.bindings >= maxBindings {
		return soft(codeResourceError, "there are %d bindings already", maxBindings)
	}
	b.bindings++
	e.bindings = append(e.bindings, binding{key, q})
	return nil
}

// unbind takes bindings away for which a function says so.
func (b *broker) unbind(e *exchange, gone func(binding) bool) {
	before := len(e.bindings)
	e.bindings = slices.DeleteFunc(e.bindings, gone)
	b.bindings -= before - len(e.bindings)
	if e.autoDelete && before > 0 && len(e.bindings) == 0 {
		delete(b.exchanges, e.name)
	}
}

// remove deletes a queue: its consumers are told, its messages are lost.
func (b *broker) remove(q *queue) {
	delete(b.queues, q.name)
	q.gone = true
	for _, e := range b.exchanges {
		b.unbind(e, func(at binding) bool { return at.queue == q })
	}
	for _, c := range slices.Clone(q.consumers) {
		b.leave(c)
		c.channel.conn.tellCancelled(c)
	}
	for q.len() > 0 {
		b.drop(q.pop())
	}
	b.save(q.durable && q.owner == nil)
}

// leave takes a consumer off its queue, which goes with the last one if it is so declared.
func (b *broker) leave(c *consumer) {
	q := c.queue
	delete(c.channel.consumers, c.tag)
	i := slices.Index(q.consumers, c)
	if i < 0 {
		return
	}
	b.consumers--
	q.consumers = slices.Delete(q.consumers, i, i+1)
	if q.autoDelete && len(q.consumers) == 0 && !q.gone {
		b.remove(q)
	}
}

// save writes durable exchanges, queues, bindings and users to the disk, if something durable has changed.
func (b *broker) save(changed bool) {
	if !changed {
		return
	}
	if err := b.disk.save(b.definitions()); err != nil {
		b.log.fail("cannot write definitions to disk: %v", err)
	}
}

// named lists names in order, for people.
func named[T any](m map[string]T) []string {
	list := make([]string, 0, len(m))
	for name := range m {
		list = append(list, name)
	}
	slices.SortFunc(list, strings.Compare)
	return list
}

// noQueue is what a client is told that names a queue which is not there.
func (b *broker) noQueue(name string) error {
	return soft(codeNotFound, "no queue '%s' in vhost '%s'", name, b.settings.vhost)
}

// locked says that a queue is another connection's.
func (b *broker) locked(q *queue) error {
	return soft(codeResourceLocked,
		"cannot obtain exclusive access to locked queue '%s' in vhost '%s'", q.name, b.settings.vhost)
}

// mismatch says that something is declared that is there, and is different.
func (b *broker) mismatch(what, arg, name string) error {
	return soft(codePreconditionFailed, "inequivalent arg '%s' for %s in vhost '%s'", arg,
		fmt.Sprintf("%s '%s'", what, name), b.settings.vhost)
}
