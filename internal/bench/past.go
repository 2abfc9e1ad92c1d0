package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/internal/bench/measure"
	"github.com/aiopslab/aiopslab/kit/past"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/session"
	"github.com/aiopslab/aiopslab/world"
)

const (
	// pastTarget is how many MB a past may cost.
	pastTarget = 60
	// pastRate is how many requests a second users send, for pastWarm before it counts and for pastFor then.
	pastRate          = 60.0
	pastWarm, pastFor = 2 * time.Second, 4 * time.Second
	bytesPerMB        = 1 << 20
)

// occupied is the memory of this process, in MB, when everything is given back that nobody needs.
type occupied struct{ heap, private float64 }

func occupies() (o occupied, err error) {
	debug.FreeOSMemory()
	debug.FreeOSMemory() // What only finalizers kept is free now.
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	p, err := measure.MemoryOf(os.Getpid())
	return occupied{float64(m.HeapAlloc) / bytesPerMB, float64(p.Private) / bytesPerMB}, err
}

// benchPast measures what the past of an application costs: memory, and the time to write it.
func benchPast(ctx context.Context, r *run) error {
	for _, a := range []*app.App{hotel.App(), social.App()} {
		if err := r.benchPastOf(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// benchPastOf resets a cluster to the same application without and with a past, by turns, and puts it under the same
// load.
func (r *run) benchPastOf(ctx context.Context, a *app.App) error {
	c, _, err := r.embed(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := session.Deploy(ctx, c, a); err != nil {
		return err
	}
	made, err := c.Snapshot(ctx)
	if err != nil {
		return err
	}
	heap, private := measure.Of("MB"), measure.Of("MB")
	rewrite, recall := measure.Of("s"), measure.Of("s")
	for round := range r.rounds {
		without, _, err := putUnderLoad(ctx, c, a, made, nil)
		if err != nil {
			return err
		}
		var cast past.Cast
		begin := time.Now()
		w := world.Past{
			Seed: uint64(round + 1), Now: begin, Steady: []string{observe.Namespace},
			Telling: func(c past.Cast) { cast = c },
		}
		lived, err := c.Rewrite(made, w.Write)
		if err != nil {
			return err
		}
		rewrite.Add(time.Since(begin).Seconds())
		with, took, err := putUnderLoad(ctx, c, a, lived, func(began, loaded, now time.Time) *past.Past {
			p := past.New(w.Seed, loaded, now, cast)
			p.Began = began
			return p
		})
		if err != nil {
			return err
		}
		recall.Add(took.Seconds())
		heap.Add(with.heap - without.heap)
		private.Add(with.private - without.private)
	}
	name := "past of " + a.Name
	r.report(measure.Row{What: name + ": heap that it costs", Value: heap, Target: measure.AtMost(pastTarget)})
	r.report(measure.Row{
		What: name + ": private memory that it costs", Value: private, Target: measure.AtMost(pastTarget),
	})
	r.report(measure.Row{What: name + ": objects written", Value: rewrite})
	r.report(measure.Row{What: name + ": telemetry, logs and stores written", Value: recall})
	return nil
}

// putUnderLoad resets a cluster and has its application used for a while. If there is a past, it is told in the middle.
// It returns what is occupied in the end, and how long the telling took.
func putUnderLoad(ctx context.Context, c *embedded.Cloud, a *app.App, s cloud.Snapshot,
	tell func(began, loaded, now time.Time) *past.Past,
) (o occupied, took time.Duration, err error) {
	if err := c.Reset(ctx, s); err != nil {
		return o, 0, err
	}
	began := time.Now()
	if _, err := send(ctx, c, a, pastRate, pastWarm); err != nil {
		return o, 0, err
	}
	if err := c.Mark(ctx); err != nil {
		return o, 0, err
	}
	loaded := time.Now()
	if _, err := send(ctx, c, a, pastRate, pastFor); err != nil {
		return o, 0, err
	}
	if tell != nil {
		now := time.Now()
		if err := c.Recall(ctx, tell(began, loaded, now)); err != nil {
			return o, 0, fmt.Errorf("tell the past: %w", err)
		}
		took = time.Since(now)
	}
	if _, err := send(ctx, c, a, pastRate, pastFor); err != nil {
		return o, 0, err
	}
	o, err = occupies()
	return o, took, err
}
