package session

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/workload"
)

// dealer is a cloud that notes what it is asked to draw from, and cannot be reset.
type dealer struct {
	cloud.Cloud
	done []any
}

var errNoReset = errors.New("no reset")

func (d *dealer) Seed(seed uint64) { d.done = append(d.done, seed) }

func (d *dealer) Snapshot(context.Context) (cloud.Snapshot, error) { return nil, errNoReset }

func (d *dealer) Reset(context.Context, cloud.Snapshot) error {
	d.done = append(d.done, "reset")
	return errNoReset
}

// TestACloudIsSeededBeforeARun: an environment can be there long before its run, and have had others.
// So the seed comes with the run, before anything of the run is drawn.
func TestACloudIsSeededBeforeARun(t *testing.T) {
	d := &dealer{}
	get := workload.Operation{Name: "get", Weight: 1, Call: workload.Call{Path: "/"}}
	g, err := workload.New(workload.Spec{
		Mix:      &workload.Mix{Name: "m", Operations: []workload.Operation{get}},
		Arrivals: &workload.Arrivals{Rate: workload.Constant(1)},
	}, workload.Target{BaseURL: "http://shop"})
	if err != nil {
		t.Fatal(err)
	}
	load := &ownLoad{generator: g, done: make(chan struct{})}
	close(load.done)
	s := &Stage{cloud: d, app: &app.App{}, used: true, load: load}
	if _, err := s.set(t.Context(), &problem.Load{}, 7, nil); !errors.Is(err, errNoReset) {
		t.Fatalf("set: %v", err)
	}
	if want := []any{uint64(7), "reset"}; !slices.Equal(d.done, want) {
		t.Errorf("the cloud was told %v, want %v", d.done, want)
	}
}

func TestTheAftermathDrawsAnew(t *testing.T) {
	seen := map[uint64]uint64{}
	for seed := range uint64(100) {
		a := aftermathSeed(seed)
		if a != aftermathSeed(seed) {
			t.Fatalf("seed %d gives two", seed)
		}
		if other, ok := seen[a]; ok || a == seed {
			t.Errorf("seed %d has the aftermath of %d", seed, other)
		}
		seen[a] = seed
	}
}
