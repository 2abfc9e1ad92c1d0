package cloud

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/aiopslab/aiopslab/kit/past"
)

// Historian is an optional power of a Cloud: its snapshots can be given another past. No API of
// Kubernetes can: it stamps what it stores itself.
type Historian interface {
	Resetter
	// Rewrite returns a snapshot that tells what edit has made of what s tells. It leaves s as it is.
	Rewrite(s Snapshot, edit func(*History) error) (Snapshot, error)
	// Relive records the cluster as it is, resets it to what edit makes of that, and returns the record. It is
	// Snapshot, Rewrite and Reset, but the cluster is stopped once.
	Relive(ctx context.Context, edit func(*History) error) (Snapshot, error)
	// Mark is to be called when an application that was reset has its usual load: what its programs do from then on
	// is what they did all the time.
	Mark(ctx context.Context) error
	// Recall has the programs continue what they tell of themselves into the past: counters, metrics that were
	// collected, traces, logs.
	Recall(ctx context.Context, p *past.Past) error
}

// Object is a stored object.
type Object interface {
	runtime.Object
	metav1.Object
}

// History is what a snapshot tells of its cluster's past. Everything in it may be changed, and what is
// taken out is gone.
type History struct {
	// Objects are those of the API, each with its kind, but for events, which no snapshot has. Those of
	// Kubernetes' own kinds have their Go types, others are unstructured. New ones are stored as they are, so
	// their status and metadata must be complete.
	Objects []Object
	Nodes   []*Machine
	// Hash is the pod-template-hash that the Deployment controller gives to a template.
	Hash func(*v1.PodTemplateSpec) string
	// HasImage reports whether there is an image of a name that containers could be made of.
	HasImage func(name string) bool
	// Program returns the path of a program that an image finds by its name; "" if there is none. It may be nil.
	Program func(image, name string) string
}

// Machine is a node as its runtime has it.
type Machine struct {
	Name       string
	Booted     time.Time
	Sandboxes  []*Sandbox
	Containers []*Container
}

// Sandbox is a pod as a runtime has it.
type Sandbox struct {
	ID      string
	Created time.Time
}

// Container is a container as a runtime has it. An ID is a pod's containerID without its scheme.
type Container struct {
	ID, Sandbox                string
	Created, Started, Finished time.Time // Finished is zero if it runs
	Log                        []Line
	Restarts                   int    // how often the pod's container was started again before this one ran
	ExitCode                   int32  // of one that has finished
	Reason                     string // why it has, as a status names it
	// Like is, for a container that is added, the ID of one in the same pod that ran the same program after it. It
	// must have finished.
	Like string
}

// Line is a line that a container has written.
type Line struct {
	Time    time.Time
	Stream  string // stdout or stderr
	Partial bool   // it has no end
	Text    string
}
