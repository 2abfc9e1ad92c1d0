package kube

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Runs that are alive at the same time have namespaces of their own. One that ends makes room, and so does one that dies.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t)
		s.add(t, spaces, thing("shop-3", "")) // somebody's
		settle := func(run string, names ...string) *Claim {
			t.Helper()
			a, err := s.connect(t).Settle(t.Context(), run, "observe", "shop")
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Tenancy().Namespaces; !slices.Equal(got, names) {
				t.Errorf("%s has %v, want %v", run, got, names)
			}
			return a
		}
		first := settle("r1", "observe", "shop")
		second := settle("r2", "observe-2", "shop-2")
		fourth := settle("r4", "observe-4", "shop-4")
		if got := fourth.Tenancy().Suffix; got != "-4" {
			t.Errorf("the suffix is %q", got)
		}
		if slices.Contains(s.paths(), spaces+"/observe-3") {
			t.Error("a namespace was made that is of no use without the other")
		}
		second.die()
		time.Sleep(leaseTime + time.Second)
		again := settle("r5", "observe-2", "shop-2")
		for _, a := range []*Claim{first, again, fourth} {
			if err := a.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if got := s.paths(); !slices.Equal(got, []string{spaces + "/shop-3"}) {
			t.Errorf("left: %v", got)
		}
	})
}

// Of runs that settle at once, no two have a namespace in common.
func TestSettleAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newServer(t)
		var wg sync.WaitGroup
		claims := make([]*Claim, 12)
		for i := range claims {
			c := s.connect(t)
			wg.Go(func() {
				var err error
				if claims[i], err = c.Settle(t.Context(), fmt.Sprintf("r%d", i), "observe", "shop"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		var all []string
		for _, a := range claims {
			if a != nil {
				all = append(all, a.Tenancy().Namespaces...)
				a.die()
			}
		}
		slices.Sort(all)
		if len(all) != 2*len(claims) || len(slices.Compact(all)) != 2*len(claims) {
			t.Errorf("they have %v", all)
		}
	})
}

func TestSettleInFullCluster(t *testing.T) {
	s, c := newServer(t)
	s.add(t, spaces, thing("shop", ""))
	for place := 2; place <= maxPlaces; place++ {
		s.add(t, spaces, thing(fmt.Sprintf("shop-%d", place), ""))
	}
	_, err := c.Settle(t.Context(), "r1", "shop")
	if !errors.Is(err, ErrNotOurs) || !strings.Contains(err.Error(), "no place for another run") {
		t.Error(err)
	}
}
