package fault

import (
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/app/hotel"
)

// What comes back by itself must stay away for longer than it does; the others are held no longer
// than usual.
func TestHold(t *testing.T) {
	for _, tt := range []struct {
		kind, params string
		began        time.Duration // ago
		hold         time.Duration // at least, and 10 seconds more at most
	}{
		{"network_delay", "{}", 0, 0},
		{"network_delay", "{delay: 2s, every: 60s, for: 3s}", 0, 60 * time.Second},
		{"memory_stress", "{ramp: 90s}", 0, 90 * time.Second},
		{"memory_stress", "{ramp: 90s}", 60 * time.Second, 30 * time.Second},
		{"memory_stress", "{ramp: 90s}", 2 * time.Minute, 0},
		{"memory_stress", "{ramp: 90s, every: 60s, for: 30s}", 2 * time.Minute, 60 * time.Second},
		{"pod_kill", "{}", 0, 0},
		{"scale_pods_to_zero", "{}", 0, 0},
	} {
		k, err := Find(Kinds(), tt.kind)
		if err != nil {
			t.Fatal(err)
		}
		params := &yaml.Node{}
		if err := yaml.Unmarshal([]byte(tt.params), params); err != nil {
			t.Fatal(err)
		}
		f, err := k.New(Target{App: hotel.App(), Service: "recommendation"}, params)
		if err != nil {
			t.Fatal(err)
		}
		if d, ok := f.(*disturbed); ok {
			d.began = time.Now().Add(-tt.began)
		}
		hold, why := HoldOf(f)
		if tt.hold == 0 {
			if hold != 0 {
				t.Errorf("%s %s: %v, %s", tt.kind, tt.params, hold, why)
			}
			continue
		}
		// A ramp is a little older than it was a moment ago.
		if hold < tt.hold-time.Second || hold > tt.hold+seenMargin || why == "" {
			t.Errorf("%s %s: %v, %q, want some more than %v", tt.kind, tt.params, hold, why, tt.hold)
		}
		if linger := LingerOf(f); linger < settle {
			t.Errorf("%s %s: it lingers for %v", tt.kind, tt.params, linger)
		}
	}
}
