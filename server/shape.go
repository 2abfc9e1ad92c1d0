package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/aiopslab/aiopslab/session"
)

// shapedReward is the short name of DefaultReward with Users 1.
const shapedReward = "shaped"

// UnmarshalJSON takes an object, whose fields replace those that r has, or the word shaped.
func (r *Reward) UnmarshalJSON(b []byte) error {
	var name string
	if json.Unmarshal(b, &name) == nil {
		if name != shapedReward {
			return fmt.Errorf("reward %q: it is an object, or %q", name, shapedReward)
		}
		*r = DefaultReward
		r.Users = 1
		return nil
	}
	type fields Reward
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode((*fields)(r))
}

// check refuses what cannot be meant.
func (r Reward) check() error {
	if r.Users < 0 {
		return fail(http.StatusUnprocessableEntity, "reward.users is %v; it is 0 at least", r.Users)
	}
	if r.Discount <= 0 || r.Discount > 1 {
		return fail(http.StatusUnprocessableEntity, "reward.discount is %v; it is above 0, and 1 at most", r.Discount)
	}
	return nil
}

// attended is a run that can say how the users of its application fare.
type attended interface {
	Users(ctx context.Context) (session.Experience, error)
}

var _ attended = (*session.Live)(nil)

// shaping makes rewards of how users fare. The potential of a state is how well they are served; a step is worth
//
//	users × (discount × potential after it − potential before it)
//
// and the potential after the last step is 0. So whatever an agent does, these rewards add up to the same over an
// episode: users × −potential at its beginning, with rewards discounted as the trainer does. What is best to do stays
// best.
type shaping struct {
	users, discount, potential float64
}

// begin is called at the beginning of an episode.
func (s *shaping) begin(ctx context.Context, r Reward, run Run) {
	*s = shaping{users: r.Users, discount: r.Discount}
	s.look(ctx, run)
}

// look notes how users fare. If that is not known, it is as it was.
func (s *shaping) look(ctx context.Context, run Run) {
	a, ok := run.(attended)
	if !ok || s.users == 0 {
		return
	}
	if e, err := a.Users(ctx); err == nil && e.Known {
		s.potential = e.Served
	}
}

// step is what a step is worth that was not the last.
func (s *shaping) step(ctx context.Context, run Run) float64 {
	before := s.potential
	s.look(ctx, run)
	return s.users * (s.discount*s.potential - before)
}

// last is what the last step is worth.
func (s *shaping) last() float64 {
	worth := -s.users * s.potential
	s.potential = 0
	return worth
}
