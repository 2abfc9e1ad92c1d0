package cloud

import "context"

// Facility is something that only some faults need of a cluster.
type Facility int

const (
	// Policies is that NetworkPolicies have an effect.
	Policies Facility = iota
	// Volumes is to change the volumes that the application's claims are bound to, and to have the agent change whose
	// they are. See [Lender].
	Volumes
)

// Host is an optional power of a Cloud that is somebody's: to know what else the lab can have there.
type Host interface {
	Shared
	// Missing says why something cannot be had, or "" if it can. It asks nobody.
	Missing(f Facility) string
}

// Missing says why something cannot be had of a cloud, or "" if it can, as in any cluster of the lab's own.
func Missing(c Cloud, f Facility) string {
	if h, ok := c.(Host); ok {
		return h.Missing(f)
	}
	if TenancyOf(c) != nil {
		return "this cluster is not the lab's alone"
	}
	return ""
}

// Lender is an optional power of a Cloud that is somebody's: to have volumes changed there which the lab has not made.
type Lender interface {
	// Lend notes how volumes are that belong to claims of the run, before the lab changes their reclaim policies. When
	// the run is over, however it ends, they get the policies back that they have now. It may be called again, and adds
	// what is not noted yet.
	Lend(ctx context.Context, volumes ...string) error
}
