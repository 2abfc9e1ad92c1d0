package redis

import (
	"bufio"
	"bytes"
	"strconv"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// data is miniredis with a ledger of what is in it. Whoever uses it holds the server's lock.
type data struct {
	*miniredis.Miniredis
	ledger
	srv   *server.Server
	peers map[int]*internalPeer // our own, by database
}

// internalPeer is a client that is ourselves.
type internalPeer struct {
	*server.Peer
	out bytes.Buffer
}

func newData() (*data, error) {
	d := &data{Miniredis: miniredis.NewMiniRedis(), ledger: *newLedger(), peers: map[int]*internalPeer{}}
	c, err := d.Dial() // It starts without a listener.
	if err != nil {
		return nil, err
	}
	d.srv = d.Server() // Miniredis forgets it when it is closed.
	// Its own engine is not for scripts of others, wherever they come from: see lua.go.
	d.srv.SetPreHook(func(p *server.Peer, command string, _ ...string) bool {
		if isScripting(command) {
			p.WriteError("ERR scripts do not run here")
		}
		return isScripting(command)
	})
	return d, c.Close()
}

// do executes a command of our own and returns the reply.
func (d *data) do(db int, args ...string) []byte {
	p := d.peers[db]
	if p == nil {
		p = &internalPeer{}
		p.Peer = server.NewPeer(bufio.NewWriter(&p.out))
		d.peers[db] = p
		d.srv.Dispatch(p.Peer, []string{"SELECT", strconv.Itoa(db)})
		p.Flush()
	}
	p.out.Reset()
	d.srv.Dispatch(p.Peer, args)
	p.Flush()
	return bytes.Clone(p.out.Bytes())
}

func (d *data) count(db int, args ...string) int64 {
	n, _ := strconv.ParseInt(parseReply(d.do(db, args...)).text, 10, 64)
	return n
}

// lengths are the commands that count the elements of a type.
var lengths = map[string]string{
	"string": "STRLEN", "list": "LLEN", "hash": "HLEN", "set": "SCARD", "zset": "ZCARD",
	"stream": "XLEN", "hll": "",
}

// hllSize is what a HyperLogLog takes.
const hllSize = 12304

// note brings the ledger up to date with a key that a command may have changed.
func (d *data) note(db int, key string, args []string, now time.Time) {
	n := name{db, key}
	store := d.DB(db)
	kind := store.Type(key)
	if kind == "" {
		d.remove(n)
		return
	}
	old := d.entries[n]
	var payload, elements int64
	if old == nil || kind != "string" {
		for _, a := range args[min(2, len(args)):] {
			payload += int64(len(a))
			elements++
		}
		if kind == "hash" || kind == "zset" || kind == "stream" {
			elements = max(1, elements/2)
		}
	}
	count := int64(hllSize)
	if command := lengths[kind]; command != "" {
		count = d.count(db, command, key)
	}
	e := d.put(n, kind, count, payload, elements, now)
	ttl := store.TTL(key)
	switch {
	case ttl == 0:
		d.expire(n, e, time.Time{})
	case setsExpiry(args) && args[1] == key || ttl != e.ttl || e.expires.IsZero():
		d.expire(n, e, now.Add(ttl))
	}
	e.ttl = ttl
}

// copied notes that a key is now what another was.
func (d *data) copied(was entry, db int, key string) {
	n := name{db, key}
	e := d.entries[n]
	if e == nil || e.kind != was.kind {
		return
	}
	e.average = was.average
	d.put(n, e.kind, e.n, 0, 0, e.used)
	if !e.expires.IsZero() {
		d.expire(n, e, was.expires)
	}
}

// flush notes that a database is empty, or all are if it is negative.
func (d *data) flush(db int) {
	for n := range d.entries {
		if db < 0 || n.db == db {
			d.remove(n)
		}
	}
}

// swap notes that two databases have changed places.
func (d *data) swap(a, b int) {
	old := d.ledger
	d.ledger = *newLedger()
	for n, e := range old.entries {
		switch n.db {
		case a:
			n.db = b
		case b:
			n.db = a
		}
		d.entries[n] = e
		d.perDB[n.db]++
		d.total += e.bytes
		d.expire(n, e, e.expires)
	}
}
