package cli

import (
	"testing"

	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/session/process"
)

// A program without confinement gets no environment that is kept, which is not even asked.
func TestRunnerTrust(t *testing.T) {
	t.Parallel()
	r := &runner{env: &process.Environment{}}
	v := visit{problem: find(t, "noop_detection_hotel_reservation-1")}
	if r.fits(t.Context(), hosting{}, logs.Or(nil), v) {
		t.Error("it is given one that was used")
	}
}
