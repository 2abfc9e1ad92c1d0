package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/image/internal/inlet"
	"github.com/aiopslab/aiopslab/image/internal/meter"
	"github.com/aiopslab/aiopslab/kit"
)

// What commands cost, measured on a real one.
const (
	commandCost = 6 * time.Microsecond
	byteCost    = 2 * time.Nanosecond
)

const (
	baseMemory   = 860 << 10 // what an empty server uses
	clientMemory = 20 << 10
	cronEvery    = 100 * time.Millisecond
	exitAborted  = kit.ExitSignal + int(syscall.SIGABRT)
)

// gate lets one pass at a time. It is held while time passes, so unlike a sync.Mutex it must not
// keep a test's virtual clock from going on.
type gate chan struct{}

func (g gate) Lock()   { g <- struct{}{} }
func (g gate) Unlock() { <-g }

// instance is a server.
type instance struct {
	env     *kit.Env
	brand   brand
	role    byte // in log lines: C until it is up, then M
	meter   *meter.Meter
	started time.Time
	runID   string
	stop    func()          // asks for a shutdown
	failed  chan error      // what ends the server at once, already logged
	done    <-chan struct{} // closed when the server ends

	logMu sync.Mutex

	turn   gate                      // held while a command runs, before mu
	script atomic.Pointer[scriptRun] // the one that runs

	mu          gate // for what follows
	config      *config
	data        *data
	charged     int64       // bytes stated to the container
	holder      *kit.Holder // of them
	clients     map[*client]struct{}
	monitors    map[*client]struct{}
	nextID      int64
	stats       stats
	slow        []slowEntry
	slowID      int64
	scripts     map[string]string // by SHA1
	scriptBytes int64
	lua         *lua // nil until there is a script

	aof        aof
	dirty      int64 // changes since the last snapshot
	saves      int64
	lastSave   time.Time
	lastTry    time.Time
	saveFailed bool
	lastPID    int // of a child
	noSave     bool
}

func newInstance(env *kit.Env, c *config, b brand) (*instance, error) {
	d, err := newData()
	if err != nil {
		return nil, err
	}
	var id [20]byte
	rand.Read(id[:])
	now := time.Now()
	return &instance{
		env: env, brand: b, holder: kit.NewExactHolder(env), role: 'C', meter: meter.New(env.CPU),
		started: env.Since(), runID: hex.EncodeToString(id[:]), stop: func() {}, failed: make(chan error, 1),
		turn: make(gate, 1),
		mu:   make(gate, 1), scripts: map[string]string{}, config: c, data: d, clients: map[*client]struct{}{},
		monitors: map[*client]struct{}{}, lastSave: now,
		stats: stats{errors: map[string]int64{}, commands: map[string]*commandStats{}},
	}, nil
}

// account brings the ledger up to date after a command, and states the memory.
func (s *instance) account(db int, args []string, now time.Time) {
	k, ok := writes[args[0]]
	if !ok {
		return
	}
	switch args[0] {
	case "FLUSHALL":
		s.data.flush(-1)
	case "FLUSHDB":
		s.data.flush(db)
	case "SWAPDB":
		a, _ := strconv.Atoi(args[1])
		b, _ := strconv.Atoi(args[2])
		s.data.swap(a, b)
	case "MOVE":
		to, _ := strconv.Atoi(args[2])
		s.data.note(to, args[1], args, now)
	case "COPY":
		for i := 3; i+1 < len(args); i++ {
			if strings.EqualFold(args[i], "DB") {
				to, _ := strconv.Atoi(args[i+1])
				s.data.note(to, args[2], args, now)
			}
		}
	}
	for _, key := range k.of(args) {
		s.data.note(db, key, args, now)
	}
	s.charge()
}

func (s *instance) charge() {
	if d := s.data.total + s.scriptBytes - s.charged; d != 0 {
		s.charged += d
		// If the container has had its share it is killed. But a kernel can also refuse.
		if _, refused := errors.AsType[syscall.Errno](s.holder.Add(int(d))); refused {
			s.log(warning, "Out Of Memory allocating %d bytes!", d)
			s.log(warning, "%s aborting for OUT OF MEMORY. Allocating %d bytes!", s.brand.title, d)
			s.fail(exitAborted)
		}
	}
	s.stats.peak = max(s.stats.peak, s.memory())
}

