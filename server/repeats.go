package server

import (
	"context"
	"sync"

	"github.com/aiopslab/aiopslab/record"
)

// maxPlayed is how many beginnings of episodes are remembered at least, of environments that were made together.
const maxPlayed = 1 << 14

// beginning is what an episode begins with. Two with the same beginning differ by what is done in them alone.
type beginning struct {
	problem string
	seed    uint64
}

// played remembers the beginnings of the episodes in which environments have taken steps, and for each of them the id
// of the last episode that did. The environments are those that were made together, which one token reaches: its
// holder, who can choose the seed, sees how an episode goes on, and what its answer was.
type played struct {
	mu          sync.Mutex
	now, before map[beginning]string // before was full, and is forgotten when now is
}

// step notes a step of an episode. If another one with the same beginning has taken a step before it, and after its own
// last one, the id of that one is returned.
func (p *played) step(b beginning, id string) (other string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, ok := p.now[b]
	if !ok {
		last = p.before[b]
	}
	if p.now == nil || len(p.now) >= maxPlayed {
		p.before, p.now = p.now, map[beginning]string{}
	}
	p.now[b] = id
	if last == id {
		return ""
	}
	return last
}

// repeats notes that a step is taken in the environment, and returns the id of another episode that has shown how this
// one goes on, if there is one. It is the same for later steps: nobody knows whether a worker hears of this one.
func (e *env) repeats() string {
	if other := e.played.step(e.drawn, e.drawnID); other != "" {
		e.repeated = other
	}
	return e.repeated
}

// stepSpec is a step that a worker is to take.
type stepSpec struct {
	Move
	Repeats string `json:"repeats,omitempty"` // the id of another episode that began as this one did
}

// repeats marks the episode if it repeats another one: that is a search without snapshots.
func (g *gym) repeats(ctx context.Context, other string) error {
	if other == "" || g.episode.searched {
		return nil
	}
	select {
	case <-g.episode.over: // Its time was up, and what is done now comes too late.
		return nil
	default:
		return g.episode.mark(ctx, record.RestoreEvent, record.Restore{From: other})
	}
}
