package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/mongo/internal/auth"
	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
	"github.com/aiopslab/aiopslab/image/mongo/internal/wire"
)

// conn is a client's connection. Its commands run one after the other.
type conn struct {
	srv   *Server
	raw   net.Conn // as it was accepted
	nc    net.Conn // what requests come from: raw, or TLS over it
	id    int64
	since time.Time

	client atomic.Pointer[value.Doc] // what the client says of itself
	users  []identity
	conv   *auth.Conversation
	bypass bool // the localhost exception holds
	debt   time.Duration
}

// payment is how much CPU time a connection owes before it is taken: waiting for less than that
// would take longer than the work.
const payment = 500 * time.Microsecond

// spend spends CPU time, now or with what comes next.
func (c *conn) spend(ctx context.Context, d time.Duration) error {
	if c.debt += d; c.debt < payment {
		return ctx.Err()
	}
	d, c.debt = c.debt, 0
	return c.srv.Env.CPU.Use(ctx, d)
}

// connCost is the CPU time of taking a connection.
const connCost = 100 * time.Microsecond

func (c *conn) name() string { return fmt.Sprintf("conn%d", c.id) }

// said is what the client says of itself.
func (c *conn) said() value.Doc {
	if doc := c.client.Load(); doc != nil {
		return *doc
	}
	return nil
}

func (c *conn) remote() string { return c.raw.RemoteAddr().String() }

// serve answers requests until the client leaves.
func (c *conn) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { c.raw.Close() })
	defer stop()
	if c.spend(ctx, connCost) != nil {
		return
	}
	r := bufio.NewReader(c.nc)
	rw, err := c.secure(ctx, r)
	if err != nil {
		c.rejected(err)
		return
	}
	if rw != nil {
		c.nc, r = rw, bufio.NewReader(rw)
	}
	c.bypass = c.srv.Auth && c.isLocal() && !c.srv.hasUsers()
	for {
		req, err := wire.Read(r)
		if err != nil {
			if errors.Is(err, wire.ErrSize) || errors.Is(err, wire.ErrMalformed) ||
				errors.Is(err, wire.ErrUnsupported) {
				c.rejected(err)
			}
			return
		}
		if !c.answer(ctx, req) {
			return
		}
	}
}

// rejected logs why the server closes the connection.
func (c *conn) rejected(err error) {
	if c.srv.isStopping() || errors.Is(err, net.ErrClosed) {
		return
	}
	c.srv.Log.Info(mlog.Network, 22988, c.name(), "Error receiving request from client. Ending connection from remote",
		bson.D{
			{Key: "error", Value: errorAttr(err)},
			{Key: "remote", Value: c.remote()},
			{Key: "connectionId", Value: c.id},
		})
}

func (c *conn) isLocal() bool {
	host, _, err := net.SplitHostPort(c.remote())
	if err != nil {
		return c.raw.RemoteAddr().Network() == "unix"
	}
	return net.ParseIP(host).IsLoopback()
}

// answer runs a command and sends the reply. It reports false if the connection is of no use any
// more.
func (c *conn) answer(ctx context.Context, req *wire.Request) bool {
	for {
		reply, err := c.run(ctx, req)
		if err != nil {
			return false
		}
		if req.NoReply {
			return true
		}
		more := req.Exhaust && !c.srv.isStopping() && awaits(req.Body)
		id := c.srv.nextID.Add(1)
		if _, err := c.nc.Write(wire.Reply(id, req, reply, more)); err != nil {
			return false
		}
		if !more {
			return true
		}
		next := *req // The next answer is to this one.
		next.ID = id
		req = &next
	}
}

// awaits reports whether a command is a hello that waits for news.
func awaits(body value.Doc) bool {
	name, _ := value.First(body)
	cmd := commands[name]
	return cmd != nil && cmd.hello && value.Exists(value.Get(body, "topologyVersion"))
}
