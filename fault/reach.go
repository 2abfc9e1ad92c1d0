package fault

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	_ Reaching = (*misconfigured)(nil)
	_ Reaching = (*tlsRequired)(nil)
	_ Reaching = (*revoked)(nil)
	_ Reaching = (*unregistered)(nil)
	_ Reaching = (*disturbed)(nil)
	_ Reaching = (*unbound)(nil)
)

// Reach implements [Reaching].
func (f *redeployed) Reach() Reach { return Reach{Applies: []string{key(f.right)}} }

// Reach implements [Reaching].
func (f *scaled) Reach() Reach { return Reach{Applies: []string{key(f.right)}} }

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
func (f *disturbed) Reach() Reach { return Reach{Touches: []string{f.target}, Settled: true} }

// Reach implements [Reaching].
func (f *unbound) Reach() Reach {
	return Reach{Whole: true, Touches: append(slices.Clone(f.servers), f.clients...)}
}
