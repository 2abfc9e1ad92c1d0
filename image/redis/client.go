package redis

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
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
