package rabbitmq

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// definitions are what of the node is durable.
func (b *broker) definitions() *definitions {
	d := &definitions{}
	for _, name := range named(b.users) {
		u := b.users[name]
		one := userDefinition{Name: u.name, Salt: u.salt, Hash: u.hash, Tags: u.tags}
		if u.may[0] != nil {
			one.Permissions = &u.texts
		}
		d.Users = append(d.Users, one)
	}
	for _, name := range named(b.exchanges) {
		e := b.exchanges[name]
		if !e.durable {
			continue
		}
		if e.name != "" && e.name[:min(4, len(e.name))] != "amq." {
			d.Exchanges = append(d.Exchanges, exchangeDefinition{e.name, e.kind, e.autoDelete, e.internal})
		}
		for _, at := range e.bindings {
			if at.queue.durable && at.queue.owner == nil {
				d.Bindings = append(d.Bindings, bindingDefinition{e.name, at.queue.name, at.key})
			}
		}
	}
	for _, name := range named(b.queues) {
		if q := b.queues[name]; q.durable && q.owner == nil {
			d.Queues = append(d.Queues, queueDefinition{q.name, q.autoDelete, int64(q.ttl), q.maxLength})
		}
	}
	return d
}

// restore makes what is on the disk: what definitions say, and the messages of durable queues.
func (b *broker) restore(d *definitions) error {
	if d == nil {
		u := &user{name: b.settings.user, tags: []string{"administrator"}}
		u.setPassword(b.settings.password)
		if err := u.permit([3]string{".*", ".*", ".*"}); err != nil {
			return err
		}
		b.users[u.name] = u
		b.save(true)
		return nil
	}
	for _, one := range d.Users {
		u := &user{name: one.Name, tags: one.Tags, salt: one.Salt, hash: one.Hash}
		if one.Permissions != nil {
			if err := u.permit(*one.Permissions); err != nil {
				return err
			}
		}
		b.users[u.name] = u
	}
	for _, one := range d.Exchanges {
		b.exchanges[one.Name] = &exchange{
			name: one.Name, kind: one.Kind, durable: true, autoDelete: one.AutoDelete, internal: one.Internal,
		}
	}
	for _, one := range d.Queues {
		b.queues[one.Name] = &queue{
			name: one.Name, durable: true, autoDelete: one.AutoDelete, ttl: time.Duration(one.TTL),
			maxLength: one.MaxLength,
		}
	}
	for _, one := range d.Bindings {
		if e, q := b.exchanges[one.Source], b.queues[one.Queue]; e != nil && q != nil {
			if err := b.bind(e, q, one.Key); err != nil {
				return err
			}
		}
	}
	b.reload()
	return nil
}

// reload puts the messages of the log into their queues. What has none any more is dropped.
func (b *broker) reload() {
	for n := range b.disk.ordered {
		a := args{b: b.disk.live[n][13:]}
		a.octet()
		name := a.shortstr()
		m := &message{exchange: a.shortstr(), key: a.shortstr(), persistent: true}
		m.header = slices.Clone(a.longstr())
		m.body = slices.Clone(a.longstr())
		b.seq++
		i := &item{message: m, seq: b.seq, redelivered: true, kept: true, number: n}
		q := b.queues[name]
		if a.err != nil || q == nil {
			b.disk.forget(i)
			continue
		}
		b.grow(m.size())
		q.push(i)
	}
}
