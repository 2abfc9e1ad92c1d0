// Package fault is the library of faults: what goes wrong, where it can, how it shows and how it is
// set right.
//
// An injected fault leaves nothing that speaks of an injector: objects are changed the way they were
// deployed (see internal/manifest), and what they are changed to is what an operator's mistake would
// leave. A fault lasts until something sets it right.
//
// A [Kind] is one way in which things go wrong; a file of this package each. With a target and
// parameters it makes a [Fault], which is injected into a running application and recovered from:
//
//	k, err := fault.Find(fault.Kinds(), "misconfig_k8s")
//	f, err := k.New(fault.Target{App: social.App(), Service: "user-service"}, nil)
//	err = f.Inject(ctx, env)
//	symptom, err := f.Manifest(ctx, env)
//	err = f.Recover(ctx, env)
package fault

import (
	"context"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/workload"
)

// Env is what a fault is injected into: a cluster with an application that is under load.
type Env struct {
	Client kubernetes.Interface
	Config *rest.Config
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Chaos  cloud.Chaos // nil where the cloud has none
	App    *app.App
	// Guest says that the cluster is somebody's: nothing outside of the application's namespace is the lab's to change.
	Guest bool
	// Lend notes how volumes are before they are changed, where the lab is a guest; see [cloud.Lender].
	Lend func(ctx context.Context, volumes ...string) error
	// Load is what the application's users get at the moment. It fails if that cannot be known.
	Load func(ctx context.Context) (*workload.Snapshot, error)
	// Seed is what a fault draws from, such as a password. See [Env.draw].
	Seed uint64
	// Injected is when the injection of faults began. Faults have not touched a pod that has been ready since
	// before then, however young it is. The zero time means that this is not known.
	Injected time.Time
	// Dress adds to what is applied what everything has that is applied at this time, such as the mark of
	// a release. It may be nil.
	Dress func(u *unstructured.Unstructured)
	// Applied is told of an object that was applied, as it was. It may be nil.
	Applied func(u *unstructured.Unstructured)
	// Spare is how many pods a service was given at the moment beside those that it needs. They say nothing of how it
	// fares: they may only just have been made. It may be nil.
	Spare func(service string) int
}

// Fault is a fault that is bound to its target. It remembers what Recover needs; one Fault is for
// one run, and its methods are called one after the other.
type Fault interface {
	// Inject brings the fault about and returns once that is done, which need not mean that it shows.
	Inject(ctx context.Context, e *Env) error
	// Manifest says how the fault shows at the moment, in words such as "0 of 1 pods of geo are
	// ready". An empty string says that it does not. It looks once, without waiting.
	Manifest(ctx context.Context, e *Env) (symptom string, err error)
	// Recover undoes what Inject did, as far as it is still there. It is safe to call at any time.
	Recover(ctx context.Context, e *Env) error
}

// Target is what a fault is bound to.
type Target struct {
	App     *app.App
	Service string // one of App.Services; empty for faults of the application as a whole
	// Place is where the lab is a guest, and nil in a cluster of its own. It says what namespaces are called there.
	Place *cloud.Tenancy
}

// Spaced is a fault that has namespaces beside the application's. Where the lab is a guest they are made for the run
// before it begins, as the application's is, and the fault finds them.
type Spaced interface {
	// Namespaces are their names.
	Namespaces() []string
}

// Borrower is a fault that changes volumes which the lab has not made, where the lab is a guest.
type Borrower interface {
	// Volumes are their names, once it is injected. The agent may change whose they are.
	Volumes() []string
}

// Cause is where and what the root cause of a fault is, in AIOpsLab's terms.
type Cause struct {
	SystemLevel string `json:"system_level" yaml:"system_level"`
	FaultType   string `json:"fault_type" yaml:"fault_type"`
}

// Kind is one way in which things go wrong.
type Kind struct {
	Name        string // as problems name it: "scale_pods_to_zero"
	Title       string // one line
	Description string // what is done, how it shows, what an operator can do about it
	Cause       Cause
	// Needs is what a cluster must have for it besides its API.
	Needs Need
	// Params is a pointer to a struct with the defaults, whose yaml tags name the parameters and
	// whose doc tags explain them.
	Params func() any
	// Targets are the services of an application that the fault can hit, and "" if it can hit the application as a
	// whole.
	Targets func(a *app.App) []string
	// Bind makes a fault; params is what Params returned, filled in.
	Bind func(t Target, params any) (Fault, error)
	// Solution is the reference fix: commands for a shell with kubectl, run in order with the
	// application's namespace as the default one. It is nil if no operator could fix the fault.
	Solution func(t Target, params any) []string
	// TrueFixes are the blunt remedies, see [Remedies], which truly fix this fault, with the reason.
	// MayFix are those that fix it if they are lucky. Every other one must fail.
	TrueFixes, MayFix map[string]string
}

// Need is what a fault needs of a cluster besides its API.
type Need int

const (
	// NeedsNothing is that any cluster will do.
	NeedsNothing Need = iota
	// NeedsChaos is that pods can be disturbed: see [cloud.Chaos]. In which way, a [Disturber] says.
	NeedsChaos
	// NeedsPolicies is that NetworkPolicies have an effect.
	NeedsPolicies
	// NeedsVolumes is that the volumes of the application's claims can be changed.
	NeedsVolumes
)

// Disturber is a fault that is a disturbance. It can be had where that can.
type Disturber interface {
	// Disturbance is what is done. Which pods it is done to is open until it is injected.
	Disturbance() cloud.Disturbance
}

// Lacks says why a cloud cannot have a fault of the kind, or "" if it can. It asks the cloud nothing that takes time.
func (k *Kind) Lacks(c cloud.Cloud, f Fault) string {
	switch k.Needs {
	case NeedsChaos:
		chaos, _ := c.(cloud.Chaos)
		var d cloud.Disturbance
		if f, ok := f.(Disturber); ok {
			d = f.Disturbance()
		} else if chaos != nil {
			return ""
		}
		if why := cloud.Refusal(chaos, d); why != "" {
			return k.Name + " disturbs pods: " + why
		}
	case NeedsPolicies:
		if why := cloud.Missing(c, cloud.Policies); why != "" {
			return k.Name + " takes NetworkPolicies to mend: " + why
		}
	case NeedsVolumes:
		if why := cloud.Missing(c, cloud.Volumes); why != "" {
			return k.Name + " changes volumes: " + why
		}
	}
	return ""
}
