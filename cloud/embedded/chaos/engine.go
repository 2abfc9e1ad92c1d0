package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

// retryEvery is how soon a step that failed is tried again.
const retryEvery = time.Second

// Config is what an engine works with.
type Config struct {
	Client   clientset.Interface // lists and deletes pods
	Network  *vnet.Network       // has the random numbers
	Runtimes func() []Runtime    // of all nodes
	Clock    clock.WithTicker    // paces schedules and kills; the real one by default
}

// Runtime is the container runtime of a node.
type Runtime interface {
	// Disturb sets what is done to the containers of a pod; see cri.Runtime.
	Disturb(podUID string, effects ...cri.Effect)
}

var _ Runtime = (*cri.Runtime)(nil)

// Engine gives disturbances effect. It is safe for concurrent use.
type Engine struct {
	cfg    Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	active atomic.Int32 // disturbances there are

	mu      sync.Mutex
	all     map[*disturbance]struct{}
	view    *view // nil before the first Watch
	pending *view // takes over once it knows everything

	effectsMu sync.Mutex // serialises calls of Runtime.Disturb
	effects   map[string][]ownedEffect
}

// New returns an engine that disturbs nothing yet.
func New(cfg Config) *Engine {
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	e := &Engine{cfg: cfg, all: map[*disturbance]struct{}{}, effects: map[string][]ownedEffect{}}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

// Watch makes the engine follow the pods and services of informers that do not run yet. It may be
// called again with others, which take over when they have synced.
func (e *Engine) Watch(f informers.SharedInformerFactory) error {
	v := &view{pods: f.Core().V1().Pods().Lister(), services: f.Core().V1().Services().Lister()}
	handlers := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { e.wake() }, UpdateFunc: func(any, any) { e.wake() }, DeleteFunc: func(any) { e.wake() },
	}
	for _, i := range []cache.SharedIndexInformer{
		f.Core().V1().Pods().Informer(),
		f.Core().V1().Services().Informer(),
	} {
		if _, err := i.AddEventHandler(handlers); err != nil {
			return err
		}
		v.synced = append(v.synced, i.HasSynced)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pending = v
	return nil
}

// wake makes all disturbances look at the pods again.
func (e *Engine) wake() {
	if e.active.Load() == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for d := range e.all {
		select {
		case d.wakes <- struct{}{}:
		default:
		}
	}
}

// current returns what is known of the cluster.
func (e *Engine) current() *view {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pending != nil && e.pending.complete() {
		e.view, e.pending = e.pending, nil
	}
	return e.view
}

// Disturb does what cloud.Chaos says.
func (e *Engine) Disturb(ctx context.Context, spec cloud.Disturbance) (stop func(context.Context) error, err error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.ctx, func() { cancel(errClosed) })()
	if err := e.find(ctx, "selector", spec.Selector); err != nil {
		return nil, err
	}
	if n := spec.Network; n != nil && n.Target != nil {
		if err := e.find(ctx, "network.target", *n.Target); err != nil {
			return nil, err
		}
	}
	if err := e.findContainers(spec); err != nil {
		return nil, err
	}
	d := &disturbance{
		engine: e, spec: spec, wakes: make(chan struct{}, 1), done: make(chan struct{}),
		started: e.cfg.Clock.Now(),
	}
	d.kind = e.kindOf(d)
	var run context.Context
	run, d.cancel = context.WithCancel(e.ctx)
	e.mu.Lock()
	e.all[d] = struct{}{}
	e.active.Add(1)
	e.mu.Unlock()
	ready := make(chan error, 1)
	go d.run(run, ready)
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		d.cancel()
		<-d.done
		return nil, fmt.Errorf("disturb %v: %w", spec.Selector, err)
	}
	return d.stop, nil
}

var errClosed = errors.New("the cloud is closed")

// StopAll ends all disturbances.
func (e *Engine) StopAll() {
	e.mu.Lock()
	list := make([]*disturbance, 0, len(e.all))
	for d := range e.all {
		list = append(list, d)
	}
	e.mu.Unlock()
	for _, d := range list {
		d.cancel()
	}
	for _, d := range list {
		<-d.done
	}
}

// Close ends all disturbances. No new ones can start afterwards.
func (e *Engine) Close() {
	e.cancel()
	e.StopAll()
}

