package rabbitmq

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"
)

// channel is one of a connection's. Its fields are guarded by the broker's lock, but for pending.
type channel struct {
	id        uint16
	conn      *conn
	prefetch  int // of all its consumers together; 0 is any
	each      int // of each consumer to come
	confirm   bool
	confirmed uint64 // how many were published since confirms were asked for
	delivered uint64 // the last delivery tag
	consumers map[string]*consumer
	unacked   []delivery // by tag
	lastQueue string
	failed    bool // it was closed by the server, and the client has not said yet that it knows

	pending *pending
}

// delivery is a message that a client has not acknowledged.
type delivery struct {
	tag      uint64
	item     *item
	queue    *queue
	consumer *consumer // nil if it was asked for
}

// pending is a message that is not whole yet.
type pending struct {
	message   message
	mandatory bool
	size      int // -1 until the header came
}

// track notes a message that goes to the client, and returns its tag.
func (ch *channel) track(i *item, q *queue, c *consumer, noAck bool) uint64 {
	ch.delivered++
	if !noAck {
		ch.unacked = append(ch.unacked, delivery{ch.delivered, i, q, c})
		q.unacked++
		if c != nil {
			c.unacked++
		}
	}
	return ch.delivered
}

// settled forgets that deliveries are under way.
func settled(d delivery) {
	d.queue.unacked--
	if d.consumer != nil {
		d.consumer.unacked--
	}
}

// take returns the deliveries that a tag means, and forgets them.
func (ch *channel) take(tag uint64, multiple bool) ([]delivery, error) {
	at, found := slices.BinarySearchFunc(ch.unacked, tag, func(d delivery, tag uint64) int {
		switch {
		case d.tag < tag:
			return -1
		case d.tag > tag:
			return 1
		}
		return 0
	})
	var list []delivery
	switch {
	case multiple && tag == 0:
		list, ch.unacked = ch.unacked, nil
	case !found:
		return nil, soft(codePreconditionFailed, "unknown delivery tag %d", tag)
	case multiple:
		list = slices.Clone(ch.unacked[:at+1])
		ch.unacked = slices.Delete(ch.unacked, 0, at+1)
	default:
		list = []delivery{ch.unacked[at]}
		ch.unacked = slices.Delete(ch.unacked, at, at+1)
	}
	for _, d := range list {
		settled(d)
	}
	return list, nil
}

// giveBack puts messages back into their queues.
func (ch *channel) giveBack(list []delivery) {
	b := ch.conn.b
	var queues []*queue
	for _, d := range slices.Backward(list) {
		if d.queue.gone {
			b.drop(d.item)
			continue
		}
		d.queue.requeue(d.item)
		if !slices.Contains(queues, d.queue) {
			queues = append(queues, d.queue)
		}
	}
	for _, q := range queues {
		b.dispatch(q)
	}
}

// close gives back all that the channel has.
func (ch *channel) close() {
	delete(ch.conn.channels, ch.id)
	if ch.failed {
		return
	}
	for _, tag := range named(ch.consumers) {
		if c := ch.consumers[tag]; c != nil {
			ch.conn.b.leave(c)
		}
	}
	list := ch.unacked
	ch.unacked = nil
	for _, d := range list {
		settled(d)
	}
	ch.giveBack(list)
	if ch.pending != nil {
		ch.conn.forget(ch.pending)
		ch.pending = nil
	}
	ch.conn.b.counts.channelClosed++
}

// forget gives back the memory of a message that is not whole.
func (c *conn) forget(p *pending) {
	c.partial -= len(p.message.body)
	_ = c.b.holder.Add(-len(p.message.body))
}

// onChannel does what a frame on a channel asks for.
func (c *conn) onChannel(ctx context.Context, in frame) error {
	b := c.b
	b.mu.Lock()
	ch := c.channels[in.channel]
	b.mu.Unlock()
	a := args{b: in.payload}
	var m id
	if in.kind == frameMethod {
		m = id(a.long())
	}
	switch {
	case m == chanOpen:
		return c.openChannel(ch, in.channel)
	case ch == nil:
		return hard(codeChannelError, "channel %d is not open", in.channel)
	case m == chanClose:
		b.mu.Lock()
		ch.close()
		b.mu.Unlock()
		c.out.send(method(ch.id, chanCloseOK).end(0))
		return nil
	case m == chanCloseOK:
		b.mu.Lock()
		if ch.failed {
			delete(c.channels, ch.id)
		}
		b.mu.Unlock()
		return nil
	case ch.failed:
		return nil
	}
	var err error
	switch {
	case in.kind != frameMethod:
		err = ch.content(ctx, in)
	case ch.pending != nil:
		err = hard(codeUnexpectedFrame, "expected the content of a message, got method %d.%d", m>>16, m&0xffff)
	default:
		err = ch.do(ctx, m, &a)
	}
	f, ok := errors.AsType[*failure](err)
	if !ok || f.hard {
		return err
	}
	b.log.line("error", c.pid, "Channel error on connection <0.%d.0> (%s), channel %d: %s", c.pid, c.name, ch.id,
		printable(f.Error()))
	b.mu.Lock()
	ch.close()
	ch.failed = true
	c.channels[ch.id] = ch
	b.mu.Unlock()
	c.out.send(method(ch.id, chanClose).short(uint16(f.code)).shortstr(f.Error()).long(uint32(m)).end(0))
	return nil
}

