package rabbitmq

import (
	"context"
	"time"
)

// do does what a method on a channel asks for.
func (ch *channel) do(ctx context.Context, m id, a *args) error {
	b := ch.conn.b
	if m != basicPublish && m != basicAck {
		if err := b.meter.Spend(ctx, methodCost); err != nil {
			return err
		}
	}
	handle := handlers[m]
	if handle == nil {
		return unknown(m)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	err := handle(ch, a)
	if a.err != nil {
		return hard(codeSyntaxError, "method %d.%d: %v", m>>16, m&0xffff, a.err)
	}
	return err
}

// handlers do what methods ask for, under the broker's lock. A handler that has read broken arguments does nothing.
var handlers = map[id]func(*channel, *args) error{
	chanFlow:  (*channel).flow,
	exDeclare: (*channel).declareExchange, exDelete: (*channel).deleteExchange,
	queueDeclare: (*channel).declareQueue, queueBind: (*channel).bindQueue, queueUnbind: (*channel).unbindQueue,
	queuePurge: (*channel).purgeQueue, queueDelete: (*channel).deleteQueue,
	basicQos: (*channel).qos, basicConsume: (*channel).consume, basicCancel: (*channel).cancel,
	basicPublish: (*channel).beginPublish, basicGet: (*channel).get,
	basicAck: (*channel).ack, basicReject: (*channel).reject, basicNack: (*channel).nack,
	basicRecover: (*channel).recover, confirmSelect: (*channel).selectConfirms,
}

// unknown says what a method is that this node does not have.
func unknown(m id) error {
	switch m >> 16 {
	case classTx:
		return missing("transactions; use publisher confirms")
	case classExchange:
		return missing("bindings between exchanges")
	}
	return hard(codeCommandInvalid, "unknown method %d.%d", m>>16, m&0xffff)
}

func (ch *channel) reply(p packet) { ch.conn.out.send(p.end(0)) }

func (ch *channel) flow(a *args) error {
	on := a.octet()&1 != 0
	if !on {
		return missing("way to pause deliveries; use basic.qos")
	}
	ch.reply(method(ch.id, chanFlowOK).bit(true))
	return nil
}

func (ch *channel) selectConfirms(a *args) error {
	noWait := a.octet()&1 != 0
	if a.err != nil {
		return nil
	}
	ch.confirm = true
	if !noWait {
		ch.reply(method(ch.id, confirmSelectOK))
	}
	return nil
}

// qos says how many messages may be under way: of each consumer to come, or of the channel.
func (ch *channel) qos(a *args) error {
	size, count, global := a.long(), a.short(), a.octet()&1 != 0
	if a.err != nil {
		return nil
	}
	if size != 0 {
		return missing("prefetch by size; set prefetch_count")
	}
	if global {
		ch.prefetch = int(count)
		for _, c := range ch.consumers {
			ch.conn.b.dispatch(c.queue)
		}
	} else {
		ch.each = int(count)
	}
	ch.reply(method(ch.id, basicQosOK))
	return nil
}

func (ch *channel) beginPublish(a *args) error {
	a.short()
	p := &pending{size: -1}
	p.message.exchange, p.message.key = a.shortstr(), a.shortstr()
	flags := a.octet()
	if a.err != nil {
		return nil
	}
	if flags&2 != 0 {
		return missing("immediate delivery")
	}
	p.mandatory = flags&1 != 0
	b := ch.conn.b
	e := b.exchanges[p.message.exchange]
	switch {
	case e == nil:
		return soft(codeNotFound, "no exchange '%s' in vhost '%s'", p.message.exchange, b.settings.vhost)
	case e.internal:
		return soft(codeAccessRefused, "cannot publish to internal exchange '%s'", e.name)
	}
	if err := ch.may(writing, e.name); err != nil {
		return err
	}
	ch.pending = p
	return nil
}

func (ch *channel) get(a *args) error {
	a.short()
	q, err := ch.queue(a.shortstr())
	noAck := a.octet()&1 != 0
	if a.err != nil || err != nil {
		return err
	}
	if err := ch.may(reading, q.name); err != nil {
		return err
	}
	b := ch.conn.b
	b.expire(q, time.Now())
	if q.len() == 0 {
		ch.reply(method(ch.id, basicGetEmpty).shortstr(""))
		return nil
	}
	i := q.pop()
	b.counts.got++
	tag := ch.track(i, q, nil, noAck)
	out := method(ch.id, basicGetOK).longlong(tag).bit(i.redelivered).shortstr(i.message.exchange).
		shortstr(i.message.key).long(uint32(q.len())).end(0)
	ch.conn.out.send(out.content(ch.id, i.message, ch.conn.frameMax))
	if noAck {
		b.drop(i)
	}
	return nil
}

func (ch *channel) ack(a *args) error {
	tag, multiple := a.longlong(), a.octet()&1 != 0
	if a.err != nil {
		return nil
	}
	return ch.settle(tag, multiple, false)
}

func (ch *channel) reject(a *args) error {
	tag, requeue := a.longlong(), a.octet()&1 != 0
	if a.err != nil {
		return nil
	}
	return ch.settle(tag, false, requeue)
}

func (ch *channel) nack(a *args) error {
	tag, flags := a.longlong(), a.octet()
	if a.err != nil {
		return nil
	}
	return ch.settle(tag, flags&1 != 0, flags&2 != 0)
}

// settle forgets messages, or gives them back. Their consumers may be sent more then.
func (ch *channel) settle(tag uint64, multiple, requeue bool) error {
	list, err := ch.take(tag, multiple)
	if err != nil {
		return err
	}
	if requeue {
		ch.giveBack(list)
		return nil
	}
	b := ch.conn.b
	var last *queue
	for _, d := range list {
		b.counts.acknowledged++
		b.drop(d.item)
		if d.queue != last && last != nil {
			b.dispatch(last)
		}
		last = d.queue
	}
	if last != nil && ch.prefetch == 0 {
		b.dispatch(last)
	}
	if ch.prefetch > 0 { // Any of the channel's consumers may go on.
		for _, c := range ch.consumers {
			b.dispatch(c.queue)
		}
	}
	return nil
}

func (ch *channel) recover(a *args) error {
	requeue := a.octet()&1 != 0
	if a.err != nil {
		return nil
	}
	if !requeue {
		return missing("recovery without requeue")
	}
	list, _ := ch.take(0, true)
	ch.giveBack(list)
	ch.reply(method(ch.id, basicRecoverOK))
	return nil
}
