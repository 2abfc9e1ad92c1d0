package fault

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/cloud"
)

// Reach is what of an application an injection writes or makes anew. Whoever changes the application
// around an injection must not undo it, nor be taken for it.
type Reach struct {
	// Known is false for a fault that does not tell.
	Known bool
	// Whole says that the application is deployed anew.
	Whole bool
	// Applies are the objects that are applied, as "Service/geo".
	Applies []string
	// Touches are the services whose pods must not be replaced by others at the same time.
	Touches []string
	// Settled says that the pods of these must have been ready for a while.
	Settled bool
	// Alone are the services to whose number of pods the fault, its symptom or its remedy is tied. Any other may have a
	// pod more for a while: the new one fares as the others do.
	Alone []string
}

// Reaching is an optional power of a [Fault]: it tells its reach.
type Reaching interface{ Reach() Reach }

// ReachOf returns the reach of a fault.
func ReachOf(f Fault) Reach {
	if r, ok := f.(Reaching); ok {
		reach := r.Reach()
		reach.Known = true
		return reach
	}
	return Reach{}
}

// key names an object.
func key(u *unstructured.Unstructured) string { return u.GetKind() + "/" + u.GetName() }

var (
	_ Reaching = (*redeployed)(nil)
	_ Reaching = (*scaled)(nil)
	_ Reaching = (*unschedulable)(nil)
	_ Reaching = (*misconfigured)(nil)
	_ Reaching = (*tlsRequired)(nil)
	_ Reaching = (*revoked)(nil)
	_ Reaching = (*unregistered)(nil)
	_ Reaching = (*leaked)(nil)
	_ Reaching = (*hostile)(nil)
	_ Reaching = (*disturbed)(nil)
	_ Reaching = (*wrongCluster)(nil)
	_ Reaching = (*unauthorised)(nil)
	_ Reaching = (*unbound)(nil)
)

// Reach implements [Reaching].
func (f *redeployed) Reach() Reach { return Reach{Applies: []string{key(f.right)}} }

// Reach implements [Reaching].
func (f *scaled) Reach() Reach {
	return Reach{Applies: []string{key(f.right)}, Alone: []string{f.right.GetName()}}
}

// Reach implements [Reaching]. Each pod that nobody takes has events and an alert of its own.
func (f *unschedulable) Reach() Reach {
	r := f.redeployed.Reach()
	r.Alone = []string{f.right.GetName()}
	return r
}

// Reach implements [Reaching].
func (f *misconfigured) Reach() Reach { return Reach{Applies: []string{key(f.right)}} }

// Reach implements [Reaching].
func (f *tlsRequired) Reach() Reach {
	return Reach{Applies: []string{key(f.right)}, Touches: append([]string{f.server}, f.clients...)}
}

// Reach implements [Reaching].
func (f *revoked) Reach() Reach { return Reach{Touches: append([]string{f.server}, f.clients...)} }

// Reach implements [Reaching].
func (f *unregistered) Reach() Reach { return Reach{Touches: append([]string{f.server}, f.clients...)} }

// Reach implements [Reaching].
func (f *leaked) Reach() Reach { return Reach{Touches: append([]string{f.store}, f.clients...)} }

// Reach implements [Reaching]. Nothing of the application is changed.
func (f *hostile) Reach() Reach { return Reach{} }

// Reach implements [Reaching].
func (f *disturbed) Reach() Reach {
	r := Reach{Touches: []string{f.target}, Settled: true}
	if f.shared() {
		r.Alone = r.Touches
	}
	return r
}

// shared reports whether the pods of a service share what a disturbance does, so that it is less with one more.
func (f *disturbed) shared() bool {
	switch d := f.what; {
	case f.node: // A new pod may be on another node, and well there.
	case d.Schedule.Ramp > 0: // What grows may not have reached a new pod yet.
	case d.Stress != nil: // Two have the CPU of two, and one serves while the other was killed for its memory.
	case d.Network != nil && d.Network.Bandwidth > 0: // Two send twice as much.
	case d.Pod != nil && d.Pod.Action != cloud.PodFailure: // One serves while the other is killed.
	default:
		return false
	}
	return true
}

// Reach implements [Reaching]. None of its pods gets ready.
func (f *unauthorised) Reach() Reach {
	return Reach{Applies: []string{key(f.right)}, Touches: []string{f.service}, Alone: []string{f.service}}
}

// Reach implements [Reaching]. What the operator makes of it may take all the pods that the namespace may have.
func (f *wrongCluster) Reach() Reach {
	r := Reach{Applies: []string{key(f.right)}, Touches: slices.Clone(f.crowded)}
	r.Alone = r.Touches
	return r
}

// Reach implements [Reaching].
func (f *unbound) Reach() Reach {
	touches := append(slices.Clone(f.servers), f.clients...)
	return Reach{Whole: true, Touches: touches, Alone: touches} // They wait, and none of their pods gets ready.
}
