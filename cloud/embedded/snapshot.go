package embedded

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded/controlplane"
	"github.com/aiopslab/aiopslab/cloud/embedded/node"
)

const (
	snapshotMagic = "aiopslab snapshot 3\n"
	// servePatience is how long a reset waits for restored programs to listen again.
	servePatience = 5 * time.Second
)

// Snapshot is a recorded cluster. It is not changed by what becomes of the cluster.
type Snapshot struct {
	Version string // of Kubernetes
	PKI     controlplane.PKI
	State   controlplane.State
	Nodes   []node.State
	// Leases are who held which leases, if the snapshot was not rewritten: then they are in the state, with their age.
	// A cluster that is started from a snapshot has them only from there.
	Leases controlplane.State
}

var _ cloud.Snapshot = (*Snapshot)(nil)

// whole is the state with the leases.
func (s *Snapshot) whole() controlplane.State {
	all := controlplane.State{}
	maps.Copy(all, s.Leases)
	maps.Copy(all, s.State)
	return all
}

// WriteTo saves the snapshot.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	n := &counter{w: w}
	if _, err := io.WriteString(n, snapshotMagic); err != nil {
		return n.n, err
	}
	z, err := gzip.NewWriterLevel(n, gzip.BestSpeed)
	if err != nil {
		return n.n, err
	}
	if err := gob.NewEncoder(z).Encode(s); err != nil {
		return n.n, fmt.Errorf("save snapshot: %w", err)
	}
	return n.n, z.Close()
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// ReadSnapshot reads a snapshot that WriteTo saved.
func ReadSnapshot(r io.Reader) (*Snapshot, error) {
	b := bufio.NewReader(r)
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(b, magic); err != nil || string(magic) != snapshotMagic {
		return nil, errors.New("this is not a snapshot that this version of aiopslab can read")
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, fmt.Errorf("the snapshot is damaged: %w", err)
	}
	s := &Snapshot{}
	err = gob.NewDecoder(z).Decode(s)
	if err == nil {
		_, err = io.Copy(io.Discard, z) // Gets to the checksum.
	}
	if err != nil {
		return nil, fmt.Errorf("the snapshot is damaged: %w", err)
	}
	if s.Version != controlplane.Version {
		return nil, fmt.Errorf("the snapshot is of Kubernetes %s, this is %s", s.Version, controlplane.Version)
	}
	return s, nil
}

// Snapshot implements cloud.Resetter. The cluster's loops pause meanwhile; its containers do not.
func (c *Cloud) Snapshot(ctx context.Context) (cloud.Snapshot, error) {
	if err := c.addons.wait(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopLoops()
	s, err := c.record(ctx)
	if serr := c.startLoops(ctx, nil); err == nil {
		err = serr
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// record records the cluster, whose loops are stopped.
func (c *Cloud) record(ctx context.Context) (s *Snapshot, err error) {
	s = &Snapshot{Version: controlplane.Version, PKI: *c.pki}
	if s.State, s.Leases, err = c.plane.State(ctx); err == nil {
		s.Nodes, err = c.fleet.Save()
	}
	return s, err
}

// Reset implements cloud.Resetter: disturbances end; loops and programs stop, so that nothing reacts
// to what is half restored; the store is rewritten and the nodes' disks and containers are replaced;
// loops start and find everything as it was. What is drawn begins anew.
func (c *Cloud) Reset(ctx context.Context, s cloud.Snapshot) error {
	snap, ok := s.(*Snapshot)
	if !ok {
		return notOurs(s)
	}
	if !bytes.Equal(snap.PKI.CACert, c.pki.CACert) {
		return errors.New("the snapshot is of another cluster")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.collector.hurry() // Until Recall, as a rule.
	c.chaos.StopAll()
	c.stopLoops()
	return c.restore(ctx, snap)
}

// restore brings the cluster, whose loops are stopped, to a snapshot, and starts the loops.
func (c *Cloud) restore(ctx context.Context, snap *Snapshot) error {
	c.fleet.Halt() // There may be operators among the programs, who would write to the API.
	if err := c.plane.Restore(ctx, snap.whole()); err != nil {
		return err
	}
	if err := c.startLoops(ctx, snap); err != nil {
		return err
	}
	if err := c.awaitPrograms(ctx, snap); err != nil {
		return err
	}
	c.network.Seed(c.seed)
	return nil
}

// awaitPrograms returns when restored programs serve again what they did.
func (c *Cloud) awaitPrograms(ctx context.Context, s *Snapshot) error {
	err := c.fleet.WaitServing(ctx, servePatience)
	c.fleet.Restored()
	if err != nil {
		return err
	}
	return c.plane.FinishRestore(ctx, s.State)
}

var _ cloud.Differ = (*Cloud)(nil)

// Diff implements cloud.Differ: it names keys of the store.
func (c *Cloud) Diff(ctx context.Context, s cloud.Snapshot) ([]string, error) {
	snap, ok := s.(*Snapshot)
	if !ok {
		return nil, notOurs(s)
	}
	now, leases, err := c.plane.State(ctx)
	if err != nil {
		return nil, err
	}
	maps.Copy(now, leases)
	return now.Diff(snap.whole()), nil
}

// notOurs is the error of a snapshot that another cloud has taken.
func notOurs(s cloud.Snapshot) error { return fmt.Errorf("a %T is not a snapshot of this cloud", s) }
