package noise

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/aiopslab/aiopslab/record"
)

// How many more users there are in a surge, as a part of the usual load, and for how long: enough to be seen in a
// graph, and less than a system that is well takes notice of.
const (
	surgeLeast = 0.25
	surgeMost  = 0.45
	surgeTime  = 5 * time.Second // or up to twice that
)

// surge has more users come for a short time.
func (l *Life) surge(ctx context.Context, r *rand.Rand) {
	part, lasting := surgeLeast+(surgeMost-surgeLeast)*r.Float64(), surgeTime+time.Duration(r.Int64N(int64(surgeTime)))
	seed := r.Uint64()
	if l.Surge == nil {
		return
	}
	l.note(record.Change{What: "load spike"})
	l.Surge(ctx, part, lasting, seed)
}
