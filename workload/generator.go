package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Target is where a load goes.
type Target struct {
	BaseURL string // such as "http://frontend:5000"
	// DialContext connects to host:port. The default is the host's own network.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

// Generator is a load. It runs once.
type Generator struct {
	spec      Spec
	base      string
	transport *http.Transport
	ops       *chooser
	chance    chance
	recorder  *recorder
	keeper    keeper

	wanted   atomic.Int64
	inFlight atomic.Int64
	started  atomic.Bool
	stopped  chan struct{}
	stopOnce sync.Once
	begun    chan struct{}
	begin    sync.Once
	requests sync.WaitGroup
}

// New returns a load that is ready to run.
func New(spec Spec, target Target) (*Generator, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	u, err := url.Parse(target.BaseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no base URL such as http://frontend:5000", target.BaseURL)
	}
	ops, err := spec.Mix.chooser()
	if err != nil {
		return nil, err
	}
	g := &Generator{
		spec: spec, base: strings.TrimSuffix(target.BaseURL, "/"), ops: ops, chance: newChance(spec.Seed),
		recorder: newRecorder(spec.Mix),
		stopped:  make(chan struct{}), begun: make(chan struct{}),
		transport: &http.Transport{
			DialContext:         target.DialContext,
			MaxIdleConnsPerHost: int(spec.maxInFlight()),
			IdleConnTimeout:     time.Minute,
			DisableCompression:  true,
		},
	}
	steady := spec.Arrivals == nil && !spec.Users.rising() || spec.Arrivals != nil && spec.Arrivals.steady()
	if !spec.Held || steady {
		g.Begin()
	}
	return g, nil
}

// Begin lets the arrivals of a load that is held begin. It may be called more than once.
func (g *Generator) Begin() { g.begin.Do(func() { close(g.begun) }) }

// Run sends requests until the load's duration is over or Stop is called, and returns when the last
// request has been answered or has timed out. If the context ends first, requests under way are
// abandoned and not counted.
func (g *Generator) Run(ctx context.Context) error {
	if g.started.Swap(true) {
		return errors.New("a load runs only once; make a new one")
	}
	defer g.transport.CloseIdleConnections()
	g.recorder.begin()
	defer g.recorder.end()
	if g.spec.Users != nil {
		g.runUsers(ctx)
	} else {
		g.runArrivals(ctx)
	}
	g.requests.Wait()
	return ctx.Err()
}

// Stop ends the load: no new requests. It does not wait.
func (g *Generator) Stop() { g.stopOnce.Do(func() { close(g.stopped) }) }

// sleep waits until a time. It reports whether the load goes on as it was.
func (g *Generator) sleep(ctx context.Context, until time.Time, timer *time.Timer) bool {
	d := time.Until(until)
	if d <= 0 {
		select {
		case <-ctx.Done():
			return false
		case <-g.stopped:
			return false
		default:
			return true
		}
	}
	timer.Reset(d)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-g.stopped:
	}
	timer.Stop()
	return false
}

// runArrivals is the open loop: first at the highest rate, as long as the load is held.
func (g *Generator) runArrivals(ctx context.Context) {
	select {
	case <-g.begun:
	default:
		_, high := g.spec.Arrivals.Bounds()
		held, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-g.begun:
				cancel()
			case <-held.Done():
			}
		}()
		highest := &Arrivals{Rate: Constant(high), Process: g.spec.Arrivals.Process}
		g.send(ctx, held, highest.source(g.spec.Seed^heldSeed), g.recorder.start, heldStream)
		if isDone(ctx.Done()) || isDone(g.stopped) {
			return
		}
	}
	g.send(ctx, ctx, g.spec.Arrivals.source(g.spec.Seed), time.Now(), 0)
}

