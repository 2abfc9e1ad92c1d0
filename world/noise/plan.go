package noise

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
)

// Injection is a fault that is brought about while other things change.
type Injection struct {
	Reach fault.Reach
	Do    func(context.Context) error
}

// applied are the services of the objects that it applies, but for ConfigMaps.
func (i Injection) applied() (services []string) {
	for _, o := range i.Reach.Applies {
		if kind, name, _ := strings.Cut(o, "/"); kind != "ConfigMap" {
			services = append(services, name)
		}
	}
	return services
}

// needs are the services whose own release must be over before the injection: those that it touches, and
// those that could not start any more without a store that it breaks. All, if it does not say.
func (i Injection) needs(a *app.App) (list []string) {
	if !i.Reach.Known {
		for _, s := range a.Services {
			list = append(list, s.Name)
		}
		return list
	}
	list = slices.Clone(i.Reach.Touches)
	for _, name := range slices.Concat(i.Reach.Touches, i.applied()) {
		if s, ok := a.Service(name); ok && s.Kind != "service" {
			list = append(list, callers(a, name)...)
		}
	}
	return slices.DeleteFunc(list, func(s string) bool { return slices.Contains(i.applied(), s) })
}

// step is a moment of a release: a part is applied, or a fault comes, or both, if the fault is what an
// object of the part is changed to.
type step struct {
	part      *part
	leave     []string // objects that are not applied
	injection *Injection
}

// plan draws the order of a release. A fault that changes an object takes the place of the object's own
// release. Any other comes at a drawn place after what it needs. So where in the order a service is does
// not depend on whether it is faulty.
func plan(r *rand.Rand, a *app.App, parts []*part, injections []Injection) []step {
	var steps []step
	for _, i := range r.Perm(len(parts)) {
		steps = append(steps, step{part: parts[i]})
	}
	places := make([]float64, len(injections)) // drawn however many there are of which kind
	for i := range places {
		places[i] = r.Float64()
	}
	for n := range injections {
		i := &injections[n]
		at := -1
		for k := range steps {
			if p := steps[k].part; p != nil && p.has(i.Reach.Applies) {
				steps[k].leave = append(steps[k].leave, i.Reach.Applies...)
				at = k
			}
		}
		if at >= 0 && steps[at].injection == nil {
			steps[at].injection = i
			steps = bring(steps, at, i.needs(a))
			continue
		}
		first := 0
		for k := range steps {
			if p := steps[k].part; !i.Reach.Known || p != nil && slices.Contains(i.needs(a), p.service) {
				first = k + 1
			}
		}
		at = first + int(places[n]*float64(len(steps)-first+1))
		steps = slices.Insert(steps, at, step{injection: i})
	}
	return steps
}

// bring moves the steps of services that come after a place to just before it.
func bring(steps []step, at int, services []string) []step {
	var before, after []step
	for _, s := range steps[at+1:] {
		if s.injection == nil && s.part != nil && slices.Contains(services, s.part.service) {
			before = append(before, s)
		} else {
			after = append(after, s)
		}
	}
	return slices.Concat(steps[:at], before, steps[at:at+1], after)
}
