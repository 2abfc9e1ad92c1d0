// Package cloud is what the rest of the lab sees of a cluster: the Kubernetes API and a way to dial
// into its network. Package embedded is a cluster inside the process; others run on what a
// kubeconfig points to. Nothing above this package knows which of them it has.
//
//	c, err := embedded.Start(ctx, embedded.Options{Images: images})
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	client := kubernetes.NewForConfigOrDie(c.RESTConfig())
//	conn, err := c.Dial(ctx, "tcp", "frontend.shop.svc.cluster.local:80")
package cloud

import (
	"context"
	"io"
	"net"
	"net/http"

	"k8s.io/client-go/rest"
)

// Cloud is a running cluster. Its methods are safe for concurrent use.
type Cloud interface {
	// RESTConfig returns a new configuration with the lab's own, unlimited rights. Agents never get
	// it.
	RESTConfig() *rest.Config
	// Dial connects to an address in the cluster's network: of a pod, a service or a node, or a
	// name that the cluster's DNS knows. It blocks until it is connected or ctx ends.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Close releases everything. It may be called more than once.
	Close() error
}

// Resetter is an optional power of a Cloud: to go back to how it was.
type Resetter interface {
	// Snapshot records the whole cluster: the API's objects, the containers and their volumes.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Reset brings the cluster back to a snapshot that it took, or was started from. Whatever
	// happened since is undone. Nobody may write to the API meanwhile.
	Reset(ctx context.Context, s Snapshot) error
}

// Librarian is an optional power of a Cloud: it knows the images of the lab.
type Librarian interface {
	// HasImage reports whether containers can be made of an image; false if that is not known.
	HasImage(name string) bool
	// Program returns the path of a program that an image finds by its name; "" if that is not known.
	Program(image, name string) string
}

// Differ is an optional power of a Cloud: to prove that a reset has left nothing of what was before.
type Differ interface {
	Resetter
	// Diff names which of the API's objects differ from a snapshot; none if all are as they were. What changes by
	// itself is left out: events, and all of leases but which there are that were not there.
	Diff(ctx context.Context, s Snapshot) ([]string, error)
}

// Snapshot is a recorded cluster. WriteTo saves it for another process to start from; it holds the
// cluster's keys, so keep it private.
type Snapshot interface {
	io.WriterTo
}

// Keeper is an optional power of a Cloud: to keep what a container has, and to put it back.
type Keeper interface {
	// Keep records a running container before a command is run in it: its files, its volumes, and the data that its
	// program has. It runs on, and nothing else is touched. The error says in a line why it cannot be kept: it is too
	// large, or shares what it can write to with others.
	Keep(ctx context.Context, c Command) (Kept, error)
}

// Command is a command that is about to be run in a container.
type Command struct {
	Namespace, Pod string
	Container      string // may be empty if the pod has one
	Args           []string
}

// Kept is a container as it was. It holds memory until it is forgotten.
type Kept interface {
	// Name is that of the container, its pod and their namespace. ID tells it from one of the same name in another pod
	// of the same name.
	Name() string
	ID() string
	// Size is about how many bytes it holds.
	Size() int64
	// Elsewhere is where the command has connected to so far, outside of its pod: what it said there cannot be taken
	// back.
	Elsewhere() []string
	// PutBack starts the container again, and no other, with what it had. Disturbances go on. It says what was done.
	// It may be called once.
	PutBack(ctx context.Context) (done string, err error)
}

// Seeder is an optional power of a Cloud: it draws everything that is left to chance from a seed.
type Seeder interface {
	// Seed makes all that the cluster draws begin anew: which packets are lost, which endpoint a connection gets,
	// which calls fail. With the same seed, things of the same name get the same draws. A Reset begins anew with
	// the last seed.
	Seed(seed uint64)
}

// Director is an optional power of a Cloud: a way to read and write the API that nothing in the cluster can
// redirect, watch, change or refuse. On the usual way objects in the cluster can do that: an APIService says who
// answers for an API, and webhooks and policies decide what may be written.
type Director interface {
	// DirectConfig is a RESTConfig for that way. Aggregated APIs cannot be reached with it.
	DirectConfig() *rest.Config
}

// DirectConfig returns a configuration that nothing in the cluster can redirect or, if the cloud has none, its
// usual one.
func DirectConfig(c Cloud) *rest.Config {
	if d, ok := c.(Director); ok {
		return d.DirectConfig()
	}
	return c.RESTConfig()
}

// Reviser is an optional power of a Cloud: it knows how far its store is without a request to the API.
type Reviser interface {
	// Revision is the resource version that the last write has made, of whatever object. Every write that somebody
	// was told of before is counted. It is cheap, and safe for concurrent use.
	Revision() int64
}

// Revision returns how to ask how far a cloud's store is, or nil if that cannot be known.
func Revision(c Cloud) func() int64 {
	if r, ok := c.(Reviser); ok {
		return r.Revision
	}
	return nil
}

// Shared is an optional power of a Cloud: it is somebody's, and the lab is a guest in it.
type Shared interface {
	// Tenancy says what the lab may use there.
	Tenancy() Tenancy
}

// Tenancy is what is the lab's in a cluster that others use as well.
type Tenancy struct {
	// Run tells what is made for one run from what is made for another. It can be a part of names.
	Run string
	// Namespaces are those that the lab has made for an application and who looks after it. Nothing in others is
	// touched or reached.
	Namespaces []string
	// Suffix stands behind the usual names of the namespaces, where other runs have those. See [Tenancy.Name].
	Suffix string
	// Labels are those of everything that the lab makes outside of them.
	Labels map[string]string
	// Load is the namespace in which the load generator runs as a pod; empty if the load comes from where the lab is.
	// The lab has made it, but it is not among Namespaces: agents have no rights in it, and no telemetry is about it.
	Load string
}

// Name is what the namespace that usually has the given name is called there. In a cluster of the lab's own, where
// there is no tenancy, it is called that.
func (t *Tenancy) Name(usual string) string {
	if t == nil {
		return usual
	}
	return usual + t.Suffix
}

// TenancyOf returns what the lab may use of a cloud, or nil if all of it is the lab's.
func TenancyOf(c Cloud) *Tenancy {
	s, ok := c.(Shared)
	if !ok {
		return nil
	}
	t := s.Tenancy()
	return &t
}

// PodDialer is an optional power of a Cloud: to connect to what listens on the loopback interface of a pod. Only the
// lab itself does so; agents dial by Dial.
type PodDialer interface {
	// DialPod blocks until it is connected or ctx ends.
	DialPod(ctx context.Context, namespace, pod string, port int) (net.Conn, error)
}

// Gate answers the requests that reach the cluster's APIs over a wire: from pods, by Dial, or from
// the machine that the cloud runs on.
type Gate struct {
	// API answers instead of the API server. It may pass requests on by RESTConfig.
	API http.Handler
	// Kubelet answers before a kubelet, except for the API server's own requests.
	Kubelet func(kubelet http.Handler) http.Handler
}

// Gated is an optional power of a Cloud: to have a gate.
type Gated interface {
	// SetGate puts up a gate instead of the one there is; nil removes it. It is in effect for every
	// request that begins afterwards.
	SetGate(g *Gate)
}
