package rabbitmq

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	// handshakeTimeout is how long a client may take to log in, and farewell to agree that it is over.
	handshakeTimeout = 10 * time.Second
	farewell         = 2 * time.Second
	// defaultHeartbeat is what clients are told, in seconds.
	defaultHeartbeat = 60
	// connBytes is what a connection takes besides what it carries.
	connBytes = 32 << 10
)

// conn is the connection of a client.
type conn struct {
	b        *broker
	net      net.Conn
	r        *bufio.Reader
	buf      []byte
	out      *outbox
	pid      uint64
	name     string // from and to
	since    time.Time
	user     *user
	frameMax int
	beat     time.Duration
	blockage bool // the client wants to know when it is blocked
	partial  int  // bytes of bodies that are not whole

	channels map[uint16]*channel // guarded by the broker's lock
}

// serve talks to a client until one of both has enough.
func (b *broker) serve(ctx context.Context, wire net.Conn) {
	defer wire.Close()
	c := &conn{
		b: b, net: wire, r: bufio.NewReaderSize(wire, 4<<10), out: newOutbox(b.holder), pid: b.pid(),
		name: fmt.Sprintf("%s -> %s", wire.RemoteAddr(), wire.LocalAddr()), since: time.Now(), frameMax: maxFrame,
		channels: map[uint16]*channel{},
	}
	b.mu.Lock()
	full := len(b.conns) >= maxConns
	if !full {
		b.conns[c] = struct{}{}
		b.counts.connOpened++
	}
	b.mu.Unlock()
	if full {
		b.log.warn("connection from %s refused: there are %d", wire.RemoteAddr(), maxConns)
		return
	}
	if b.holder.Add(connBytes) != nil {
		return
	}
	var writing sync.WaitGroup
	writing.Go(func() { c.out.run(wire, c.drained) })
	defer context.AfterFunc(ctx, func() { _ = wire.SetReadDeadline(time.Unix(1, 0)) })()
	err := c.greet()
	if err == nil {
		b.log.line("info", c.pid, "connection <0.%d.0> (%s): user '%s' authenticated and granted access to vhost '%s'",
			c.pid, c.name, c.user.name, b.settings.vhost)
		beating, stop := context.WithCancel(ctx)
		writing.Go(func() { c.keepAlive(beating) })
		err = c.loop(ctx)
		stop()
	}
	if ctx.Err() != nil {
		err = hard(codeConnectionForced, "broker forced connection closure with reason 'shutdown'")
	}
	c.end(err)
	c.cleanUp()
	c.out.close()
	writing.Wait()
	_ = b.holder.Add(-connBytes)
}

// end says goodbye, by what ended the connection.
func (c *conn) end(err error) {
	f, ok := errors.AsType[*failure](err)
	switch {
	case err == nil || errors.Is(err, io.EOF) && c.user == nil:
		if c.user != nil {
			c.b.log.line("info", c.pid, "closing AMQP connection <0.%d.0> (%s)", c.pid, c.name)
		}
	case ok:
		c.b.log.line("error", c.pid, "Error on AMQP connection <0.%d.0> (%s): %s", c.pid, c.name, f.Error())
		c.out.send(method(0, connClose).short(uint16(f.code)).shortstr(f.Error()).short(0).short(0).end(0))
		_ = c.net.SetReadDeadline(time.Now().Add(farewell))
		for {
			var in frame
			if in, c.buf, err = readFrame(c.r, c.buf); err != nil {
				return
			}
			a := args{b: in.payload}
			if in.kind == frameMethod && id(a.long()) == connCloseOK {
				return
			}
		}
	default:
		c.b.log.line("warning", c.pid,
			"closing AMQP connection <0.%d.0> (%s): client unexpectedly closed TCP connection", c.pid, c.name)
	}
}

// cleanUp gives back what a client that has gone had.
func (c *conn) cleanUp() {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	for _, ch := range c.channels {
		ch.close()
	}
	for _, name := range named(c.b.queues) {
		if q := c.b.queues[name]; q != nil && q.owner == c {
			c.b.remove(q)
		}
	}
	delete(c.b.conns, c)
	c.b.counts.connClosed++
}

// drained sends the messages that had to wait for room.
func (c *conn) drained() {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	for _, ch := range c.channels {
		for _, one := range ch.consumers {
			c.b.dispatch(one.queue)
		}
	}
}

// keepAlive sends heartbeats.
func (c *conn) keepAlive(ctx context.Context) {
	if c.beat == 0 {
		return
	}
	t := time.NewTicker(c.beat / 2)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			c.out.send([]byte{frameHeartbeat, 0, 0, 0, 0, 0, 0, frameEnd})
		}
	}
}

// next reads a frame. A client that is silent for two heartbeats has gone.
func (c *conn) next() (in frame, err error) {
	if c.beat > 0 {
		_ = c.net.SetReadDeadline(time.Now().Add(2 * c.beat))
	}
	in, c.buf, err = readFrame(c.r, c.buf)
	return in, err
}

// expect reads the method that has to come next.
func (c *conn) expect(want id) (*args, error) {
	in, err := c.next()
	if err != nil {
		return nil, err
	}
	a := &args{b: in.payload}
	if got := id(a.long()); in.kind != frameMethod || in.channel != 0 || got != want {
		return nil, hard(codeCommandInvalid, "unexpected method %d.%d, want %d.%d", got>>16, got&0xffff, want>>16,
			want&0xffff)
	}
	return a, nil
}

