package remote

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit/kittest"
	"github.com/aiopslab/aiopslab/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes is a network with one server, which works under virtual time.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.done:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) dialAny(ctx context.Context, _, _ string) (net.Conn, error) { return p.dial(ctx) }

// stand is a load, an application that it goes to, and who asks for it.
type stand struct {
	server *Server
	client *Client
	way    *pipes
	ended  chan error
}

const secret = "a secret"

func newStand(t *testing.T, spec workload.Spec, app http.HandlerFunc) *stand {
	t.Helper()
	to, way := newPipes(), newPipes()
	web := &http.Server{Handler: app}
	var wg sync.WaitGroup
	wg.Go(func() { _ = web.Serve(to) })
	s, err := NewServer(Order{Spec: spec, BaseURL: "http://app"}, secret, to.dialAny)
	if err != nil {
		t.Fatal(err)
	}
	x := &stand{s, NewClient(way.dial, secret), way, make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() { x.ended <- s.Run(ctx, way) })
	t.Cleanup(func() {
		x.client.Close()
		cancel()
		_ = web.Close()
		wg.Wait()
	})
	return x
}

func steady(rate float64) workload.Spec {
	return workload.Spec{
		Mix: &workload.Mix{Name: "m", Operations: []workload.Operation{
			{Name: "good", Weight: 1, Call: workload.Call{Path: "/good"}}, {Name: "bad", Weight: 1, Call: workload.Call{Path: "/bad"}},
		}},
		Arrivals: &workload.Arrivals{Rate: workload.Constant(rate)},
	}
}

func fails(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/bad" {
		http.Error(w, "oh \"no\"", http.StatusInternalServerError)
	}
}

// TestSnapshot shows that what is counted there is what is told here.
func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newStand(t, steady(20), fails)
		time.Sleep(70 * time.Second)
		got, err := x.client.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := x.server.generator.Snapshot() // No time passes meanwhile.
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if w := got.Window("5s"); w.Total.Requests < 50 || w.Operation("bad").Success != 0 || len(got.Failures) != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// TestStop shows that stopping waits for the last answers, and loses none.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answered atomic.Int64
		x := newStand(t, steady(100), func(http.ResponseWriter, *http.Request) {
			time.Sleep(2 * time.Second)
			answered.Add(1)
		})
		time.Sleep(5 * time.Second)
		if err := x.client.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		s, err := x.client.Stop(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 1900*time.Millisecond || took > 2*time.Second {
			t.Errorf("it was stopped after %v", took)
		}
		total := s.Window("whole").Total
		if s.InFlight != 0 || s.Wanted != total.Requests || total.Requests != answered.Load() || total.Failed > 0 {
			t.Errorf("%d wanted, %d answered: %+v", s.Wanted, answered.Load(), total)
		}
		// What was counted is still there, and the same.
		again, err := x.client.Snapshot(t.Context())
		if err != nil || cmp.Diff(s.Window("whole"), again.Window("whole")) != "" {
			t.Errorf("%+v, %v", again, err)
		}
	})
}

// TestBegin shows that a load is held at its highest rate until it is told to begin.
func TestBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := steady(0)
		spec.Held = true
		spec.Arrivals.Rate = workload.Rate{{Step: &workload.Step{From: 1, To: 100, By: 99, Every: time.Hour}}}
		x := newStand(t, spec, fails)
		rate := func() float64 {
			time.Sleep(20 * time.Second)
			s, err := x.client.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w := s.Window("5s")
			return w.Total.Rate
		}
		if r := rate(); r < 70 {
			t.Errorf("held at %g", r)
		}
		if err := x.client.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := rate(); r > 10 {
			t.Errorf("%g after it has begun", r)
		}
	})
}

