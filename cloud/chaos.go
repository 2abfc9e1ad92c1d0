package cloud

import (
	"context"
	"time"
)

// Chaos is an optional power of a Cloud: to disturb pods in ways that no manifest can express. The
// disturbances are named and parametrised as Chaos Mesh's are. Agents can find nothing of them through
// the API but what they do to pods.
type Chaos interface {
	// Disturb starts a disturbance and returns once it has an effect. The effect lasts until stop is called: pods
	// that come to match later are disturbed as well, and what was killed is killed again when it is back. stop
	// undoes what can be undone and returns when that is done; it may be called more than once. Disturb fails if d
	// is invalid or matches no pod now.
	Disturb(ctx context.Context, d Disturbance) (stop func(context.Context) error, err error)
}

// Choosy is an optional power of a Chaos that cannot bring about every disturbance: to say so beforehand.
type Choosy interface {
	// Refuses says why no pod there can be disturbed in this way, or "" if pods can. It goes by what is done, not by
	// which pods are meant, and asks the cluster nothing.
	Refuses(d Disturbance) string
}

// Refusal says why pods cannot be disturbed in a way, or "" if they can. Where c is nil, they cannot in any.
func Refusal(c Chaos, d Disturbance) string {
	if c == nil {
		return "this cluster has no means to disturb pods"
	}
	if c, ok := c.(Choosy); ok {
		return c.Refuses(d)
	}
	return ""
}

// Disturbance says what is done, and to which pods. Exactly one of the pointers is set.
type Disturbance struct {
	Selector Selector
	Schedule Schedule

	Pod     *PodChaos
	Network *NetworkChaos
	Stress  *StressChaos
	IO      *IOChaos
	Kernel  *KernelChaos
}

// Selector chooses pods. Every field that is set must match; at least one is set.
type Selector struct {
	Namespace string
	Labels    map[string]string
	Pod       string // one pod, by name
	Service   string // the pods a Service of the namespace selects
	Node      string // the pods on a node: whoever leaves it is rid of the disturbance
}

// Schedule says when a disturbance has effect. The zero value is: always, in full.
type Schedule struct {
	// Every and For make it periodic: each period Every begins with a disturbance for the time For.
	Every, For time.Duration
	// Ramp makes it gradual: magnitudes (loss, delay, load, size, percent) grow evenly from nothing
	// to what is asked over this time, and stay.
	Ramp time.Duration
}

// PodChaos ends pods or containers.
type PodChaos struct {
	Action PodAction
	// Containers are those that ContainerKill kills; none is all of the pod's.
	Containers []string
}

// PodAction is what happens to a pod.
type PodAction string

const (
	// PodKill deletes the pod without grace, again and again: as soon as its successor runs.
	PodKill PodAction = "pod-kill"
	// PodFailure makes the pod unavailable while it exists: its containers do nothing but wait.
	PodFailure PodAction = "pod-failure"
	// ContainerKill kills containers with SIGKILL, as soon as they run.
	ContainerKill PodAction = "container-kill"
)

// NetworkChaos disturbs the traffic of pods. The magnitudes that are set take effect together.
type NetworkChaos struct {
	Loss      float64       // part of the packets that are lost, 0 to 1
	Delay     time.Duration // of every packet
	Jitter    time.Duration // by which Delay varies either way
	Duplicate float64       // part of the packets that arrive twice, 0 to 1
	Corrupt   float64       // part of the packets that arrive damaged, 0 to 1
	Bandwidth int64         // bytes a second
	Partition bool          // nothing passes

	Direction Direction
	// Target limits the disturbance to traffic with these pods; nil is traffic with anybody.
	Target *Selector
}

// Direction is which traffic is disturbed, seen from the selected pods.
type Direction string

const (
	To   Direction = "to" // what they send; the default
	From Direction = "from"
	Both Direction = "both"
)

// StressChaos makes every container of the pods use resources.
type StressChaos struct {
	CPU    float64 // cores that are kept busy
	Memory int64   // bytes that are held
}

// IOChaos disturbs the files of pods' containers.
type IOChaos struct {
	Path    string        // the files and directories below it; must be absolute. "/" is all
	Methods []string      // "read", "write", "open", "fsync", "rename", ...; none is all
	Errno   string        // what they fail with, such as "EIO"; empty for no failure
	Percent float64       // of the calls that are affected, 0 to 100; 0 means 100
	Latency time.Duration // that every affected call takes longer
}

// KernelChaos makes calls into the kernel fail in pods' containers.
type KernelChaos struct {
	Call    string  // as "connect", "accept", "write", "mmap"
	Errno   string  // what it fails with, such as "ENOMEM"
	Percent float64 // of the calls, 0 to 100; 0 means 100
}
