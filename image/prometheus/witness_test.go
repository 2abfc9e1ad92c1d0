package prometheus

import (
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/aiopslab/aiopslab/kit/past"
)

// A Deployment that has ReplicaSets of the last day was changed in it.
func TestGenerationsWereFewer(t *testing.T) {
	now := time.Now()
	p := past.New(1, now.Add(-time.Second), now, past.Cast{Sets: map[string]time.Time{
		"shop/cart-6d5f7":       now.Add(-20 * time.Hour),
		"shop/cart-77b8c":       now.Add(-2 * time.Hour),
		"shop/cart-cache-5c9d4": now.Add(-time.Hour),
		"other/cart-7f6d5":      now.Add(-time.Hour),
	}})
	for _, name := range []string{"kube_deployment_metadata_generation", "kube_deployment_status_observed_generation"} {
		w := &witness{memory: &memory{past: p}, name: name, sighting: sighting{
			labels: labels.FromStrings(model.MetricNameLabel, name, "namespace", "shop", "deployment", "cart"), value: 4,
		}}
		at := w.history(now.Add(-time.Minute), 4)
		for ago, want := range map[time.Duration]float64{time.Hour: 4, 3 * time.Hour: 3, 23 * time.Hour: 2} {
			if got := at(now.Add(-ago)); got != want {
				t.Errorf("%s %v ago: %v, want %v", name, ago, got, want)
			}
		}
	}
}
