package rabbitmq

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"time"
)

// Bits of declarations, in the order in which they are on the wire.
const (
	bitPassive = 1 << iota
	bitDurable
	bitThird // auto-delete of exchanges, exclusive of queues
	bitFourth
	bitNoWait
)

// random is a name that nobody else has.
func random(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

func (ch *channel) declareExchange(a *args) error {
	a.short()
	name, kind, flags, options := a.shortstr(), a.shortstr(), a.octet(), a.table()
	if a.err != nil {
		return nil
	}
	b := ch.conn.b
	had := b.exchanges[name]
	switch {
	case flags&bitPassive != 0 && had == nil:
		return soft(codeNotFound, "no exchange '%s' in vhost '%s'", name, b.settings.vhost)
	case flags&bitPassive != 0:
	case had != nil && had.kind != kind:
		return b.mismatch("exchange", "type", name)
	case had != nil && had.durable != (flags&bitDurable != 0):
		return b.mismatch("exchange", "durable", name)
	case had != nil:
	default:
		if err := ch.newExchange(name, kind, flags, options); err != nil {
			return err
		}
	}
	if flags&bitNoWait == 0 {
		ch.reply(method(ch.id, exDeclareOK))
	}
	return nil
}

func (ch *channel) newExchange(name, kind string, flags byte, options map[string]any) error {
	b := ch.conn.b
	switch {
	case strings.HasPrefix(name, "amq.") || name == "":
		return soft(codeAccessRefused, "exchange name '%s' contains reserved prefix 'amq.*'", name)
	case kind == "headers":
		return missing("headers exchanges")
	case kind != kindDirect && kind != kindFanout && kind != kindTopic:
		return hard(codeCommandInvalid, "unknown exchange type '%s'", printable(kind))
	case len(options) > 0:
		return missing("options of exchanges")
	case len(b.exchanges) >= maxExchanges:
		return soft(codeResourceError, "there are %d exchanges already", maxExchanges)
	}
	if err := ch.may(configuring, name); err != nil {
		return err
	}
	b.exchanges[name] = &exchange{
		name: name, kind: kind, durable: flags&bitDurable != 0, autoDelete: flags&bitThird != 0,
		internal: flags&bitFourth != 0,
	}
	b.save(flags&bitDurable != 0)
	return nil
}

func (ch *channel) deleteExchange(a *args) error {
	a.short()
	name, flags := a.shortstr(), a.octet()
	if a.err != nil {
		return nil
	}
	b := ch.conn.b
	if strings.HasPrefix(name, "amq.") || name == "" {
		return soft(codeAccessRefused, "operation not permitted on exchange '%s'", name)
	}
	if err := ch.may(configuring, name); err != nil {
		return err
	}
	if e := b.exchanges[name]; e != nil {
		if flags&1 != 0 && len(e.bindings) > 0 {
			return soft(codePreconditionFailed, "exchange '%s' in vhost '%s' in use", name, b.settings.vhost)
		}
		b.unbind(e, func(binding) bool { return true })
		delete(b.exchanges, name)
		b.save(e.durable)
	}
	if flags&2 == 0 {
		ch.reply(method(ch.id, exDeleteOK))
	}
	return nil
}

// queue finds a queue that the client may use; no name is the last that it declared.
func (ch *channel) queue(name string) (*queue, error) {
	if name == "" {
		name = ch.lastQueue
	}
	q := ch.conn.b.queues[name]
	if q == nil {
		return nil, ch.conn.b.noQueue(name)
	}
	if q.owner != nil && q.owner != ch.conn {
		return nil, ch.conn.b.locked(q)
	}
	return q, nil
}

func (ch *channel) declareQueue(a *args) error {
	a.short()
	name, flags, options := a.shortstr(), a.octet(), a.table()
	if a.err != nil {
		return nil
	}
	b := ch.conn.b
	q := b.queues[name]
	switch {
	case q != nil && q.owner != nil && q.owner != ch.conn:
		return b.locked(q)
	case q == nil && flags&bitPassive != 0:
		return b.noQueue(name)
	case q != nil && flags&bitPassive != 0:
	case q == nil:
		var err error
		if q, err = ch.newQueue(name, flags, options); err != nil {
			return err
		}
	case q.durable != (flags&bitDurable != 0):
		return b.mismatch("queue", "durable", name)
	case q.autoDelete != (flags&bitFourth != 0):
		return b.mismatch("queue", "auto_delete", name)
	case (q.owner != nil) != (flags&bitThird != 0):
		return b.mismatch("queue", "exclusive", name)
	}
	ch.lastQueue = q.name
	if flags&bitNoWait == 0 {
		ch.reply(method(ch.id, queueDeclareOK).shortstr(q.name).long(uint32(q.len())).long(uint32(len(q.consumers))))
	}
	return nil
}

func (ch *channel) newQueue(name string, flags byte, options map[string]any) (*queue, error) {
	b := ch.conn.b
	q := &queue{
		name: name, durable: flags&bitDurable != 0, autoDelete: flags&bitFourth != 0, ttl: -1, maxLength: -1,
	}
	if name == "" {
		q.name = random("amq.gen-")
	} else if strings.HasPrefix(name, "amq.") {
		return nil, soft(codeAccessRefused, "queue name '%s' contains reserved prefix 'amq.*'", name)
	}
	if len(b.queues) >= maxQueues {
		return nil, soft(codeResourceError, "there are %d queues already", maxQueues)
	}
	if err := ch.may(configuring, q.name); err != nil {
		return nil, err
	}
	if err := q.set(options); err != nil {
		return nil, err
	}
	if flags&bitThird != 0 {
		q.owner = ch.conn
	}
	b.queues[q.name] = q
	b.save(q.durable && q.owner == nil)
	return q, nil
}

// set reads the options of a queue.
func (q *queue) set(options map[string]any) error {
	for _, name := range named(options) {
		n, number := options[name].(int64)
		switch {
		case name == "x-queue-type" && options[name] == "classic":
		case name == "x-queue-mode" || name == "x-queue-version": // It makes no difference here.
		case name == "x-message-ttl" && number && n >= 0 && n < 1<<31:
			q.ttl = time.Duration(n) * time.Millisecond
		case name == "x-max-length" && number && n >= 0 && n < 1<<31:
			q.maxLength = int(n)
		case name == "x-message-ttl" || name == "x-max-length":
			return soft(codePreconditionFailed, "invalid arg '%s' for queue '%s'", name, q.name)
		default:
			return missing("option " + printable(name) + " of queues with this value")
		}
	}
	return nil
}

func (ch *channel) bindQueue(a *args) error {
	a.short()
	q, err := ch.queue(a.shortstr())
	name, key, noWait, options := a.shortstr(), a.shortstr(), a.octet()&1 != 0, a.table()
	if a.err != nil || err != nil {
		return err
	}
	e, err := ch.toBind(q, name, options)
	if err != nil {
		return err
	}
	if err := ch.conn.b.bind(e, q, key); err != nil {
		return err
	}
	ch.conn.b.save(q.durable && e.durable && q.owner == nil)
	if !noWait {
		ch.reply(method(ch.id, queueBindOK))
	}
	return nil
}

// toBind finds the exchange that a queue is bound to.
func (ch *channel) toBind(q *queue, name string, options map[string]any) (*exchange, error) {
	b := ch.conn.b
	e := b.exchanges[name]
	switch {
	case e == nil:
		return nil, soft(codeNotFound, "no exchange '%s' in vhost '%s'", name, b.settings.vhost)
	case name == "":
		return nil, soft(codeAccessRefused, "operation not permitted on the default exchange")
	case len(options) > 0:
		return nil, missing("options of bindings")
	}
	if err := ch.may(writing, q.name); err != nil {
		return nil, err
	}
	return e, ch.may(reading, e.name)
}

func (ch *channel) unbindQueue(a *args) error {
	a.short()
	q, err := ch.queue(a.shortstr())
	name, key, options := a.shortstr(), a.shortstr(), a.table()
	if a.err != nil || err != nil {
		return err
	}
	e, err := ch.toBind(q, name, options)
	if err != nil {
		return err
	}
	ch.conn.b.unbind(e, func(at binding) bool { return at.queue == q && at.key == key })
	ch.conn.b.save(q.durable && e.durable && q.owner == nil)
	ch.reply(method(ch.id, queueUnbindOK))
	return nil
}

func (ch *channel) purgeQueue(a *args) error {
	a.short()
	q, err := ch.queue(a.shortstr())
	noWait := a.octet()&1 != 0
	if a.err != nil || err != nil {
		return err
	}
	if err := ch.may(reading, q.name); err != nil {
		return err
	}
	n := ch.conn.b.purge(q)
	if !noWait {
		ch.reply(method(ch.id, queuePurgeOK).long(uint32(n)))
	}
	return nil
}

// purge drops what waits in a queue.
func (b *broker) purge(q *queue) int {
	n := q.len()
	for q.len() > 0 {
		b.drop(q.pop())
	}
	return n
}

func (ch *channel) deleteQueue(a *args) error {
	a.short()
	q, err := ch.queue(a.shortstr())
	flags := a.octet()
	if a.err != nil {
		return nil
	}
	n := 0
	if err == nil {
		b := ch.conn.b
		if err := ch.may(configuring, q.name); err != nil {
			return err
		}
		if flags&1 != 0 && len(q.consumers) > 0 {
			return soft(codePreconditionFailed, "queue '%s' in vhost '%s' in use", q.name, b.settings.vhost)
		}
		if n = q.len(); flags&2 != 0 && n > 0 {
			return soft(codePreconditionFailed, "queue '%s' in vhost '%s' not empty", q.name, b.settings.vhost)
		}
		b.remove(q)
	} else if f, ok := err.(*failure); !ok || f.code != codeNotFound { // What is not there may be deleted.
		return err
	}
	if flags&4 == 0 {
		ch.reply(method(ch.id, queueDeleteOK).long(uint32(n)))
	}
	return nil
}

func (ch *channel) consume(a *args) error {
	a.short()
	q, err := ch.queue(a.shortstr())
	tag, flags, options := a.shortstr(), a.octet(), a.table()
	if a.err != nil || err != nil {
		return err
	}
	if err := ch.may(reading, q.name); err != nil {
		return err
	}
	b := ch.conn.b
	if tag == "" {
		tag = random("amq.ctag-")
	}
	switch {
	case flags&1 != 0:
		return missing("consumers without what their own connection publishes (no_local)")
	case len(options) > 0:
		return missing("options of consumers")
	case ch.consumers[tag] != nil:
		return hard(codeNotAllowed, "attempt to reuse consumer tag '%s'", printable(tag))
	case b.consumers >= maxConsumers:
		return soft(codeResourceError, "there are %d consumers already", maxConsumers)
	case flags&4 != 0 && len(q.consumers) > 0 || len(q.consumers) > 0 && q.consumers[0].exclusive:
		return soft(codeAccessRefused, "queue '%s' in vhost '%s' in exclusive use", q.name, b.settings.vhost)
	}
	c := &consumer{
		tag: tag, channel: ch, queue: q, noAck: flags&2 != 0, exclusive: flags&4 != 0, prefetch: ch.each,
	}
	b.consumers++
	ch.consumers[tag] = c
	q.consumers = append(q.consumers, c)
	if flags&8 == 0 {
		ch.reply(method(ch.id, basicConsumeOK).shortstr(tag))
	}
	b.dispatch(q)
	return nil
}

func (ch *channel) cancel(a *args) error {
	tag, noWait := a.shortstr(), a.octet()&1 != 0
	if a.err != nil {
		return nil
	}
	if c := ch.consumers[tag]; c != nil {
		ch.conn.b.leave(c)
	}
	if !noWait {
		ch.reply(method(ch.id, basicCancelOK).shortstr(tag))
	}
	return nil
}
