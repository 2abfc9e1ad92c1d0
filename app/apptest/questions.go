package apptest

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/ask"
)

// Questions sees to it that each service of an application answers the question that tells it from
// others, and that no other service passes for it: who else is asked listens on the port that the
// question is for. Ports are where services listen that are not stores and do not say it.
func Questions(t *testing.T, d *Deployment, a *app.App, ports map[string]int) {
	t.Helper()
	stores := map[string]int{"mongodb": 27017, "memcached": 11211, "redis": 6379}
	dial := d.User().Env("ask").Net.DialContext
	port := func(s app.Service) int { return cmp.Or(ports[s.Name], s.Port, stores[s.Kind]) }
	at := func(s app.Service) string { return fmt.Sprintf("%s:%d", s.Name, port(s)) }
	for _, s := range a.Services {
		if port(s) == 0 && s.Ask == nil {
			continue // Nobody calls it.
		}
		q := s.Ask
		if q == nil {
			q = ask.Of(s.Kind)
		}
		if err := q(t.Context(), dial, at(s)); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		// Who does not speak the protocol may as well say nothing.
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		var all sync.WaitGroup
		for _, other := range a.Services {
			if other.Name == s.Name || other.Kind == s.Kind && s.Ask == nil || port(other) == 0 {
				continue
			}
			all.Go(func() {
				if err := q(ctx, dial, at(other)); err == nil {
					t.Errorf("%s passes for %s", other.Name, s.Name)
				}
			})
		}
		all.Wait()
		cancel()
	}
}
