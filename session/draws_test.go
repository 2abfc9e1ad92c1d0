package session

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/cloud/cloudtest"
	"github.com/aiopslab/aiopslab/cloud/embedded/chance"
	"github.com/aiopslab/aiopslab/problem"
)

// luckyCloud is a cloud that draws from where the embedded one draws: its network, its proxy and its disturbances.
type luckyCloud struct {
	*cloudtest.Cloud
	chance chance.Source

	mu    sync.Mutex
	seeds []uint64
	begun time.Time
	draws []string // when each user came, what he asked for, and what the network drew for him
}

func (c *luckyCloud) Seed(seed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seeds = append(c.seeds, seed)
	c.chance.Seed(seed)
}

func (c *luckyCloud) visit(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun.IsZero() {
		c.begun = time.Now()
	}
	c.draws = append(c.draws, fmt.Sprintf("%v %s %.3f", time.Since(c.begun), r.URL, c.chance.Draw("tcp user > frontend")))
}

// drawn is what a whole run with a seed draws.
func drawn(t *testing.T, seed uint64) (seeds []uint64, draws []string) {
	results := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newShop(t)
		c := &luckyCloud{Cloud: w.Cloud}
		w.Local.Cloud = c
		w.Serve("frontend.test-shop:80", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/buy/") { // It is a user.
				c.visit(r)
			}
		}))
		p := shopProblem(problem.Detection)
		p.App.Mixes = fstest.MapFS{"shop.yaml": {Data: []byte(
			"name: shop\noperations: [{name: buy, weight: 2, path: '/buy/{{int 1 999999}}'}, {name: sell, weight: 1, path: '/buy/back'}]\n")}}
		s := &Session{Problem: p, Agent: scripted(agent.Call("submit", "Yes")), Environment: w.Local, Results: results, Seed: seed}
		if _, err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.Local.Close()
		seeds, draws = c.seeds, c.draws
	})
	return seeds, draws
}

// TestOneSeedOneRun: two whole runs with one seed draw the same: when users come, what they ask for, and what the
// network does to their requests. A run with another seed draws something else.
func TestOneSeedOneRun(t *testing.T) {
	const many = 20 // How long a run lasts is not drawn.
	seeds, one := drawn(t, 7)
	if len(one) < many {
		t.Fatalf("only %d users came", len(one))
	}
	if want := []uint64{7, aftermathSeed(7)}; !slices.Equal(seeds, want) {
		t.Errorf("the cloud drew from %d, want %d", seeds, want)
	}
	if _, again := drawn(t, 7); len(again) < many || !slices.Equal(again[:many], one[:many]) {
		t.Errorf("with one seed:\n%s\n\n%s", strings.Join(one, "\n"), strings.Join(again, "\n"))
	}
	_, other := drawn(t, 8)
	if len(other) < many {
		t.Fatalf("only %d users came", len(other))
	}
	for i := range many {
		a, b := strings.Fields(one[i]), strings.Fields(other[i])
		if a[2] == b[2] || i > 0 && a[0] == b[0] {
			t.Errorf("user %d with another seed: %s, and %s before", i, other[i], one[i])
		}
	}
}
