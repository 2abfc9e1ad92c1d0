package guard

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"pgregory.net/rapid"
)

// This file holds the promise of transactions against random agents: what they commit leaves the system no worse than
// they found it. The clock is a bubble's, so a commit waits its real times and takes none. `make bench` draws 10,000
// agents, `make test` a hundred; -rapid.checks and -rapid.seed say otherwise.

// plant is a system whose severity follows from its ConfigMaps: the value of each is how bad it is, in tenths, and one
// that is missing is as bad as can be. A write shows at once in what is stored, and later in what is measured.
type plant struct {
	*fake
	parts map[string]*part // by path
}

// part is what is measured of an object.
type part struct {
	stored, shown int       // in tenths
	due           time.Time // when what is stored shows
	upset         int       // more than that, while it starts anew
	calm          time.Time // when that is over
}

const (
	plots   = 5
	missing = 9
)

// worsens is the longest that harm takes to show, which must be less than settle. What helps may take any time.
const worsens = settle - 100*time.Millisecond

// look brings the parts up to date with what is stored.
func (p *plant) look() {
	now := time.Now()
	for path, x := range p.parts {
		if !now.Before(x.due) {
			x.shown = x.stored
		}
		stored := missing
		if o := p.objects[path]; o != nil {
			data, _ := o["data"].(map[string]any)
			stored, _ = strconv.Atoi(fmt.Sprint(data["a"]))
		}
		if stored == x.stored {
			continue
		}
		// How long it takes is in the value and the path, so that a case can be drawn again.
		slowly := time.Duration(len(path)*stored%40) * time.Second
		if x.stored = stored; stored > x.shown {
			slowly = worsens * time.Duration(stored%4) / 4
		}
		x.due = now.Add(slowly)
		x.upset, x.calm = stored%3, now.Add(time.Duration(stored%7)*5*time.Second)
	}
}

// RoundTrip is the API server.
func (p *plant) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	p.mu.Lock()
	p.look()
	p.mu.Unlock()
	res := w.Result()
	res.Request = r
	return res, nil
}

// CloseIdleConnections is for a transport that has none.
func (p *plant) CloseIdleConnections() {}

// Severity is what is measured.
func (p *plant) Severity(context.Context) (float64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look()
	sum := 0
	for _, x := range p.parts {
		if sum += x.shown; time.Now().Before(x.calm) {
			sum += x.upset
		}
	}
	return float64(sum) / 100, nil
}

// rested is the severity when all has shown.
func (p *plant) rested() float64 {
	time.Sleep(time.Minute)
	s, _ := p.Severity(context.Background())
	return s
}

// garden is a plant with a guard before it. The guard has no port: a connection would hold up the bubble's clock.
type garden struct {
	*plant
	guard  *Guard
	events []Transaction
}

func newGarden(t *testing.T) *garden {
	t.Helper()
	f := &fake{
		everyone: map[string]*http.Request{}, objects: map[string]map[string]any{}, pages: map[string]string{},
		types: map[string]string{}, events: make(chan string),
	}
	g := &garden{plant: &plant{fake: f, parts: map[string]*part{}}}
	for i := range plots {
		path := configMaps + "/" + strings.Repeat("x", i+1)
		value := []string{"0", "8", "3", "1", "5"}[i]
		g.add(t, path, `{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"`+value+`"}}`)
		n, _ := strconv.Atoi(value)
		g.parts[path] = &part{stored: n, shown: n}
	}
	var err error
	g.guard, err = newGuard(t.Context(), Options{
		Upstream: &rest.Config{Host: "http://plant", BearerToken: "lab", Transport: g.plant}, Severity: g.plant,
		Transaction: func(e Transaction) { g.events = append(g.events, e) },
	})
	if err != nil {
		t.Fatal(err)
	}
	close(g.guard.served)
	return g
}

func (g *garden) close(t testing.TB) {
	if err := g.guard.Close(); err != nil {
		t.Error(err)
	}
	g.guard.listener.Close()
}

