package astronomy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
	"github.com/aiopslab/aiopslab/kit/past"
)

// crowdless returns a load generator that has no users yet, and a shop that has whatever it is asked for.
func crowdless(t *testing.T, prepare func(*kit.Env)) *loadgen {
	t.Helper()
	w := kittest.New(t)
	shop, m := w.Machine("frontend-proxy", "10.244.0.2"), w.Machine("load-generator", "10.244.0.3")
	ln, err := shop.Env().Net.Listen("tcp", ":8080")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(ln)
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	env := m.Env("load-generator")
	prepare(env)
	s, err := start(t.Context(), env, "load-generator")
	if err != nil {
		t.Fatal(err)
	}
	g := &loadgen{
		s: s, host: "http://frontend-proxy:8080", client: s.HTTPClient(visitTimeout), plain: &http.Client{},
		began: env.Since(), stats: map[string]*visits{},
	}
	t.Cleanup(func() {
		g.client.CloseIdleConnections()
		s.Close()
	})
	return g
}

// Each task makes the requests that it says it does.
func TestTasksAsk(t *testing.T) {
	g := crowdless(t, func(*kit.Env) {})
	for _, task := range append(apiTasks[:len(apiTasks):len(apiTasks)], browserTasks...) {
		const often = 200
		clear(g.stats)
		u := &shopper{g: g, id: "somebody"}
		for range often {
			if err := task.do(u, t.Context()); err != nil {
				t.Fatalf("%s: %v", task.name, err)
			}
		}
		for name, v := range g.stats {
			if got, want := float64(v.requests)/often, task.asks[name]; math.Abs(got-want) > 0.2*want {
				t.Errorf("%s asks %s %.2f times, want %.2f", task.name, name, got, want)
			}
		}
		for name := range task.asks {
			if g.stats[name] == nil {
				t.Errorf("%s never asks %s", task.name, name)
			}
		}
	}
}

// A load generator that is told its past has had its users since its container was started.
func TestLoadgenHasLived(t *testing.T) {
	const days = 3
	told := map[kit.Telling]func(context.Context, *past.Past) error{}
	g := crowdless(t, func(env *kit.Env) {
		env.Started = time.Now().Add(-days * 24 * time.Hour)
		env.OnRecall(func(as kit.Telling, f func(context.Context, *past.Past) error) { told[as] = f })
	})
	const users = 10
	g.remember(users, true)
	g.counted("GET /nowhere", time.Second, errors.New("the shop was not there yet"))
	if err := told[kit.Beginning](t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		g.counted(getProduct, 8*time.Millisecond, nil)
	}
	g.counted(getCart, 2*time.Millisecond, nil)
	join := time.Now()
	if err := told[kit.Source](t.Context(), past.New(7, join.Add(-time.Second), join, past.Cast{})); err != nil {
		t.Fatal(err)
	}
	list, _ := g.entries()
	byName := map[string]entry{}
	for _, e := range list {
		byName[e.Name] = e
	}
	rounds := days * 24 * time.Hour.Seconds() / 5.5
	for name, want := range map[string]float64{
		// Five users do one of 32 things, ten of which are a look at a product, and four buy or want to.
		getProduct:           5 * rounds * (10 + 2 + 1 + 3) / 32,
		"POST /api/checkout": 5 * rounds * 2 / 32,
		// The other five do one of two things, in one of which there are two pictures.
		getPictures: 5 * rounds / 2 * 2,
	} {
		if got := float64(byName[name].Requests); math.Abs(got-want) > 0.05*want {
			t.Errorf("%s was asked %.0f times in %d days, want about %.0f", name, got, days, want)
		}
	}
	if e := byName[getProduct]; e.Average < 7.9 || e.Average > 8.1 || e.Failures > 0 {
		t.Errorf("products: %+v", e)
	}
	if e := byName["POST /api/checkout"]; e.Average < 2 || e.Average > 8 {
		t.Errorf("what has not been asked yet is as quick as the rest: %+v", e)
	}
	if e := byName["Aggregated"]; e.CurrentRate > 1 || e.Failures > 0 {
		t.Errorf("what was in the past is not now, and failures of the start are forgotten: %+v", e)
	}
	for name := range byName {
		if strings.Contains(name, "nowhere") {
			t.Errorf("%s was before", name)
		}
	}
}
