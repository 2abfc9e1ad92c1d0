package embedded

import (
	"errors"
	"fmt"
	"log/slog"

	"k8s.io/utils/clock"

	"github.com/aiopslab/aiopslab/cloud/embedded/controlplane"
	"github.com/aiopslab/aiopslab/kit"
)

// Defaults of Options.
const (
	DefaultNodes  = 3
	DefaultCores  = 8
	DefaultMemory = 32 << 30
	DefaultDisk   = 100 << 30
	MaxNodes      = 100
)

// Options say what kind of cluster to start. Only Images is required.
type Options struct {
	Images *kit.Registry // what containers can be made of
	// Commands are what the nodes themselves have in /usr/bin, by name: what one can run on a node, as
	// with kubectl debug node and chroot.
	Commands map[string]kit.Program

	Nodes  int   // how many; as many as the snapshot has, or DefaultNodes
	Cores  int   // of each node; DefaultCores
	Memory int64 // of each node, in bytes; DefaultMemory
	Disk   int64 // of each node, in bytes; DefaultDisk

	Listen   string    // where the API is served on the host; any port of 127.0.0.1 by default
	Inward   bool      // the API is served in the cluster's network alone, and not on the host
	Dir      string    // the cluster's own, removed by Close; a new temporary directory by default
	Snapshot *Snapshot // what to start from; a new cluster by default

	Clock    clock.WithTicker    // paces pods (back-off, probes); the real one by default
	Timing   controlplane.Timing // of the controllers
	Progress func(step string)   // is told what is being done
	Log      *slog.Logger        // is told what Kubernetes and etcd log, at level debug; may be nil
}

func (o *Options) complete() error {
	if o.Images == nil {
		return errors.New("no images are registered")
	}
	if s := o.Snapshot; s != nil && o.Nodes == 0 {
		o.Nodes = len(s.Nodes)
	} else if s != nil && o.Nodes != len(s.Nodes) {
		return fmt.Errorf("the snapshot has %d nodes, not %d", len(s.Nodes), o.Nodes)
	}
	for _, d := range []struct {
		field *int
		value int
	}{{&o.Nodes, DefaultNodes}, {&o.Cores, DefaultCores}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	for _, d := range []struct {
		field *int64
		value int64
	}{{&o.Memory, DefaultMemory}, {&o.Disk, DefaultDisk}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.Nodes < 1 || o.Nodes > MaxNodes {
		return fmt.Errorf("a cluster has 1 to %d nodes, not %d", MaxNodes, o.Nodes)
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return nil
}