// chance returns what is true for a part, 0 to 1, of the times that a pod asks it about a call. Each
// pod and call has random numbers of its own.
func (e *Engine) chance(pod string, part float64) func(call string) bool {
	if part >= 1 {
		return func(string) bool { return true }
	}
	return func(call string) bool { return e.cfg.Network.Chance().Draw(call+" "+pod) < part }
}

// disturbance is one that has effect.
type disturbance struct {
	engine  *Engine
	spec    cloud.Disturbance
	kind    kind
	started time.Time
	wakes   chan struct{}
	cancel  context.CancelFunc
	done    chan struct{} // closed when nothing is left of it
}

// kind is how disturbances of one sort are brought about. Its methods are called one after the
// other.
type kind interface {
	// apply gives the disturbance effect on exactly these pods, to a degree between 0 (none) and 1
	// (in full). It says after which time it wants to be called again even if nothing changes; 0 is
	// never.
	apply(ctx context.Context, pods []*v1.Pod, degree float64) (again time.Duration, err error)
	// end undoes what can be undone.
	end()
}

func (e *Engine) kindOf(d *disturbance) kind {
	switch s := d.spec; {
	case s.Network != nil:
		return &networkKind{engine: e, spec: s.Network}
	case s.Pod != nil && s.Pod.Action == cloud.PodKill:
		return &killKind{engine: e}
	default:
		return &containerKind{engine: e, effect: e.effectOf(s)}
	}
}

// run keeps the disturbance up to date until ctx ends. It tells ready how the first step went.
func (d *disturbance) run(ctx context.Context, ready chan<- error) {
	e := d.engine
	defer close(d.done)
	defer func() {
		d.kind.end()
		e.mu.Lock()
		delete(e.all, d)
		e.active.Add(-1)
		e.mu.Unlock()
	}()
	for ctx.Err() == nil {
		again, err := d.step(ctx)
		if ready != nil {
			ready <- err
			ready = nil
			if err != nil {
				return
			}
		}
		if err != nil {
			again = retryEvery
		}
		d.wait(ctx, again)
	}
}

func (d *disturbance) step(ctx context.Context) (again time.Duration, err error) {
	degree, change := degreeAt(d.spec.Schedule, d.engine.cfg.Clock.Since(d.started))
	again, err = d.kind.apply(ctx, d.engine.current().selected(d.spec.Selector), degree)
	return sooner(again, change), err
}

// wait returns when there may be something to do. Zero is no limit.
func (d *disturbance) wait(ctx context.Context, limit time.Duration) {
	var timer <-chan time.Time
	if limit > 0 {
		t := d.engine.cfg.Clock.NewTimer(limit)
		defer t.Stop()
		timer = t.C()
	}
	select {
	case <-d.wakes:
	case <-timer:
	case <-ctx.Done():
	}
}

// stop ends the disturbance.
func (d *disturbance) stop(ctx context.Context) error {
	d.cancel()
	select {
	case <-d.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop disturbing %v: %w", d.spec.Selector, ctx.Err())
	}
}

// sooner is the lesser of two times of which 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// ownedEffect is an effect on a pod's containers and whose it is.
type ownedEffect struct {
	owner  kind
	effect cri.Effect
}

// setEffect sets, or removes if effect is nil, what one owner does to the containers of pods.
func (e *Engine) setEffect(owner kind, effect func(uid string) cri.Effect, uids []string) {
	e.effectsMu.Lock()
	defer e.effectsMu.Unlock()
	runtimes := e.cfg.Runtimes()
	var wg sync.WaitGroup
	for _, uid := range uids {
		list := slices.DeleteFunc(e.effects[uid], func(o ownedEffect) bool { return o.owner == owner })
		if effect != nil {
			list = append(list, ownedEffect{owner, effect(uid)})
		}
		e.effects[uid] = list
		if len(list) == 0 {
			delete(e.effects, uid)
		}
		effects := make([]cri.Effect, 0, len(list))
		for _, o := range list {
			effects = append(effects, o.effect)
		}
		for _, r := range runtimes {
			wg.Go(func() { r.Disturb(uid, effects...) })
		}
	}
	wg.Wait()
}
