// Package server is a MongoDB server: it takes connections, authenticates their users and runs their
// commands on an engine.
package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/aiopslab/aiopslab/image/internal/inlet"
	"github.com/aiopslab/aiopslab/image/mongo/internal/engine"
	"github.com/aiopslab/aiopslab/image/mongo/internal/mlog"
	"github.com/aiopslab/aiopslab/kit"
)

// Version is the release whose behaviour this is, and GitVersion its commit.
const (
	Version    = "4.4.6"
	GitVersion = "72e66213c2c3eab37d9358d5e78ad7f5c1d0d0d7"
)

// Config is what a server is made of.
type Config struct {
	Env    *kit.Env
	Engine *engine.Engine
	Log    *mlog.Log
	Auth   bool
	TLS    *tls.Config // nil is none
	// TLSMode is "disabled", "allowTLS", "preferTLS" or "requireTLS".
	TLSMode string
	Port    int
	// Args and Parsed are the command line and what it means, for getCmdLineOpts.
	Args   []string
	Parsed bson.D
	DBPath string
}

// Server serves connections. It is made by New.
type Server struct {
	Config
	started time.Time // the container
	began   time.Time // the program
	process bson.ObjectID
	cursors cursors
	access  accessCache
	counts  counters

	nextConn atomic.Int64
	nextID   atomic.Int32

	mu    sync.Mutex
	conns map[*conn]struct{}

	stopping chan struct{} // closed when the server shuts down
	failed   chan error    // gets why the server cannot go on
	stopOnce sync.Once
	work     sync.WaitGroup
}

// New returns a server that is not listening yet.
func New(cfg Config) *Server {
	s := &Server{
		Config: cfg, started: cfg.Env.Since(), began: time.Now(), process: bson.NewObjectID(),
		conns: map[*conn]struct{}{}, stopping: make(chan struct{}), failed: make(chan error, 1),
	}
	s.access.load = s.loadAccess
	s.remember()
	return s
}

// Serve takes connections until the listener is closed.
func (s *Server) Serve(ctx context.Context, ln net.Listener) {
	inlet.Serve(ctx, ln, func(nc net.Conn) { s.accept(ctx, nc) }, func(err error) {
		s.Log.Warn(mlog.Network, 23022, "listener", "Error accepting new connection on local endpoint", bson.D{
			{Key: "localEndpoint", Value: ln.Addr().String()}, {Key: "error", Value: err.Error()},
		})
	})
}

// accept serves a connection in the background, unless the server shuts down.
func (s *Server) accept(ctx context.Context, nc net.Conn) {
	s.mu.Lock()
	if s.isStopping() {
		s.mu.Unlock()
		nc.Close()
		return
	}
	c := &conn{srv: s, raw: nc, nc: nc, id: s.nextConn.Add(1), since: time.Now()}
	s.conns[c] = struct{}{}
	n := len(s.conns)
	s.work.Add(1) // Under the lock: Close waits for all that it finds.
	s.mu.Unlock()
	s.Log.Info(mlog.Network, 22943, "listener", "Connection accepted", bson.D{
		{Key: "remote", Value: nc.RemoteAddr().String()},
		{Key: "connectionId", Value: c.id},
		{Key: "connectionCount", Value: n},
	})
	go func() {
		defer s.work.Done()
		s.Guard(func() { c.serve(ctx) })
		nc.Close()
		s.mu.Lock()
		delete(s.conns, c)
		n := len(s.conns)
		s.mu.Unlock()
		if !s.isStopping() {
			s.Log.Info(mlog.Network, 22944, c.name(), "Connection ended", bson.D{
				{Key: "remote", Value: nc.RemoteAddr().String()},
				{Key: "connectionId", Value: c.id},
				{Key: "connectionCount", Value: n},
			})
		}
	}()
}

// Connections returns how many are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Failed delivers the error that keeps the server from going on, or nil when a client shuts it
// down.
func (s *Server) Failed() <-chan error { return s.failed }

func (s *Server) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// PanicError is a panic in the server, as an error.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Guard calls f. If f panics, the server fails, but the process that it shares with others goes on.
func (s *Server) Guard(f func()) {
	defer func() {
		if r := recover(); r != nil {
			s.fail(&PanicError{r, debug.Stack()})
		}
	}()
	f()
}

func (s *Server) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// Close ends all connections and waits for what they do.
func (s *Server) Close() {
	s.mu.Lock()
	s.stopOnce.Do(func() { close(s.stopping) })
	for c := range s.conns {
		c.raw.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
}

// Maintain does what a server does in the background, until the context ends: it makes writes
// durable, writes checkpoints and removes what has expired.
func (s *Server) Maintain(ctx context.Context) {
	commit := time.NewTicker(engine.CommitInterval)
	defer commit.Stop()
	minute := time.NewTimer(time.Until(s.checkpointAfter(time.Now())))
	defer minute.Stop()
	for {
		periodic := false
		select {
		case <-ctx.Done():
			return
		case <-commit.C:
			if err := s.Engine.Sync(); err != nil {
				s.fail(err)
				return
			}
			if s.Engine.JournalSize() < checkpointSize {
				continue
			}
		case <-minute.C:
			periodic = true
			minute.Reset(time.Until(s.checkpointAfter(time.Now())))
			s.cursors.expire(time.Now())
			s.expireDocuments()
		}
		if err := s.Engine.Checkpoint(s.Env, s.DBPath); err != nil {
			s.fail(err)
			return
		}
		if periodic {
			s.logCheckpoint()
		}
	}
}

// checkpointSize is how large the journal grows before a checkpoint is due at once.
const checkpointSize = 8 << 20
