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

// stir scales services up by a pod, and down again. It never writes what another has written since.
type stir struct {
	*Life
	services []*part
	// known is the generation of each service's Deployment as it was found or left. One that has another
	// is somebody else's now.
	known  map[string]int64
	raised map[string]bool
	handed chan struct{} // closed when an agent has its turn
	once   sync.Once
}

// Go begins to scale some of the services that faults do not reach, to work on nodes and to do chores, until Stop.
func (l *Life) Go(ctx context.Context) error {
	if l.Level.quiet() {
		return nil
	}
	r := l.draw(2)
	s := &stir{Life: l, known: map[string]int64{}, raised: map[string]bool{}, handed: make(chan struct{})}
	list, err := l.Env.Client.AppsV1().Deployments(l.Env.App.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range list.Items {
		s.known[d.Name] = d.Generation
	}
	rolling := slices.DeleteFunc(slices.Clone(l.parts), func(p *part) bool { return !p.rolls })
	few := (len(rolling) + 1) / 2
	for _, i := range r.Perm(len(rolling)) {
		p := rolling[i]
		if _, there := s.known[p.service]; there && !slices.Contains(l.reached, p.service) && len(s.services) < few {
			s.services = append(s.services, p)
		}
	}
	u, err := newUpkeep(ctx, l)
	if err != nil {
		return err
	}
	going, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	if len(s.services) > 0 {
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
		l.stir.once.Do(func() { close(l.stir.handed) })
	}
}

// Stop ends what Go began, and leaves everything as it was, but for what somebody else has changed since.
func (l *Life) Stop(ctx context.Context) {
	if l.stop == nil {
		return
	}
	l.stop()
	for _, p := range l.stir.services {
		if l.stir.raised[p.service] {
			l.stir.scale(ctx, p)
		}
	}
	l.upkeep.end(ctx)
	l.stop, l.stir, l.upkeep = nil, nil, nil
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
			s.scale(ctx, s.services[r.IntN(len(s.services))])
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
func (s *stir) scale(ctx context.Context, p *part) {
	// One that is begun is finished, or nobody would know what was left.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), calmTimeout)
	defer cancel()
	deployments := s.Env.Client.AppsV1().Deployments(s.Env.App.Namespace)
	n, what := replicas(p.deployment), "scale down"
	if !s.raised[p.service] {
		n, what = n+1, "scale up"
	}
	for range stirTries {
		d, err := deployments.Get(ctx, p.service, metav1.GetOptions{})
		if err != nil || d.Generation != s.known[p.service] {
			return
		}
		u := p.deployment.DeepCopy()
		if s.Env.Dress != nil {
			s.Env.Dress(u)
		}
		_ = unstructured.SetNestedField(u.Object, n, "spec", "replicas")
		u.SetResourceVersion(d.ResourceVersion) // Whoever has written it since comes first.
		data, err := u.MarshalJSON()
		if err != nil {
			return
		}
		d, err = deployments.Patch(ctx, p.service, types.ApplyPatchType, data,
			metav1.PatchOptions{FieldManager: manifest.FieldManager, Force: ptr.To(true)})
		if apierrors.IsConflict(err) {
			continue
		}
		if err == nil {
			s.known[p.service], s.raised[p.service] = d.Generation, !s.raised[p.service]
			s.note(record.Change{What: what, Service: p.service})
		}
		return
	}
}
