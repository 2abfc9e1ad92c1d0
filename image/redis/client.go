package redis

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/aiopslab/aiopslab/kit"
)

// client is a connection.
type client struct {
	*instance
	id    int64
	net   net.Conn
	in    *bufio.Reader
	peer  *server.Peer // as miniredis knows it
	since time.Time

	// Under the instance's lock.
	name    string
	db      int
	authed  bool
	last    time.Time
	command string // the last one
	queued  [][]string
	inTx    bool
	aborted bool // the transaction has a command that is wrong
	subs    bool // has subscribed to something
	closing bool

	outMu sync.Mutex
	busy  bool         // a command runs; what it writes is collected
	reply bytes.Buffer // of the command

	blocked bool        // waits in a command
	outbox  chan []byte // of a monitor

	watching chan struct{}  // closed when nobody else reads from the connection
	helpers  sync.WaitGroup // goroutines of this client
}

// maxOutbox is how many lines a monitor may lag behind.
const maxOutbox = 10_000

// Write is for the peer: the reply of the command that runs, or a message that was published.
func (c *client) Write(p []byte) (int, error) {
	c.outMu.Lock()
	defer c.outMu.Unlock()
	if c.busy {
		return c.reply.Write(p)
	}
	return c.send(p)
}

// send writes to the connection. The caller holds outMu.
func (c *client) send(p []byte) (int, error) {
	n, err := c.net.Write(p)
	c.stats.output.Add(int64(n))
	return n, err
}

// Read counts what comes in.
func (c *client) Read(p []byte) (int, error) {
	n, err := c.net.Read(p)
	c.stats.input.Add(int64(n))
	return n, err
}

// serve executes the commands of a connection.
func (s *instance) serve(ctx context.Context, nc net.Conn) {
	c := &client{instance: s, net: nc, since: time.Now()}
	defer func() {
		nc.Close()
		c.helpers.Wait()
	}()
	c.in = bufio.NewReader(c)
	c.peer = server.NewPeer(bufio.NewWriter(c))
	if !c.enter(ctx) {
		return
	}
	defer c.leave()
	query := kit.NewHolder(s.env)
	defer query.Release()
	for !c.closing {
		if c.watching != nil {
			<-c.watching
			c.watching = nil
		}
		if t := c.idleLimit(); t > 0 {
			nc.SetReadDeadline(time.Now().Add(t))
		}
		if !c.inTx { // A transaction keeps its commands.
			query.Release()
		}
		args, err := readCommand(c.in, query.Add)
		var bad protocolError
		if errors.As(err, &bad) {
			fmt.Fprintf(nc, "-ERR %v\r\n", bad)
		}
		if err != nil {
			return
		}
		if len(args) == 0 {
			continue
		}
		if c.execute(ctx, args) != nil {
			return
		}
	}
}

func (c *client) idleLimit() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subs || c.outbox != nil {
		return 0
	}
	return time.Duration(c.config.int("timeout")) * time.Second
}

func (c *client) enter(ctx context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	c.stats.connections++
	if int64(len(c.clients)) >= c.config.int("maxclients") {
		c.stats.rejected++
		c.net.Write([]byte("-ERR max number of clients reached\r\n"))
		return false
	}
	c.nextID++
	c.id, c.last = c.nextID, c.since
	c.clients[c] = struct{}{}
	c.log(verbose, "Accepted %s", c.net.RemoteAddr())
	return c.env.Memory.Add(clientMemory) == nil
}

func (c *client) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clients, c)
	if c.outbox != nil {
		delete(c.monitors, c)
		close(c.outbox)
	}
	c.env.Memory.Add(-clientMemory)
	if c.subs { // Miniredis must forget the subscriptions.
		for _, command := range []string{"DISCARD", "UNSUBSCRIBE", "PUNSUBSCRIBE"} {
			c.dispatch([]string{command})
		}
	}
	c.log(verbose, "Client closed connection %s", c.net.RemoteAddr())
}

// dispatch lets miniredis execute a command and returns the reply.
func (c *client) dispatch(args []string) []byte {
	c.outMu.Lock()
	c.busy = true
	c.outMu.Unlock()
	c.data.srv.Dispatch(c.peer, args)
	c.peer.Flush()
	c.outMu.Lock()
	defer c.outMu.Unlock()
	c.busy = false
	result := bytes.Clone(c.reply.Bytes())
	c.reply.Reset()
	return result
}

