package noise

import (
	"slices"
	"testing"

	"github.com/aiopslab/aiopslab/app/everytest"
)

// Workers are what nobody waits for: no service calls them, and users come to another. Users of the others would notice
// a moment without. What an application does not call a worker is none, as in one that was adopted.
func TestWorkers(t *testing.T) {
	want := map[string][]string{
		"astronomy-shop": {"accounting", "fraud-detection"}, "sock-shop": {"queue-master"},
		"tidb-cluster": {"tidb-controller-manager"},
	}
	for _, a := range everytest.Apps() {
		parts, err := partsOf(a)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range a.Services {
			if !s.Worker {
				continue
			}
			got = append(got, s.Name)
			if called := callers(a, s.Name); len(called) > 0 || s.Name == a.Frontend.Service || s.Elastic {
				t.Errorf("%s: somebody waits for %s: %v", a.Name, s.Name, called)
			}
		}
		for _, p := range parts {
			if s, _ := a.Service(p.service); p.scales && (s.Kind == "infrastructure" || s.Elastic) {
				t.Errorf("%s: %s is scaled", a.Name, p.service)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want[a.Name]) {
			t.Errorf("%s has the workers %v, want %v", a.Name, got, want[a.Name])
		}
	}
}
