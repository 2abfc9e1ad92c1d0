package whisk

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"slices"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit/past"
)

// pastRate is how many activations a second are remembered of the past.
const pastRate = 2

// recall has the controller remember activations of its past, like those that it has seen.
func (c *controller) recall() {
	c.s.Recall(func(_ context.Context, p *past.Past, r *rand.Rand) error {
		c.store.before(p, r)
		return nil
	})
}

// before makes up activations of the past: copies of those that there were, at other times.
func (st *store) before(p *past.Past, r *rand.Rand) {
	st.mu.Lock()
	defer st.mu.Unlock()
	// What was answered twice in the same way could have been asked at any time.
	var like []*Activation
	answered := map[string]int{}
	for _, a := range st.recent {
		if !a.Response.Success || slices.ContainsFunc(a.Annotations, isCold) {
			continue
		}
		answer := a.Name + " " + string(a.Response.Result)
		if answered[answer]++; answered[answer] == 2 {
			like = append(like, a)
		}
	}
	if len(like) == 0 {
		return
	}
	for _, t := range p.Fade(r, p.Began, pastRate, service.Grown) {
		a := *like[r.IntN(len(like))]
		var id [16]byte
		for i := range id {
			id[i] = byte(r.Uint32())
		}
		a.ID, a.Cause, a.Start, a.Logs = hex.EncodeToString(id[:]), "", t.UnixMilli(), []string{}
		a.End = a.Start + a.Duration
		st.keep(&a)
		if len(st.recent) >= keptRecent {
			return
		}
	}
}

// isCold reports whether an annotation tells of a cold start.
func isCold(n Annotation) bool { return n.Key == "initTime" }