// send sends the requests of a source, counted from a number, until wait ends. Only requests under way
// have a goroutine; the next one is waited for here.
func (g *Generator) send(ctx, wait context.Context, src source, start time.Time, n uint64) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ; ; n++ {
		a, ok := src.next()
		if !ok || g.spec.Duration > 0 && a.At >= g.spec.Duration {
			return
		}
		// The request is made before it is due, so that making it is not part of its latency.
		op := g.ops.pick(g.spec.Seed, n, a.Operation)
		v, err := op.visit(g.chance, n, 0, g.keeper.recall(op.Recall, n))
		intended := start.Add(a.At)
		if !g.sleep(wait, intended, timer) {
			return
		}
		g.want()
		if err != nil {
			g.done(outcome{operation: op.index, failure: Other, sample: err.Error()})
			continue
		}
		if g.inFlight.Load() >= g.spec.maxInFlight() {
			g.done(outcome{
				operation: op.index, failure: Dropped,
				sample: fmt.Sprintf("not sent: %d requests were under way", g.spec.maxInFlight()),
			})
			continue
		}
		g.inFlight.Add(1)
		g.requests.Go(func() {
			defer g.inFlight.Add(-1)
			g.recorder.lagged(time.Since(intended))
			g.do(ctx, nil, v, intended)
		})
	}
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// want counts a request.
func (g *Generator) want() {
	g.wanted.Add(1)
	g.recorder.want()
}

// runUsers is the closed loop.
func (g *Generator) runUsers(ctx context.Context) {
	u, first := g.spec.Users, g.spec.Users.Count
	if u.rising() {
		first = min(max(u.From, 1), u.Count)
	}
	for user := range first {
		g.requests.Go(func() { g.session(ctx, uint64(user)) })
	}
	if first < u.Count {
		g.requests.Go(func() { g.rise(ctx, first) })
	}
}

// rise lets the other users come, one after another, once the load has begun.
func (g *Generator) rise(ctx context.Context, user int) {
	select {
	case <-g.begun:
	case <-ctx.Done():
		return
	case <-g.stopped:
		return
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	start, u := time.Now(), g.spec.Users
	for n := 1; user < u.Count; n++ {
		if !g.sleep(ctx, start.Add(time.Duration(float64(n)/u.Spawn*float64(time.Second))), timer) {
			return
		}
		who := uint64(user)
		g.requests.Go(func() { g.session(ctx, who) })
		user++
	}
}

// Lag is how late the generator itself is at the moment.
func (g *Generator) Lag() Lag { return g.recorder.currentLag() }

// session is what one user does.
func (g *Generator) session(ctx context.Context, user uint64) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	jar, _ := cookiejar.New(nil) // It never fails without options.
	think := rand.New(rand.NewPCG(g.spec.Seed, mix64(thinkStream|user)))
	end := g.recorder.start.Add(forever)
	if g.spec.Duration > 0 {
		end = g.recorder.start.Add(g.spec.Duration)
	}
	for n := user << userShift; ; n++ {
		now := time.Now()
		if !now.Before(end) || !g.sleep(ctx, now, timer) {
			return
		}
		op := g.ops.pick(g.spec.Seed, n, "")
		g.want()
		if v, err := op.visit(g.chance, n, user, g.keeper.recall(op.Recall, n)); err != nil {
			g.done(outcome{operation: op.index, failure: Other, sample: err.Error()})
		} else {
			g.inFlight.Add(1)
			g.do(ctx, jar, v, time.Now())
			g.inFlight.Add(-1)
		}
		pause := g.spec.Users.Think.Min
		if more := g.spec.Users.Think.Max - pause; more > 0 {
			pause += time.Duration(think.Int64N(int64(more)))
		}
		if !g.sleep(ctx, time.Now().Add(pause), timer) {
			return
		}
	}
}

func (g *Generator) client(jar http.CookieJar) *http.Client {
	return &http.Client{
		Transport: g.transport, Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (g *Generator) done(o outcome) { g.recorder.record(o) }

// Snapshot returns the indicators as of now.
func (g *Generator) Snapshot() *Snapshot {
	s := g.recorder.snapshot()
	s.Wanted, s.InFlight = g.wanted.Load(), g.inFlight.Load()
	return s
}