// TestToken shows that who has no token learns nothing, and changes nothing, and is not taken for who asks.
func TestToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newStand(t, steady(10), fails)
		for _, token := range []string{"", "a secre", "a secret2", "another"} {
			stranger := NewClient(x.way.dial, token)
			_, err := stranger.Snapshot(t.Context())
			_, serr := stranger.Stop(t.Context())
			for _, err := range []error{err, serr, stranger.Begin(t.Context()), stranger.End(t.Context()), stranger.Surge(t.Context(), steady(1))} {
				if err == nil || err.Error() != "401 Unauthorized: who are you?" {
					t.Errorf("%q: %v", token, err)
				}
			}
			stranger.Close()
		}
		time.Sleep(10 * time.Second)
		s, err := x.client.Snapshot(t.Context())
		if w := s.Window("5s"); err != nil || w.Total.Requests == 0 {
			t.Errorf("it was stopped: %+v, %v", s, err)
		}
		lonely := time.Now()
		stranger := NewClient(x.way.dial, "")
		defer stranger.Close()
		for len(x.ended) == 0 && time.Since(lonely) < time.Hour {
			time.Sleep(time.Second)
			_, _ = stranger.Snapshot(t.Context())
		}
		if err := <-x.ended; err == nil || !strings.Contains(err.Error(), "nobody has asked for 2m0s") {
			t.Errorf("a stranger keeps it going: %v", err)
		}
	})
	if _, err := NewServer(Order{Spec: steady(1), BaseURL: "http://app"}, "", nil); err == nil {
		t.Error("there is a load without a token")
	}
}

// TestPatience shows that a load goes on as long as somebody asks, and not for longer.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newStand(t, steady(1), fails)
		for range 5 {
			time.Sleep(Patience - time.Second)
			if _, err := x.client.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		asked := time.Now()
		err := <-x.ended
		if took := time.Since(asked); err == nil || took < Patience || took > Patience+10*time.Second {
			t.Errorf("it ended after %v: %v", took, err)
		}
	})
}

// TestSurge shows that more users come for a while, who do not count, and go when nobody wants them any more.
func TestSurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var visits atomic.Int64
		x := newStand(t, steady(1), func(http.ResponseWriter, *http.Request) { visits.Add(1) })
		more := steady(100)
		if err := x.client.Surge(t.Context(), more); err == nil || !strings.Contains(err.Error(), "needs an end") {
			t.Errorf("without an end: %v", err)
		}
		more.Duration = 10 * time.Second
		if err := x.client.Surge(t.Context(), more); err != nil {
			t.Fatal(err)
		}
		s, err := x.client.Snapshot(t.Context())
		if n := visits.Load(); err != nil || n < 500 || s.Wanted > 50 {
			t.Errorf("%d came, of whom %d count: %v", n, s.Wanted, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := x.client.Surge(ctx, more); err == nil {
			t.Error("it was not ended")
		}
		time.Sleep(time.Second)
		before := visits.Load()
		time.Sleep(5 * time.Second)
		if n := visits.Load() - before; n > 50 {
			t.Errorf("%d came after it was ended", n)
		}
	})
}

// TestProgram shows the program in its pod: it reads its files, answers on loopback alone, and ends when it is told to.
func TestProgram(t *testing.T) {
	w := kittest.New(t)
	app, pod, other := w.Machine("app", "10.244.0.2"), w.Machine("load", "10.244.0.3"), w.Machine("agent", "10.244.0.4")
	ln, err := app.Env().Net.Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	visited := make(chan struct{}, 1)
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case visited <- struct{}{}:
		default:
		}
	}))
	web.Listener.Close()
	web.Listener = ln
	web.Start()
	defer web.Close()

	data, err := Order{Spec: steady(200), BaseURL: "http://10.244.0.2"}.Pack()
	if err != nil {
		t.Fatal(err)
	}
	pod.Write(path.Join(Dir, OrderFile), string(data))
	pod.Write(path.Join(Dir, TokenFile), secret+"\n")
	run := pod.Start(Main, program)
	pod.WaitListen("127.0.0.1:8080")
	<-visited
	from := func(dial Dial, address string) *Client {
		return NewClient(func(ctx context.Context) (net.Conn, error) { return dial(ctx, "tcp", address) }, secret)
	}
	c := from(pod.Env().Net.DialContext, "127.0.0.1:8080")
	defer c.Close()
	if s, err := c.Stop(t.Context()); err != nil || s.Window("whole").Total.Requests == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	stranger := from(other.Env().Net.DialContext, "10.244.0.3:8080")
	defer stranger.Close()
	if _, err := stranger.Snapshot(t.Context()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("another pod gets %v", err)
	}
	run.Signal(syscall.SIGTERM)
	if code := run.Wait(); code != 0 {
		t.Errorf("told to stop, it exits %d: %s", code, run.Stderr)
	}
}

// TestNoFiles shows what the program says without what it needs.
func TestNoFiles(t *testing.T) {
	pod := kittest.New(t).Machine("load", "10.244.0.3")
	run := pod.Start(Main, program)
	if code := run.Wait(); code != 1 || !strings.Contains(run.Stderr.String(), "read the order: ") {
		t.Errorf("exit %d: %s", code, run.Stderr)
	}
}
