package session

import (
	"time"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/kit/past"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/world"
	"github.com/aiopslab/aiopslab/world/noise"
)

// Revival is an application that a former run deployed, and that a cloud was started from: with the past that a
// seed has drawn for it, since a cloud need not be reset that was just started.
//
//	r := &session.Revival{App: a, Made: made, Seed: seed}
//	lived, err := made.Snapshot.(*embedded.Snapshot).Rewrite(images, r.Past().Write)
//	c, err := embedded.Start(ctx, embedded.Options{Snapshot: lived, ...})
//	env := &session.Local{Cloud: c, Revival: r}
type Revival struct {
	App  *app.App
	Made Made
	Seed uint64
	cast past.Cast // who was there in its past
}

// Made is an application as it was deployed, before any run.
type Made struct {
	Snapshot cloud.Snapshot
	// Healthy is how it looks when it is well, under each load that it was seen under, by the load's key.
	Healthy map[string]grade.Look
}

// Past is what the application has behind it.
func (r *Revival) Past() world.Past {
	return newPast(r.App, r.Seed, func(c past.Cast) { r.cast = c })
}

// newPast is the past of an application whose run begins now.
func newPast(a *app.App, seed uint64, telling func(past.Cast)) world.Past {
	return world.Past{
		Seed: seed, Now: time.Now(), Steady: []string{observe.Namespace}, Telling: telling, Released: released(a),
	}
}

// released are the Deployments of an application that a run releases anew.
func released(a *app.App) []string {
	list, err := noise.Rolling(a)
	if err != nil { // Nobody could have deployed it.
		return nil
	}
	names := []string{}
	for _, u := range list {
		names = append(names, a.Namespace+"/"+u.GetName())
	}
	return names
}
