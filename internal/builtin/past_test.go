package builtin

import (
	"slices"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/apptest"
	"github.com/aiopslab/aiopslab/app/everytest"
	"github.com/aiopslab/aiopslab/internal/builtin/images"
	"github.com/aiopslab/aiopslab/kit"
)

// pasts are who writes, or logs, what users did in the weeks before a run, by application, the stores in which users
// change nothing, and those of SQL: their kind does not say that they are stores.
var pasts = map[string]struct{ keepers, unchanged, sql []string }{
	"hotel-reservation": {
		keepers: []string{"reservation"},
		unchanged: []string{
			"mongodb-geo", "mongodb-rate", "mongodb-profile", "mongodb-recommendation", "mongodb-user",
		},
	},
	"social-network": {keepers: []string{
		"post-storage-service", "user-timeline-service", "home-timeline-service", "url-shorten-service",
		"user-service", "social-graph-service", "media-frontend",
	}},
	"astronomy-shop": {keepers: []string{"accounting", "cart"}, sql: []string{"postgresql"}},
	"tidb-cluster":   {keepers: []string{"bank"}, sql: []string{"basic-tidb"}},
	"flower":         {keepers: []string{"superlink", "serverapp", "clientapp-1", "clientapp-2"}},
	"flight-ticket":  {keepers: []string{"save-order-info"}},
	"train-ticket": {
		keepers: []string{"ts-order-service", "ts-inside-payment-service", "ts-notification-service"},
		unchanged: []string{
			"ts-auth-mongo", "ts-user-mongo", "ts-station-mongo", "ts-train-mongo", "ts-route-mongo",
			"ts-price-mongo", "ts-travel-mongo",
			"ts-payment-mongo", // Who has enough in its account does not pay from outside.
		},
	},
	"sock-shop": {
		keepers: []string{"user", "orders", "carts", "front-end"}, sql: []string{"catalogue-db"},
		unchanged: []string{"catalogue-db"},
	},
}

// pastPatience is how long services may take to say that they have a past, on a machine that is busy.
const pastPatience = 3 * time.Minute

// TestEveryApplicationHasAPast holds that what users write is there from before the run, in every application: each
// store is one of a service that writes it, and each of these services does want to be told its past.
func TestEveryApplicationHasAPast(t *testing.T) {
	for _, a := range everytest.Apps() {
		t.Run(a.Name, func(t *testing.T) {
			want, ok := pasts[a.Name]
			if !ok || len(want.keepers) == 0 {
				t.Fatal("nobody writes what its users did before the run")
			}
			for _, s := range a.Services {
				kept := slices.ContainsFunc(want.keepers, func(name string) bool { return calls(a, name, s.Name) })
				store := s.Kind == "mongodb" || s.Kind == "redis" || slices.Contains(want.sql, s.Name)
				if told := slices.Contains(want.unchanged, s.Name); store && kept == told {
					t.Errorf("%s has data of the past: %v; users change nothing in it: %v", s.Name, kept, told)
				}
			}
			if a.Name == "tidb-cluster" {
				t.Skip("its database is a custom resource, and its bank waits for it; app/tidb tries that")
			}
			wantPasts(t, apptest.Deploy(t, a, kit.NewRegistry(images.All()...)), want.keepers)
		})
	}
}

// calls reports whether a service of an application calls another.
func calls(a *app.App, name, other string) bool {
	s, _ := a.Service(name)
	return slices.Contains(s.Calls, other)
}

// wantPasts waits until some pods want to be told what they kept.
func wantPasts(t *testing.T, d *apptest.Deployment, names []string) {
	t.Helper()
	deadline := time.Now().Add(pastPatience)
	for _, name := range names {
		for !d.Pod(name).Keeps() {
			if time.Now().After(deadline) {
				t.Errorf("%s does not want to be told what it kept", name)
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}