// memory is what a real one would report as used.
func (s *instance) memory() int64 {
	return baseMemory + s.data.total + s.scriptBytes + int64(len(s.clients))*clientMemory
}

// expireDue removes the keys whose time has come.
func (s *instance) expireDue(now time.Time) {
	for _, n := range s.data.due(now) {
		s.data.do(n.db, "DEL", n.key)
		s.data.remove(n)
		s.stats.expired++
		s.propagate(n.db, []string{"DEL", n.key})
	}
	s.charge()
}

const errOOM = "OOM command not allowed when used memory > 'maxmemory'."

// evict makes room under maxmemory. It reports whether there is any.
func (s *instance) evict() bool {
	limit := s.config.int("maxmemory")
	if limit == 0 {
		return true
	}
	for s.memory() > limit {
		policy := s.config.values["maxmemory-policy"]
		n, ok := s.data.victim(policy, s.config.int("maxmemory-samples"))
		if policy == "noeviction" || !ok {
			return false
		}
		s.data.do(n.db, "DEL", n.key)
		s.data.remove(n)
		s.stats.evicted++
		s.propagate(n.db, []string{"DEL", n.key})
	}
	s.charge()
	return true
}

// run serves until a signal, SHUTDOWN or the context ends it.
func (s *instance) run(ctx context.Context, listeners []net.Listener, signals <-chan syscall.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := make(chan struct{})
	s.stop = sync.OnceFunc(func() { close(asked) })
	s.done = ctx.Done()
	var wg sync.WaitGroup
	for _, ln := range listeners {
		wg.Go(func() { s.accept(ctx, ln, &wg) })
	}
	wg.Go(func() { s.cron(ctx) })
	defer func() {
		cancel()
		for _, ln := range listeners {
			ln.Close()
		}
		s.mu.Lock()
		for c := range s.clients {
			c.net.Close()
		}
		s.mu.Unlock()
		s.data.Close() // It wakes those who wait in a command.
		wg.Wait()
		if s.lua != nil {
			s.lua.idle.Stop()
			s.lua.end()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-asked:
			return s.shutdown()
		case err := <-s.failed:
			return err
		case sig := <-signals:
			if sig != syscall.SIGTERM && sig != syscall.SIGINT {
				continue
			}
			s.signalled(sig)
			if err := s.shutdown(); err == nil {
				return nil
			}
		}
	}
}

// fail ends the server at once.
func (s *instance) fail(code int) {
	select {
	case s.failed <- kit.Exit(code):
	default:
	}
}

// shutdown saves what is to be saved. It fails, and the server goes on, if that cannot be done.
func (s *instance) shutdown() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log(warning, "User requested shutdown...")
	if s.aof.file != nil {
		s.retryAOF()
		s.log(notice, "Calling fsync() on the AOF file.")
		s.aof.file.Sync()
		s.aof.file.Close()
		s.aof.file = nil
	}
	if len(s.config.savePoints()) > 0 && !s.noSave {
		s.log(notice, "Saving the final RDB snapshot before exiting.")
		if err := s.save(false); err != nil {
			s.log(warning, "Error trying to save the DB, can't exit.")
			if s.config.bool("appendonly") {
				s.openAOF()
			}
			return err
		}
	}
	s.log(warning, "%s is now ready to exit, bye bye...", s.brand.title)
	return nil
}

// cron does what is to be done now and then.
func (s *instance) cron(ctx context.Context) {
	t := time.NewTicker(cronEvery)
	defer t.Stop()
	for tick := 0; ; tick++ {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			s.mu.Lock()
			if s.script.Load() == nil {
				s.expireDue(now)
			}
			s.stats.sample(now)
			if tick%10 == 0 {
				s.retryAOF()
				s.syncAOF()
				s.saveIfDue(now)
			}
			s.mu.Unlock()
		}
	}
}

func (s *instance) accept(ctx context.Context, ln net.Listener, wg *sync.WaitGroup) {
	inlet.Serve(ctx, ln, func(nc net.Conn) {
		wg.Go(func() { s.serve(ctx, nc) })
	}, func(err error) {
		s.log(warning, "Accepting client connection: accept: %s", errnoText(err))
	})
}
