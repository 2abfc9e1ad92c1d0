package cli

import (
	"context"
	"io"
	"log/slog"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/cloud/embedded/controlplane"
	"github.com/aiopslab/aiopslab/internal/builtin"
)

// What kind of cluster this program starts when none is there is said here, and nowhere else in this package. Others
// know a newCluster.

const (
	usualNodes        = embedded.DefaultNodes
	mostNodes         = embedded.MaxNodes
	kubernetesVersion = controlplane.Version
)

// newCluster is a cluster that this program has started.
type newCluster interface {
	cloud.Cloud
	cloud.Resetter
	// WaitReady waits until DNS and metrics are there.
	WaitReady(ctx context.Context) error
	// Settle gives back what only the start has needed.
	Settle()
	// Done is closed when the cluster has broken down, and Err says why.
	Done() <-chan struct{}
	Err() error
	// Dir is its own directory, and Address where its API is served.
	Dir() string
	Address() string
	Kubeconfig(context string) ([]byte, error)
}

var _ newCluster = (*embedded.Cloud)(nil)

// wish is a cluster that is to be started.
type wish struct {
	nodes    int
	listen   string // where the API is served on the host
	inward   bool   // the API is served in the cluster's network alone
	dir      string
	from     *savedCluster // nil for a new one
	progress func(step string)
	log      *slog.Logger
}

// savedCluster is a snapshot that a cluster can be started from.
type savedCluster struct{ *embedded.Snapshot }

// readSaved reads what the snapshot of a cluster has written.
func readSaved(r io.Reader) (*savedCluster, error) {
	s, err := embedded.ReadSnapshot(r)
	if err != nil {
		return nil, err
	}
	return &savedCluster{s}, nil
}

// nodes is how many the cluster has.
func (c *savedCluster) nodes() int { return len(c.Nodes) }

// snapshot is what a cluster is reset to.
func (c *savedCluster) snapshot() cloud.Snapshot { return c.Snapshot }

// rewritten is the cluster with another history.
func (c *savedCluster) rewritten(s *State, edit func(*cloud.History) error) (*savedCluster, error) {
	lived, err := c.Rewrite(s.Parts.AllImages(), edit)
	if err != nil {
		return nil, err
	}
	return &savedCluster{lived}, nil
}

// startNew starts a cluster.
func startNew(ctx context.Context, s *State, w wish) (newCluster, error) {
	o := embedded.Options{
		Images: s.Parts.AllImages(), Commands: builtin.Commands(), Nodes: w.nodes, Listen: w.listen, Inward: w.inward,
		Dir: w.dir, Progress: w.progress, Log: w.log,
	}
	if w.from != nil {
		o.Snapshot = w.from.Snapshot
	}
	c, err := embedded.Start(ctx, o)
	if err != nil {
		return nil, err // Not a nil of its own type.
	}
	return c, nil
}