// openChannel makes a channel.
func (c *conn) openChannel(had *channel, n uint16) error {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case had != nil && !had.failed:
		return hard(codeChannelError, "second 'channel.open' seen on channel %d", n)
	case n > maxChannels || len(c.channels) >= maxChannels:
		return hard(codeNotAllowed, "number of channels opened has reached the negotiated channel_max (%d)",
			maxChannels)
	}
	c.channels[n] = &channel{id: n, conn: c, consumers: map[string]*consumer{}}
	b.counts.channelOpened++
	c.out.send(method(n, chanOpenOK).long(0).end(0))
	return nil
}

// content takes the header of a message, or a part of its body.
func (ch *channel) content(ctx context.Context, in frame) error {
	p := ch.pending
	if p == nil || in.kind == frameHeader != (p.size < 0) {
		return hard(codeUnexpectedFrame, "frame of type %d is not what is expected on channel %d", in.kind, ch.id)
	}
	switch in.kind {
	case frameHeader:
		if err := p.header(in.payload); err != nil {
			return err
		}
	case frameBody:
		if len(p.message.body)+len(in.payload) > p.size {
			return hard(codeFrameError, "the body of a message is longer than its header says")
		}
		if ch.conn.partial += len(in.payload); ch.conn.partial > 2*maxBody {
			return hard(codeResourceError, "%d bytes of messages that are not whole", ch.conn.partial)
		}
		if err := ch.conn.b.holder.Add(len(in.payload)); err != nil {
			return err
		}
		p.message.body = append(p.message.body, in.payload...)
	default:
		return hard(codeFrameError, "unknown type of frame %d", in.kind)
	}
	if len(p.message.body) < p.size {
		return nil
	}
	ch.pending = nil
	ch.conn.forget(p)
	return ch.publish(ctx, p)
}

// Flags of properties, in the order in which their values come.
const (
	hasContentType = 1 << (15 - iota)
	hasEncoding
	hasHeaders
	hasDeliveryMode
	hasPriority
	hasCorrelation
	hasReplyTo
	hasExpiration
	hasMessageID
	hasTimestamp
	hasType
	hasUserID
	hasAppID
	hasCluster
	more = 1
)

// header reads the size and the properties of a message.
func (p *pending) header(payload []byte) error {
	a := args{b: payload}
	class, _, size := a.short(), a.short(), a.longlong()
	if a.err != nil || class != classBasic {
		return hard(codeFrameError, "the header of a message is of class %d", class)
	}
	if size > maxBody {
		return soft(codePreconditionFailed, "message size %d is larger than configured max size %d", size, maxBody)
	}
	p.size = int(size)
	p.message.header = slices.Clone(a.b)
	flags := a.short()
	if flags&more != 0 {
		return hard(codeSyntaxError, "a message has properties that AMQP 0-9-1 does not know")
	}
	expiration := ""
	for flag := uint16(hasContentType); flag > more && a.err == nil; flag >>= 1 {
		switch {
		case flags&flag == 0:
		case flag == hasHeaders:
			a.table()
		case flag == hasDeliveryMode:
			p.message.persistent = a.octet() == 2
		case flag == hasPriority:
			a.octet()
		case flag == hasTimestamp:
			a.longlong()
		case flag == hasExpiration:
			expiration = a.shortstr()
		default:
			a.shortstr()
		}
	}
	if a.err != nil || len(a.b) > 0 {
		return hard(codeSyntaxError, "the properties of a message cannot be read")
	}
	if expiration != "" {
		ms, err := strconv.ParseUint(expiration, 10, 31)
		if err != nil {
			return soft(codePreconditionFailed, "invalid expiration '%s'", printable(expiration))
		}
		p.message.expires = time.Now().Add(time.Duration(ms) * time.Millisecond)
	}
	return nil
}

// publish sends a whole message on its way. While there is too much, it waits.
func (ch *channel) publish(ctx context.Context, p *pending) error {
	b := ch.conn.b
	if err := b.meter.Spend(ctx, publishCost); err != nil {
		return err
	}
	b.mu.Lock()
	for b.relief != nil {
		relief := b.relief
		b.mu.Unlock()
		select {
		case <-relief:
		case <-ctx.Done():
			return ctx.Err()
		}
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	routed, err := b.publish(&p.message)
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if !routed && p.mandatory {
		b.counts.returned++
		m := &p.message
		out := method(ch.id, basicReturn).short(codeNoRoute).shortstr("NO_ROUTE").shortstr(m.exchange).
			shortstr(m.key).end(0)
		ch.conn.out.send(out.content(ch.id, m, ch.conn.frameMax))
	} else if !routed {
		b.counts.unroutable++
	}
	if !ch.confirm {
		return nil
	}
	ch.confirmed++
	if err != nil {
		b.log.fail("cannot write a message to disk: %v", err)
		ch.conn.out.send(method(ch.id, basicNack).longlong(ch.confirmed).octet(0).end(0))
		return nil
	}
	b.counts.confirmed++
	ch.conn.out.send(method(ch.id, basicAck).longlong(ch.confirmed).octet(0).end(0))
	return nil
}
