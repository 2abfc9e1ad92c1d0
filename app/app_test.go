package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/astronomy"
	"github.com/aiopslab/aiopslab/app/flightticket"
	"github.com/aiopslab/aiopslab/app/flower"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/app/sockshop"
	"github.com/aiopslab/aiopslab/app/trainticket"
	"github.com/aiopslab/aiopslab/internal/manifest"
)

// TestManifests holds the descriptions of the applications to what is deployed.
func TestManifests(t *testing.T) {
	for _, tt := range []struct {
		app         *app.App
		deployments int
	}{{hotel.App(), 19}, {social.App(), 27}, {astronomy.App(), 25}, {flower.App(), 7}, {flightticket.App(), 17}, {trainticket.App(), 28}, {sockshop.App(), 15}} {
		t.Run(tt.app.Name, func(t *testing.T) {
			objects, err := manifest.Read(tt.app.Manifests)
			if err != nil {
				t.Fatal(err)
			}
			names := map[string][]string{}
			for _, u := range objects {
				names[u.GetKind()] = append(names[u.GetKind()], u.GetName())
			}
			if n := len(names["Deployment"]); n != tt.deployments || len(tt.app.Services) != n {
				t.Errorf("%d deployments and %d services, want %d", n, len(tt.app.Services), tt.deployments)
			}
			for _, s := range tt.app.Services {
				called := slices.ContainsFunc(tt.app.Services, func(other app.Service) bool { return slices.Contains(other.Calls, s.Name) })
				if !slices.Contains(names["Deployment"], s.Name) || called && !s.Elastic && !slices.Contains(names["Service"], s.Name) {
					t.Errorf("%s has no deployment, or is called and has no service", s.Name)
				}
				for _, c := range s.Calls {
					if _, ok := tt.app.Service(c); !ok {
						t.Errorf("%s calls %s, which does not exist", s.Name, c)
					}
				}
			}
			if !slices.Contains(names["Service"], tt.app.Frontend.Service) {
				t.Errorf("no service %s in front", tt.app.Frontend.Service)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	want := "Service Name: Hotel Reservation\nNamespace: test-hotel-reservation\nDescription: A site on which people find hotels"
	if got := hotel.App().Summary(); !strings.HasPrefix(got, want) {
		t.Errorf("%q", got)
	}
	if host := hotel.App().Host(); host != "frontend.test-hotel-reservation:5000" {
		t.Errorf("host %q", host)
	}
}
