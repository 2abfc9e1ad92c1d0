package session

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/workload"
)

// web is a cloud of one program that answers HTTP, under virtual time.
type web struct {
	cloud.Cloud
	conns chan net.Conn
	done  chan struct{}
}

func (w *web) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case w.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *web) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.done:
		return nil, net.ErrClosed
	}
}

func (w *web) Close() error   { close(w.done); return nil }
func (w *web) Addr() net.Addr { return &net.TCPAddr{} }

const shapesMix = `
name: shop
operations:
  - {name: browse, weight: 3, path: /browse}
  - {name: buy, weight: 1, path: /buy}
`

// trace has a request every 200 ms for 20 s, and from second 8 to 12 five times as many.
func trace() string {
	var b strings.Builder
	b.WriteString("time,operation\n")
	for at := time.Duration(0); at < 20*time.Second; {
		b.WriteString(at.String() + ",browse\n")
		if at >= 8*time.Second && at < 12*time.Second {
			at += 40 * time.Millisecond
		} else {
			at += 200 * time.Millisecond
		}
	}
	return b.String()
}

// TestShapes: with every shape of the load a system that is as well as ever has no complaints, at any
// time, and one that gets slow, fails, or hangs has. What it is compared with was seen before the shape
// began.
func TestShapes(t *testing.T) {
	for name, load := range map[string]string{
		"constant": "{rate: 10}",
		"even":     "{rate: 10, process: constant}",
		"ramp":     "{rate: [{ramp: {from: 4, to: 40}, for: 20s}, {ramp: {from: 40, to: 4}, for: 10s}, {constant: 4}]}",
		"step":     "{rate: {step: {from: 40, to: 4, by: 18, every: 8s}}}",
		"daily":    "{rate: {daily: {mean: 12, amplitude: 0.8, period: 20s}}}",
		"burst":    "{rate: {burst: {base: 4, peak: 40, every: 10s, lasting: 2s}}}",
		"users":    "{users: {count: 8, think: {min: 500ms, max: 1500ms}}}",
		"replay":   "{replay: {trace: \"" + strings.ReplaceAll(trace(), "\n", "\\n") + "\"}}",
	} {
		t.Run(name, func(t *testing.T) {
			library := &problem.Library{Apps: []*app.App{{
				Name: "shop", Mix: "shop", Mixes: fstest.MapFS{"shop.yaml": {Data: []byte(shapesMix)}},
				Frontend: app.Endpoint{Service: "front", Port: 80},
			}}}
			list, err := library.Parse("p.yaml", []byte(
				"{id: \"p-{task}\", title: p, app: shop, tasks: [detection], load: "+load+"}"))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { judgeShape(t, list[0], "slow", 40) })
			synctest.Test(t, func(t *testing.T) { judgeShape(t, list[0], "failing", 5) })
			synctest.Test(t, func(t *testing.T) { judgeShape(t, list[0], "hanging", 12) })
		})
	}
}

// judgeShape lets an application be well for some seconds, and then ill in a way.
func judgeShape(t *testing.T, p *problem.Problem, way string, well int) {
	var ill atomic.Bool
	w := &web{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case !ill.Load():
			time.Sleep(20 * time.Millisecond)
		case way == "slow":
			time.Sleep(1500 * time.Millisecond)
		case way == "failing":
			if r.URL.Path == "/browse" {
				rw.WriteHeader(http.StatusInternalServerError)
			}
		default:
			<-r.Context().Done()
		}
	})}
	served := make(chan struct{})
	go func() { _ = srv.Serve(w); close(served) }()
	l, err := StartLoad(t.Context(), w, p.App, &p.Document.Load, 7)
	if err != nil {
		t.Fatal(err)
	}
	seen := func() *workload.Snapshot {
		s, err := l.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	look := func() grade.Look { return grade.Look{Time: time.Now(), Load: seen().Window(loadWindow)} }
	time.Sleep(minCovered + time.Second/2)
	baseline := look()
	if err := l.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range well {
		time.Sleep(time.Second)
		if c := grade.Complaints(baseline, look()); len(c) > 0 {
			t.Errorf("%s: after %v, though all is well: %q", way, seen().Elapsed, c)
			break
		}
	}
	ill.Store(true)
	time.Sleep(8 * time.Second) // Who hangs is given up after five.
	for range 8 {
		time.Sleep(time.Second)
		if c := grade.Complaints(baseline, look()); len(c) == 0 {
			t.Errorf("%s: no complaint after %v: %+v", way, seen().Elapsed, look().Load)
			break
		}
	}
	ill.Store(false)
	if _, err := l.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = srv.Close()
	<-served
}
