package decoy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/record"
)

// Decoys are those of one run. Their methods are called one after the other.
type Decoys struct {
	Env   *fault.Env
	Kinds Set
	Seed  uint64
	// Reached are services that no decoy may be in, and Near those that have none if there are others; see [Around].
	Reached, Near []string
	// Questions are what the agent is asked, in the words of package term.
	Questions []string

	stop    func(context.Context) error // of a disturbance
	blurred blurred
	voice   *voice
}

// Around are the services that a fault reaches, and those next to them: who looks at one of these may be on the way to
// the fault.
func Around(a *app.App, target string, r fault.Reach) (reached, near []string) {
	reached = append([]string{target}, r.Touches...)
	for _, o := range r.Applies {
		_, name, _ := strings.Cut(o, "/")
		reached = append(reached, name)
	}
	for _, s := range a.Services {
		if slices.Contains(reached, s.Name) {
			near = append(near, s.Calls...)
		} else if slices.ContainsFunc(s.Calls, func(c string) bool { return slices.Contains(reached, c) }) {
			near = append(near, s.Name)
		}
	}
	return reached, near
}

// Choose draws where decoys go and what they are, and changes nothing yet. What Dress adds is known then.
func (d *Decoys) Choose() (list []record.Decoy, err error) {
	for _, k := range d.Kinds {
		var more []record.Decoy
		switch k {
		case Telemetry:
			more, err = d.blur()
		case Instruction:
			more, err = d.compose()
		}
		if err != nil {
			return nil, fmt.Errorf("decoy %s: %w", k, err)
		}
		list = append(list, more...)
	}
	return list, nil
}

// Place brings the small fault about.
func (d *Decoys) Place(ctx context.Context) (list []record.Decoy, err error) {
	if slices.Contains(d.Kinds, Fault) {
		if list, err = d.slow(ctx); err != nil {
			return nil, fmt.Errorf("decoy %s: %w", Fault, err)
		}
	}
	return list, nil
}

// End ends what acts by itself: nobody speaks any more, and the small fault is over. So nothing of it is in the way of
// grading.
func (d *Decoys) End(ctx context.Context) error {
	if d.voice != nil {
		d.voice.end()
	}
	if d.stop == nil {
		return nil
	}
	err := d.stop(ctx)
	if err == nil {
		d.stop = nil
	}
	return err
}

// draw returns the random numbers for a purpose.
func (d *Decoys) draw(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(d.Seed, 0x6465636f+purpose))
}

// far are the services, in a drawn order, that no fault reaches, and that are not what users talk to. Those that are
// near a fault come last.
func (d *Decoys) far(r *rand.Rand) []string {
	var far, near []string
	all := d.Env.App.Services
	for _, i := range r.Perm(len(all)) {
		switch s := all[i]; {
		case s.Kind != "service" || s.Elastic: // It may have no pods.
		case s.Name == d.Env.App.Frontend.Service || slices.Contains(d.Reached, s.Name):
		case slices.Contains(d.Near, s.Name):
			near = append(near, s.Name)
		default:
			far = append(far, s.Name)
		}
	}
	return append(far, near...)
}