// execute runs one command and sends the reply.
func (c *client) execute(ctx context.Context, args []string) error {
	args[0] = strings.ToUpper(args[0])
	if reply, taken := c.takeTurn(args); !taken {
		return c.answer(reply)
	}
	c.mu.Lock()
	start := time.Now()
	c.expireDue(start)
	c.last, c.command = start, strings.ToLower(args[0])
	c.stats.processed++
	c.feedMonitors(args, start)
	result := c.decide(ctx, args, start)
	size := len(result)
	for _, a := range args {
		size += len(a)
	}
	err := c.meter.Spend(ctx, commandCost+byteCost*time.Duration(size))
	c.finish(args, result, time.Since(start), start)
	c.mu.Unlock()
	c.turn.Unlock()
	if err != nil {
		return err
	}
	return c.answer(result)
}

// answer sends a reply.
func (c *client) answer(result []byte) error {
	if len(result) == 0 {
		return nil
	}
	c.outMu.Lock()
	defer c.outMu.Unlock()
	_, err := c.send(result)
	return err
}

func fail(format string, args ...any) []byte { return fmt.Appendf(nil, "-"+format+"\r\n", args...) }

var ok = []byte("+OK\r\n")

// decide returns the reply to a command.
func (c *client) decide(ctx context.Context, args []string, now time.Time) []byte {
	command := args[0]
	if c.config.values["requirepass"] != "" && !c.authed && command != "AUTH" && command != "HELLO" &&
		command != "QUIT" && command != "RESET" {
		return fail("NOAUTH Authentication required.")
	}
	if a, found := admin[command]; found && !(c.inTx && a.queued) {
		switch {
		case c.inTx && command != "QUIT" && command != "RESET":
			c.aborted = true
			return fail("ERR Command not allowed inside a transaction")
		case len(args) < a.min || a.max > 0 && len(args) > a.max:
			return wrongArity(command)
		}
		return a.do(c, args)
	}
	if !c.data.srv.IsRegisteredCommand(command) || hidden[command] {
		c.aborted = c.inTx
		return unknownCommand(c.command, args[1:])
	}
	if reply := refuse(args); reply != nil {
		c.aborted = c.inTx
		return reply
	}
	if isScripting(command) {
		return c.scripting(ctx, args)
	}
	return c.onData(ctx, args, now)
}

func wrongArity(command string) []byte {
	return fail("ERR wrong number of arguments for '%s' command", strings.ToLower(command))
}

func unknownCommand(command string, args []string) []byte {
	b := fmt.Appendf(nil, "-ERR unknown command `%s`, with args beginning with: ", command)
	for _, a := range args[:min(len(args), 20)] {
		b = fmt.Appendf(b, "`%s`, ", strings.Map(func(r rune) rune {
			if r == '\r' || r == '\n' {
				return ' '
			}
			return r
		}, a[:min(len(a), 128)]))
	}
	return append(b, "\r\n"...)
}

// onData executes a command on the data.
func (c *client) onData(ctx context.Context, args []string, now time.Time) []byte {
	k, writing := writes[args[0]]
	if writing {
		if why := c.misconf(); why != "" {
			return fail("%s", why)
		}
		if !c.evict() && k.grows {
			return fail(errOOM)
		}
	}
	c.lookup(args, now)
	var was *entry
	if len(args) > 2 && (args[0] == "RENAME" || args[0] == "RENAMENX" || args[0] == "COPY") {
		if e := c.data.entries[name{c.db, args[1]}]; e != nil {
			copied := *e
			was = &copied
		}
	}
	var result []byte
	if args[0] == "EXEC" && c.inTx && c.aborted {
		c.inTx, c.queued = false, nil
		c.dispatch([]string{"DISCARD"})
		return fail("EXECABORT Transaction discarded because of previous errors.")
	}
	if blocking(args) && !c.inTx {
		result = c.wait(ctx, args)
		now = time.Now()
	} else {
		result = reword(args, c.dispatch(args))
	}
	switch args[0] {
	case "MULTI":
		if bytes.Equal(result, ok) {
			c.inTx, c.aborted = true, false
		}
		return result
	case "DISCARD":
		c.inTx, c.queued = false, nil
		return result
	case "EXEC":
		c.exec(result, now)
		return result
	case "SUBSCRIBE", "PSUBSCRIBE":
		c.subs = true
	}
	if c.inTx {
		if bytes.Equal(result, []byte("+QUEUED\r\n")) {
			c.queued = append(c.queued, args)
		}
		return result
	}
	if writing && len(result) > 0 && result[0] != failure {
		c.account(c.db, args, now)
		if was != nil {
			c.data.copied(*was, c.db, args[2])
			c.charge()
		}
		c.propagate(c.db, c.repeatable(args, parseReply(result))...)
	}
	return result
}

