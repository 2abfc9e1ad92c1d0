package memcached

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/image/internal/inlet"
	"github.com/aiopslab/aiopslab/image/internal/meter"
	"github.com/aiopslab/aiopslab/kit"
)

// crawlEvery is how often dead items are looked for.
const crawlEvery = time.Minute

// connMemory is what a connection holds.
const connMemory = 20 << 10

// server is a cache that serves clients.
type server struct {
	options
	env     *kit.Env
	store   *store
	meter   *meter.Meter
	holder  *kit.Holder // of the items' memory
	started time.Time
	verbose atomic.Int64
	stats   traffic

	logMu sync.Mutex

	mu     sync.Mutex
	conns  map[*conn]struct{}
	nextID int
}

func newServer(env *kit.Env, o options) *server {
	s := &server{
		options: o, env: env, meter: meter.New(env.CPU), started: env.Since(), conns: map[*conn]struct{}{},
		nextID: firstConn,
	}
	s.holder = kit.NewExactHolder(env)
	s.store = newStore(o.memory, o.maxItem, func(n int64) error { return s.holder.Add(int(n)) })
	s.store.noEvict = o.noEvict
	s.verbose.Store(int64(o.verbosity))
	return s
}

// firstConn is the file descriptor that the first client of a real one gets.
const firstConn = 27

func (s *server) logf(level int64, format string, args ...any) {
	if s.verbose.Load() < level {
		return
	}
	s.logMu.Lock()
	defer s.logMu.Unlock()
	fmt.Fprintf(s.env.Stderr, format+"\n", args...)
}

// run serves until the context ends or a signal says so.
func (s *server) run(ctx context.Context, listeners []net.Listener) error {
	signals := s.env.Notify()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for i, ln := range listeners {
		s.logf(2, "<%d server listening (auto-negotiate)", firstConn-1-i)
		wg.Go(func() { s.accept(ctx, ln, &wg) })
	}
	wg.Go(func() { s.crawl(ctx) })
	for done := false; !done; {
		select {
		case <-ctx.Done():
			done = true
		case sig := <-signals:
			done = sig == syscall.SIGTERM || sig == syscall.SIGINT
		}
	}
	err := ctx.Err()
	if err == nil {
		s.logf(1, "Exiting normally")
	}
	cancel(nil)
	for _, ln := range listeners {
		ln.Close()
	}
	s.mu.Lock()
	for c := range s.conns {
		c.net.Close()
	}
	s.mu.Unlock()
	wg.Wait()
	return err
}

func (s *server) crawl(ctx context.Context) {
	t := time.NewTicker(crawlEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.store.crawl()
		case <-ctx.Done():
			return
		}
	}
}

func (s *server) accept(ctx context.Context, ln net.Listener, wg *sync.WaitGroup) {
	inlet.Serve(ctx, ln, func(nc net.Conn) {
		wg.Go(func() { s.client(ctx, nc) })
	}, func(err error) { s.logf(1, "accept(): %v", err) })
}

// client serves one connection, or turns it down.
func (s *server) client(ctx context.Context, nc net.Conn) {
	c := &conn{server: s, net: nc, since: time.Now()}
	c.in, c.out = bufio.NewReaderSize(c, maxLine), bufio.NewWriterSize(c, 4096)
	s.mu.Lock()
	full := len(s.conns) >= s.maxConns
	if !full && ctx.Err() == nil {
		c.id = s.nextID
		s.nextID++
		s.conns[c] = struct{}{}
	}
	s.mu.Unlock()
	if full {
		s.stats.rejected.Add(1)
		nc.Write([]byte("ERROR Too many open connections\r\n"))
	}
	if c.id == 0 {
		nc.Close()
		return
	}
	s.stats.total.Add(1)
	s.stats.current.Add(1)
	s.logf(2, "<%d new auto-negotiating client connection", c.id)
	if s.env.Memory.Add(connMemory) == nil {
		c.serve(ctx)
		s.env.Memory.Add(-connMemory)
	}
	nc.Close()
	s.stats.current.Add(-1)
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// connections is "stats conns".
func (c *conn) connections(w *statWriter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*conn
	for x := range c.conns {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b *conn) int { return a.id - b.id })
	for _, x := range list {
		w.add(fmt.Sprintf("%d:addr", x.id), "tcp:"+x.net.RemoteAddr().String())
		w.add(fmt.Sprintf("%d:listen_addr", x.id), "tcp:"+x.net.LocalAddr().String())
		w.add(fmt.Sprintf("%d:secs_since_connect", x.id), int64(time.Since(x.since)/time.Second))
	}
}
