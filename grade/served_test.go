package grade

import (
	"math"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/workload"
)

func TestServed(t *testing.T) {
	baseline := workload.Window{Total: workload.SLI{Requests: 100, Success: 1, P95: 100 * time.Millisecond}} // L is 600 ms.
	for _, c := range []struct {
		name  string
		now   workload.SLI
		want  float64
		known bool
	}{
		{"all is well", workload.SLI{Requests: 10, Success: 1, P95: 90 * time.Millisecond}, 1, true},
		{"as slow as may be", workload.SLI{Requests: 10, Success: 1, P95: 600 * time.Millisecond}, 1, true},
		{"twice as slow", workload.SLI{Requests: 10, Success: 1, P95: 1200 * time.Millisecond}, 0.5, true},
		{"a quarter fails", workload.SLI{Requests: 8, Failed: 2, Success: 0.75, P95: 90 * time.Millisecond}, 0.75, true},
		{"both", workload.SLI{Requests: 8, Failed: 4, Success: 0.5, P95: 1200 * time.Millisecond}, 0.25, true},
		{"all fail, and nobody knows how fast", workload.SLI{Requests: 8, Failed: 8}, 0, true},
		{"nobody came", workload.SLI{}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, known := Served(baseline, workload.Window{Total: c.now})
			if math.Abs(got-c.want) > 1e-9 || known != c.known {
				t.Errorf("%v, %v, want %v, %v", got, known, c.want, c.known)
			}
		})
	}
}