// repeatable is durable, with expiry as a date.
func (c *client) repeatable(args []string, r reply) [][]string {
	list := durable(args, r)
	if len(list) > 0 && setsExpiry(args) {
		if e := c.data.entries[name{c.db, args[1]}]; e != nil && !e.expires.IsZero() {
			list = append(list, []string{"PEXPIREAT", args[1], strconv.FormatInt(e.expires.UnixMilli(), 10)})
		}
	}
	return list
}

// lookup notes that keys are used.
func (c *client) lookup(args []string, now time.Time) {
	if !lookups[args[0]] || len(args) < 2 {
		return
	}
	keys := args[1:2]
	if args[0] == "MGET" || args[0] == "EXISTS" {
		keys = args[1:]
	}
	for _, key := range keys {
		if e := c.data.entries[name{c.db, key}]; e != nil {
			e.used = now
			c.stats.hits++
		} else {
			c.stats.misses++
		}
	}
}

// exec notes what a transaction has done.
func (c *client) exec(result []byte, now time.Time) {
	queued := c.queued
	c.inTx, c.queued = false, nil
	r := parseReply(result)
	if r.kind != array || r.null {
		return
	}
	var all [][]string
	for i, args := range queued {
		if i >= len(r.items) || r.items[i].kind == failure {
			continue
		}
		if args[0] == "SELECT" {
			c.db, _ = strconv.Atoi(args[1])
		}
		if _, writing := writes[args[0]]; writing {
			c.account(c.db, args, now)
			all = append(all, c.repeatable(args, r.items[i])...)
		}
	}
	c.propagate(c.db, all...)
}

// wait executes a command that may wait for other clients: they go on meanwhile. It ends when the
// client goes.
func (c *client) wait(ctx context.Context, args []string) []byte {
	c.blocked = true
	c.mu.Unlock()
	c.turn.Unlock()
	watched := make(chan struct{})
	done := make(chan struct{})
	c.watching = watched
	c.helpers.Go(func() {
		defer close(watched)
		c.net.SetReadDeadline(time.Time{})
		if _, err := c.in.Peek(1); err == nil {
			return
		}
		select {
		case <-done:
		default:
			c.peer.Close()
			c.mu.Lock()
			c.data.do(0, "PING") // It wakes all who wait, to see that this one is gone.
			c.mu.Unlock()
		}
	})
	result := c.dispatch(args)
	close(done)
	if ctx.Err() != nil || c.peer.Closed() {
		c.net.Close()
	}
	c.turn.Lock()
	c.mu.Lock()
	c.blocked = false
	return result
}

// feedMonitors shows a command to those who watch.
func (c *client) feedMonitors(args []string, now time.Time) {
	if len(c.monitors) == 0 || args[0] == "AUTH" || args[0] == "HELLO" || args[0] == "MONITOR" {
		return
	}
	line := fmt.Appendf(nil, "+%d.%06d [%d %s]", now.Unix(), now.Nanosecond()/1000, c.db, c.net.RemoteAddr())
	line = append(line, " "+quote(c.command)...)
	for _, a := range args[1:] {
		line = append(line, " "+quote(a)...)
	}
	line = append(line, "\r\n"...)
	for m := range c.monitors {
		select {
		case m.outbox <- line:
		default: // It reads too slowly.
			m.net.Close()
		}
	}
}

// finish counts a command.
func (c *client) finish(args []string, result []byte, took time.Duration, start time.Time) {
	st := c.stats.commands[c.command]
	if st == nil && (admin[args[0]].do != nil || c.data.srv.IsRegisteredCommand(args[0])) {
		st = &commandStats{}
		c.stats.commands[c.command] = st
	}
	if st != nil {
		st.calls++
		st.took += took
	}
	if len(result) > 0 && result[0] == failure {
		class, _, _ := strings.Cut(strings.TrimSpace(string(result[1:])), " ")
		c.stats.errors[class]++
		if st != nil {
			st.failed++
		}
	}
	limit := c.config.int("slowlog-log-slower-than")
	if limit >= 0 && took >= time.Duration(limit)*time.Microsecond && !blocking(args) {
		c.slowID++
		c.slow = append([]slowEntry{{c.slowID - 1, start, took, args, c.net.RemoteAddr().String(), c.name}}, c.slow...)
		c.slow = c.slow[:min(int64(len(c.slow)), c.config.int("slowlog-max-len"))]
	}
}