// do is a request of the agent.
func (g *garden) do(method, path, body string) int {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+g.guard.token)
	if body != "" {
		r.Header.Set("Content-Type", jsonType)
	}
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	w := httptest.NewRecorder()
	g.guard.handler().ServeHTTP(w, r)
	return w.Code
}

// deed is something that an agent does. Whether it is allowed, and whether it is any good, the agent does not know.
type deed struct {
	act    string
	object int // of the sorted ones
	value  int
	number int // of writes or seconds
}

func (d deed) String() string {
	return fmt.Sprintf("%s(%d, %d, %d)", d.act, d.object, d.value, d.number)
}

// deeds are those of an agent.
func deeds(t *rapid.T, objects int) []deed {
	acts := []string{
		"put", "put", "put", "put", "patch", "create", "delete", "all", "undo", "begin", "commit", "commit", "commit",
		"abort", "wait", "exec",
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) deed {
		return deed{
			act: rapid.SampledFrom(acts).Draw(t, "act"), object: rapid.IntRange(0, objects-1).Draw(t, "object"),
			value: rapid.IntRange(0, missing).Draw(t, "value"), number: rapid.IntRange(0, 60).Draw(t, "number"),
		}
	}), 1, 40).Draw(t, "deeds")
}

func (g *garden) act(d deed) {
	path := slices.Sorted(maps.Keys(g.parts))[d.object]
	object := fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q},"data":{"a":"%d"}}`,
		path[strings.LastIndex(path, "/")+1:], d.value)
	switch d.act {
	case "put":
		g.do(http.MethodPut, path, object)
	case "patch":
		g.do(http.MethodPatch, path, object)
	case "create":
		if !g.has(path) {
			g.do(http.MethodPost, configMaps, object)
		}
	case "delete":
		g.do(http.MethodDelete, path, "")
	case "all":
		g.do(http.MethodDelete, configMaps, "")
	case "undo":
		g.do(http.MethodPost, fmt.Sprint(TransactionPath, "undo?n=", d.number/2), "")
	case "begin", "abort":
		g.do(http.MethodPost, TransactionPath+d.act, "")
	case "commit":
		g.do(http.MethodPost, fmt.Sprint(TransactionPath, "commit?wait=", d.number), "")
	case "wait":
		time.Sleep(time.Duration(d.number/3) * time.Second)
	case "exec":
		g.do(http.MethodPost, pods+"/x/exec?command=rm", "")
	}
}

// TestNeverLeftWorse has random agents write in transactions. Whatever they do, and whether or not they close the last
// one, the system is no worse in the end than they found it.
func TestNeverLeftWorse(t *testing.T) {
	kept, takenBack := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		list := deeds(rt, plots)
		var found, left float64
		var events []Transaction
		synctest.Test(t, func(t *testing.T) {
			g := newGarden(t)
			defer g.close(t)
			found = g.rested()
			for _, d := range list {
				if !g.guard.InTransaction() { // It writes in transactions.
					g.do(http.MethodPost, TransactionPath+"begin", "")
				}
				g.act(d)
			}
			if _, err := g.guard.Leave(t.Context()); err != nil {
				t.Error(err)
			}
			left, events = g.rested(), g.events
		})
		for _, e := range events {
			if len(e.Differences) > 0 {
				rt.Fatalf("%s of transaction %d: %v", e.Action, e.Number, e.Differences)
			}
			switch {
			case e.Action == "commit" && e.Aborted:
				takenBack++
			case e.Action == "commit" && e.Writes > 0:
				kept++
			}
		}
		if left > found {
			rt.Fatalf("found %.2f, left %.2f", found, left)
		}
	})
	if kept == 0 || takenBack == 0 {
		t.Errorf("%d transactions were kept and %d taken back: the agents are too tame", kept, takenBack)
	}
	t.Logf("%d transactions were kept, %d were not committed but taken back", kept, takenBack)
}
