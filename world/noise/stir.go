package noise

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/record"
)

// How often something changes: as often as a fault's own pods are written at first, and ever more seldom; at
// the hand-over this begins anew.
const (
	stirEvery  = 250 * time.Millisecond
	stirGrowth = 1.06
	stirCalm   = 10 * time.Second // from one change to the next, in the end
	stirBusy   = 2 * time.Second
	// stirTries is how often a write is tried that comes across another.
	stirTries = 5
	// calmTimeout is how long a change may take.
	calmTimeout = 10 * time.Second
)

// One in so many of the services that can be scaled is, and two at least. They are few: some faults cannot be where
// services are scaled, and whoever leaves these services out for that has not left out much. Nor are they so few that
// the users of one of them notice how often it is scaled.
const (
	oneIn = 4
	least = 2
)

// stir scales services up by a pod, and down again. It never writes what another has written since.
type stir struct {
	*Life
	// known is the generation of each service's Deployment as it was found or left. One that has another
	// is somebody else's now.
	known  map[string]int64
	raised map[string]bool
	once   sync.Once

	spare sync.Map // services that have a pod more, or are about to
}

// Go begins to scale some services, whether or not a fault is there, to work on nodes and to do chores, until Stop.
func (l *Life) Go(ctx context.Context) error {
	if l.Level.quiet() {
		return nil
	}
	r := l.draw(2)
	s := &stir{Life: l, known: map[string]int64{}, raised: map[string]bool{}}
	list, err := l.Env.Client.AppsV1().Deployments(l.Env.App.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range list.Items {
		s.known[d.Name] = d.Generation
	}
	l.stirred, l.handed = s.choose(r), make(chan struct{})
	l.Env.Spare = func(service string) int {
		if _, raised := s.spare.Load(service); raised {
			return 1
		}
		return 0
	}
	u, err := newUpkeep(ctx, l)
	if err != nil {
		return err
	}
	going, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	if len(s.stirred) > 0 {
		done.Go(func() { s.run(going, r) })
	}
	done.Go(func() { u.run(going) })
	l.begin(going, &done)
	l.stir, l.upkeep, l.stop = s, u, func() { cancel(); done.Wait() }
	return nil
}

// HandOver says that the agent's turn begins.
func (l *Life) HandOver() {
	if l.stir != nil {
		l.stir.once.Do(func() { close(l.handed) })
	}
}

// Stop ends what Go began, and leaves everything as it was, but for what somebody else has changed since.
func (l *Life) Stop(ctx context.Context) {
	if l.stop == nil {
		return
	}
	l.stop()
	for _, name := range l.stirred {
		if l.stir.raised[name] {
			l.stir.scale(ctx, name)
		}
	}
	l.stir.spare.Clear()
	l.upkeep.end(ctx)
	l.stop, l.stir, l.upkeep = nil, nil, nil
}

// choose draws the services that are scaled. Whether one is chosen does not depend on where a fault is, but for those
// that cannot have a pod more because of it.
func (s *stir) choose(r *rand.Rand) (names []string) {
	parts := slices.DeleteFunc(slices.Clone(s.parts), func(p *part) bool { return !p.scales })
	if len(parts) < least { // One alone would be scaled whenever no fault is tied to its pods, and never if one is.
		return nil
	}
	for _, i := range r.Perm(len(parts)) {
		name := parts[i].service
		_, there := s.known[name]
		if there && !slices.Contains(s.alone, name) && len(names) < max(least, len(parts)/oneIn) {
			names = append(names, name)
		}
	}
	return names
}

// last is a Deployment as it was applied last, by the release or by a fault.
func (s *stir) last(name string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.applied[name]; u != nil {
		return u.DeepCopy()
	}
	return nil
}

func (s *stir) run(ctx context.Context, r *rand.Rand) {
	longest := stirCalm
	if s.Level == Busy {
		longest = stirBusy
	}
	wait, handed := stirEvery, s.handed
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			s.scale(ctx, s.stirred[r.IntN(len(s.stirred))])
			wait = min(longest, time.Duration(float64(wait)*stirGrowth))
		case <-handed:
			wait, handed = stirEvery, nil
		case <-ctx.Done():
			return
		}
		timer.Reset(wait)
	}
}

// scale gives a service a pod more, or takes it away again. A change that fails is not made: nobody
// depends on it.
func (s *stir) scale(ctx context.Context, name string) {
	// One that is begun is finished, or nobody would know what was left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), calmTimeout)
	defer cancel()
	deployments := s.Env.Client.AppsV1().Deployments(s.Env.App.Namespace)
	u := s.last(name)
	if u == nil {
		return
	}
	n, what := replicas(u), "scale down"
	if !s.raised[name] {
		n, what = n+1, "scale up"
	}
	_ = unstructured.SetNestedField(u.Object, n, "spec", "replicas")
	s.spare.Store(name, true)
	defer func() {
		if !s.raised[name] {
			s.spare.Delete(name)
		}
	}()
	for range stirTries {
		d, err := deployments.Get(ctx, name, metav1.GetOptions{})
		if err != nil || d.Generation != s.known[name] {
			return
		}
		u.SetResourceVersion(d.ResourceVersion) // Whoever has written it since comes first.
		data, err := u.MarshalJSON()
		if err != nil {
			return
		}
		d, err = deployments.Patch(ctx, name, types.ApplyPatchType, data,
			metav1.PatchOptions{FieldManager: manifest.FieldManager, Force: ptr.To(true)})
		if apierrors.IsConflict(err) {
			continue
		}
		if err == nil {
			s.known[name], s.raised[name] = d.Generation, !s.raised[name]
			s.note(record.Change{What: what, Service: name})
		}
		return
	}
}
