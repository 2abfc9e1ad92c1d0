package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
)

// disturbParams are the parameters that all disturbances share.
type disturbParams struct {
	Node  bool          `yaml:"node" doc:"bound to the node that the target's pods run on: moving off it is a fix"`
	Every time.Duration `yaml:"every" doc:"comes and goes: begins anew this often, and lasts for as long as for says"`
	For   time.Duration `yaml:"for" doc:"how long it lasts each time, if it comes and goes"`
	Ramp  time.Duration `yaml:"ramp" doc:"grows evenly to its magnitude over this time"`
}

// longestRamp is how long a disturbance may take to come, and shortestFor how long it must stay.
const (
	longestRamp = 10 * time.Minute
	shortestFor = time.Second
)

// Validate implements the check of parameters.
func (p disturbParams) Validate() error {
	switch {
	case p.Every < 0 || p.For < 0 || p.Ramp < 0:
		return errors.New(`"every", "for" and "ramp" must not be negative`)
	case p.Ramp > longestRamp:
		return fmt.Errorf(`"ramp" must be at most %v: nobody waits longer for a fault to show`, longestRamp)
	case p.Every > longestRamp:
		return fmt.Errorf(`"every" must be at most %v: an agent would not see it come`, longestRamp)
	case p.For > 0 && p.For < shortestFor:
		return fmt.Errorf(`"for" must be at least %v: what is over sooner does not show`, shortestFor)
	case (p.Every > 0) != (p.For > 0):
		return errors.New(`"every" and "for" go together`)
	case p.For > 0 && p.For >= p.Every:
		return errors.New(`"for" must be shorter than "every"`)
	}
	return nil
}

func (p disturbParams) schedule() cloud.Schedule {
	return cloud.Schedule{Every: p.Every, For: p.For, Ramp: p.Ramp}
}

// disturbing completes the kind of a disturbance: one that goes to the pods of a service, through the
// cloud's power of chaos. Shared finds the shared parameters among all; probe tells how it shows.
func disturbing[P any](k Kind, defaults P, shared func(P) disturbParams,
	what func(t Target, p P) (cloud.Disturbance, error), probe func(p P) probe, restarts bool,
) *Kind {
	if k.Targets == nil {
		k.Targets = AnyService
	}
	k.Needs = NeedsChaos
	return Define(k, defaults, func(t Target, p P) (Fault, error) {
		common := shared(p)
		if o, err := read(t.App); err != nil {
			return nil, err
		} else if common.Node && o.controller(t.Service).owns {
			return nil, fmt.Errorf("%s: parameter \"node\": %s has a volume on its node and cannot move off "+
				"it; leave node out", k.Name, t.Service)
		}
		d, err := what(t, p)
		if err != nil {
			return nil, fmt.Errorf("%s: parameter %w", k.Name, err)
		}
		d.Schedule = common.schedule()
		return &disturbed{
			kind: k.Name, target: t.Service, node: common.Node, what: d, probe: probe(p),
			restarts: restarts,
		}, nil
	}, func(t Target, p P) []string {
		if !shared(p).Node {
			return nil
		}
		return moveOff(t)
	})
}

// moveOff are the commands that move a service off the node it is on.
func moveOff(t Target) []string {
	pods := fmt.Sprintf("-l %s=%s", t.App.Label, t.Service)
	return []string{
		fmt.Sprintf(`kubectl cordon $(kubectl get pods %s -o jsonpath='{.items[0].spec.nodeName}')`, pods),
		fmt.Sprintf("kubectl delete pod %s --wait=false", pods),
		rollout(t.App, t.Service),
	}
}

// moved is what remedies may do to a fault that is bound to a node.
var moved = map[string]string{
	RestartEverything:  "where it is bound to a node, the new pods may be scheduled to others",
	RollBackEverything: "where it is bound to a node, the new pods may be scheduled to others",
	LimitsToInfinity:   "where it is bound to a node, the new pods may be scheduled to others",
}

// movedByRestart is the same, but for what limits do.
var movedByRestart = map[string]string{
	RestartEverything: moved[RestartEverything], RollBackEverything: moved[RollBackEverything],
}

// disturbed is a service under a disturbance that no manifest can express.
type disturbed struct {
	kind, target string
	node         bool
	what         cloud.Disturbance
	probe        probe
	restarts     bool // the pods are replaced, because it hits pods as they start

	stop     func(context.Context) error
	began    time.Time
	symptom  string // the last that was seen
	lastSeen time.Time
	volumes  []string // names of the disk that it hits
}

// A probe says how a disturbance of a service shows, or "".
type probe func(ctx context.Context, e *Env, service string) (string, error)

// Disturbance implements Disturber.
func (f *disturbed) Disturbance() cloud.Disturbance { return f.what }

func (f *disturbed) Inject(ctx context.Context, e *Env) error {
	if why := cloud.Refusal(e.Chaos, f.what); why != "" {
		return fmt.Errorf("%s: %s", f.kind, why)
	}
	if f.stop == nil {
		if f.what.IO != nil {
			var err error
			if f.volumes, err = storageOf(ctx, e, f.target); err != nil {
				return err
			}
		}
		d := f.what
		d.Selector = cloud.Selector{Namespace: e.App.Namespace, Labels: map[string]string{e.App.Label: f.target}}
		if f.node {
			node, err := nodeOf(ctx, e, f.target)
			if err != nil {
				return err
			}
			d.Selector.Node = node
		}
		stop, err := e.Chaos.Disturb(ctx, d)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", f.kind, f.target, err)
		}
		f.stop, f.began = stop, time.Now()
	}
	if f.restarts {
		return deletePods(ctx, e, f.target)
	}
	return nil
}

// nodeOf returns the node that a service runs on: that of its first pod by name.
func nodeOf(ctx context.Context, e *Env, service string) (string, error) {
	pods, err := podsOf(ctx, e, service)
	if err != nil {
		return "", err
	}
	var nodes []string
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			nodes = append(nodes, p.Name+"/"+p.Spec.NodeName)
		}
	}
	if len(nodes) == 0 {
		return "", fmt.Errorf("no pod of %s runs on a node", service)
	}
	_, node, _ := strings.Cut(slices.Min(nodes), "/")
	return node, nil
}

// Away is in the symptom of a fault that comes and goes while it does not show.
const Away = "it comes and goes"

// seenMargin is added to the time that what comes and goes may be away.
const seenMargin = 10 * time.Second

// Manifest looks at the service. A disturbance that comes and goes counts as present until it has been away for
// longer than its schedule allows.
func (f *disturbed) Manifest(ctx context.Context, e *Env) (string, error) {
	symptom, err := f.probe(ctx, e, f.target)
	if err != nil {
		return "", err
	}
	if symptom != "" {
		f.symptom, f.lastSeen = symptom, time.Now()
		return symptom, nil
	}
	if every := f.what.Schedule.Every; every > 0 && !f.lastSeen.IsZero() {
		if ago := time.Since(f.lastSeen); ago < every+seenMargin {
			return fmt.Sprintf("%s (%v ago; %s)", f.symptom, ago.Round(time.Second), Away), nil
		}
	}
	return "", nil
}

func (f *disturbed) Recover(ctx context.Context, e *Env) error {
	if f.stop == nil {
		return nil
	}
	if err := f.stop(ctx); err != nil {
		return err
	}
	f.stop, f.lastSeen = nil, time.Time{}
	return restartUnready(ctx, e, f.target)
}

// workloads are the services that are not there for operators only.
func workloads(a *app.App) []string {
	return services(a, func(s app.Service) bool { return s.Kind != "infrastructure" })
}