// properties are what a client is told of the server.
var properties = func() string {
	var p packet
	for _, kv := range [][2]string{
		{"product", "RabbitMQ"},
		{"version", Version},
		{"platform", "Go"},
		{"information", "A node of AIOpsLab that speaks AMQP 0-9-1"},
	} {
		p = append(p.shortstr(kv[0]), 'S').longstr(kv[1])
	}
	var able packet
	for _, name := range []string{
		"publisher_confirms", "basic.nack", "consumer_cancel_notify", "connection.blocked", "per_consumer_qos",
		"authentication_failure_close",
	} {
		able = append(able.shortstr(name), 't', 1)
	}
	return string(append(p.shortstr("capabilities"), 'F').longstr(string(able)))
}()

// greet has the client log in.
func (c *conn) greet() error {
	_ = c.net.SetReadDeadline(time.Now().Add(handshakeTimeout))
	var hello [8]byte
	if _, err := io.ReadFull(c.r, hello[:]); err != nil {
		return io.EOF // A probe, which has come to see whether anybody listens.
	}
	if string(hello[:]) != "AMQP\x00\x00\x09\x01" {
		c.b.log.line("error", c.pid, "closing AMQP connection <0.%d.0> (%s): bad header %q", c.pid, c.name, hello[:])
		c.out.send([]byte("AMQP\x00\x00\x09\x01"))
		return io.EOF
	}
	c.b.log.line("info", c.pid, "accepting AMQP connection <0.%d.0> (%s)", c.pid, c.name)
	c.out.send(method(0, connStart).octet(0).octet(9).longstr(properties).longstr("PLAIN").longstr("en_US").end(0))
	a, err := c.expect(connStartOK)
	if err != nil {
		return err
	}
	if err := c.login(a); err != nil {
		return err
	}
	c.out.send(method(0, connTune).short(maxChannels).long(maxFrame).short(defaultHeartbeat).end(0))
	if a, err = c.expect(connTuneOK); err != nil {
		return err
	}
	a.short()
	frameMax, beat := int(a.long()), a.short()
	if frameMax == 0 {
		frameMax = maxFrame
	}
	if a.err != nil || frameMax < 4096 || frameMax > maxFrame {
		return hard(codeNotAllowed, "frame_max=%d is not between 4096 and %d", frameMax, maxFrame)
	}
	c.frameMax = frameMax
	if a, err = c.expect(connOpen); err != nil {
		return err
	}
	vhost := a.shortstr()
	if a.err != nil || vhost != c.b.settings.vhost {
		return hard(codeNotAllowed, "vhost %s not found", vhost)
	}
	if err := c.b.admit(c.user); err != nil {
		return err
	}
	_ = c.net.SetReadDeadline(time.Time{})
	c.beat = time.Duration(beat) * time.Second
	c.out.send(method(0, connOpenOK).shortstr("").end(0))
	return nil
}

// login checks who it is.
func (c *conn) login(a *args) error {
	about := a.table()
	mechanism, response := a.shortstr(), a.longstr()
	if a.err != nil {
		return hard(codeSyntaxError, "%v", a.err)
	}
	if able, ok := about["capabilities"].(map[string]any); ok {
		c.blockage, _ = able["connection.blocked"].(bool)
	}
	if mechanism != "PLAIN" {
		return hard(codeAccessRefused, "this node knows the mechanism PLAIN, and not '%s'", mechanism)
	}
	parts := bytes.Split(response, []byte{0})
	name, password := "", ""
	if len(parts) == 3 {
		name, password = string(parts[1]), string(parts[2])
	}
	if c.user = c.b.authenticate(name, password); c.user == nil {
		c.b.log.line("error", c.pid, "PLAIN login refused: user '%s' - invalid credentials", printable(name))
		return hard(codeAccessRefused,
			"Login was refused using authentication mechanism PLAIN. For details see the broker logfile.")
	}
	return nil
}

// printable is a name that a client gave, fit for a log.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s[:min(len(s), 200)])
}

// loop does what the client asks for. It returns nil when the client has closed the connection.
func (c *conn) loop(ctx context.Context) error {
	for {
		if err := c.out.await(ctx); err != nil {
			return err
		}
		in, err := c.next()
		if err != nil {
			return err
		}
		if in.kind == frameHeartbeat {
			continue
		}
		if in.channel != 0 {
			if err := c.onChannel(ctx, in); err != nil {
				return err
			}
			continue
		}
		a := args{b: in.payload}
		switch m := id(a.long()); {
		case in.kind != frameMethod:
			return hard(codeUnexpectedFrame, "frame of type %d on channel 0", in.kind)
		case m == connClose:
			c.out.send(method(0, connCloseOK).end(0))
			return nil
		case m == connBlocked || m == connFreed:
		default:
			return hard(codeCommandInvalid, "unexpected method %d.%d on channel 0", m>>16, m&0xffff)
		}
	}
}

// tellBlocked says that publishers have to wait, or no longer. The broker's lock is held.
func (c *conn) tellBlocked(yes bool) {
	switch {
	case !c.blockage:
	case yes:
		c.out.send(method(0, connBlocked).shortstr("low on memory").end(0))
	default:
		c.out.send(method(0, connFreed).end(0))
	}
}

// tellCancelled says that a consumer's queue has gone. The broker's lock is held.
func (c *conn) tellCancelled(one *consumer) {
	c.out.send(method(one.channel.id, basicCancel).shortstr(one.tag).bit(true).end(0))
}
