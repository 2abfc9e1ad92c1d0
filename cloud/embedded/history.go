package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/kubernetes/pkg/controller"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded/controlplane"
	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/node"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

var (
	stored = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	// storedMagic begins what is stored as protobuf. The rest is JSON.
	storedMagic = []byte("k8s\x00")
)

var (
	_ cloud.Historian = (*Cloud)(nil)
	_ cloud.Librarian = (*Cloud)(nil)
)

// Rewrite implements cloud.Historian.
func (c *Cloud) Rewrite(s cloud.Snapshot, edit func(*cloud.History) error) (cloud.Snapshot, error) {
	snap, ok := s.(*Snapshot)
	if !ok {
		return nil, notOurs(s)
	}
	return snap.Rewrite(c.opts.Images, edit)
}

// Relive implements cloud.Historian.
func (c *Cloud) Relive(ctx context.Context, edit func(*cloud.History) error) (cloud.Snapshot, error) {
	if err := c.addons.wait(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.collector.hurry()
	c.chaos.StopAll()
	c.stopLoops()
	made, err := c.record(ctx)
	var lived *Snapshot
	if err == nil {
		lived, err = made.Rewrite(c.opts.Images, edit)
	}
	if err != nil {
		return nil, errors.Join(err, c.startLoops(ctx, nil))
	}
	return made, c.restore(ctx, lived)
}

// HasImage implements cloud.Librarian.
func (c *Cloud) HasImage(name string) bool { return c.opts.Images.Has(name) }

// Program implements cloud.Librarian.
func (c *Cloud) Program(image, name string) string { return c.opts.Images.Program(image, name) }

// Mark implements cloud.Historian.
func (c *Cloud) Mark(ctx context.Context) error { return c.fleet.Mark(ctx) }

// Recall implements cloud.Historian.
func (c *Cloud) Recall(ctx context.Context, p *past.Past) error {
	defer c.collector.rest()
	return c.fleet.Recall(ctx, p)
}

// Rewrite returns a snapshot that tells what edit has made of what s tells, in a cluster that has the given
// images.
func (s *Snapshot) Rewrite(images *kit.Registry, edit func(*cloud.History) error) (*Snapshot, error) {
	h := &cloud.History{
		Hash:     func(t *v1.PodTemplateSpec) string { return controller.ComputeHash(t, nil) },
		HasImage: images.Has, Program: images.Program,
	}
	out := *s
	out.State, out.Leases = controlplane.State{}, nil
	keys, all := map[cloud.Object]string{}, s.whole()
	for _, key := range slices.Sorted(maps.Keys(all)) { // Whoever draws meets them in one order.
		o, err := decodeStored(all[key])
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", key, err)
		}
		if o == nil { // It is of no kind that has a past.
			out.State[key] = all[key]
			continue
		}
		keys[o] = key
		h.Objects = append(h.Objects, o)
	}
	h.Nodes = machines(s.Nodes)
	err := edit(h)
	if err != nil {
		return nil, err
	}
	for _, o := range h.Objects {
		key, ok := keys[o]
		if !ok {
			key = controlplane.Key(o)
		}
		if out.State[key], err = encodeStored(o); err != nil {
			return nil, fmt.Errorf("write %s: %w", key, err)
		}
	}
	out.Nodes, err = withMachines(s.Nodes, h.Nodes)
	return &out, err
}

// decodeStored returns a stored object, or nil if it is none whose Go type is known.
func decodeStored(b []byte) (cloud.Object, error) {
	if !bytes.HasPrefix(b, storedMagic) {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(b, &u.Object); err != nil || u.Object["metadata"] == nil {
			return nil, err
		}
		return u, nil
	}
	o, gvk, err := stored.Decode(b, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	o.GetObjectKind().SetGroupVersionKind(*gvk)
	object, ok := o.(cloud.Object)
	if !ok {
		return nil, nil
	}
	return object, nil
}

func encodeStored(o cloud.Object) ([]byte, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return json.Marshal(u.Object)
	}
	if o.GetObjectKind().GroupVersionKind().Empty() {
		return nil, errors.New("it has no kind")
	}
	var b bytes.Buffer
	err := stored.Encode(o, &b)
	return b.Bytes(), err
}

// machines returns what nodes tell of their past.
func machines(states []node.State) (list []*cloud.Machine) {
	for _, s := range states {
		m := &cloud.Machine{Name: s.Name, Booted: s.Runtime.Booted}
		for _, b := range s.Runtime.Sandboxes {
			m.Sandboxes = append(m.Sandboxes, &cloud.Sandbox{ID: b.ID, Created: b.Created})
		}
		for _, c := range s.Runtime.Containers {
			m.Containers = append(m.Containers, &cloud.Container{
				ID: c.ID, Sandbox: c.Sandbox, Created: c.Created, Started: c.Started, Finished: c.Finished,
				Log: cri.ParseLog(c.Log), Restarts: c.Restarts(), ExitCode: c.ExitCode, Reason: c.Reason,
			})
		}
		list = append(list, m)
	}
	return list
}

// withMachines returns the nodes with another past.
func withMachines(states []node.State, edited []*cloud.Machine) ([]node.State, error) {
	byName := map[string]*cloud.Machine{}
	for _, m := range edited {
		byName[m.Name] = m
	}
	states = slices.Clone(states)
	for i := range states {
		s := &states[i]
		m := byName[s.Name]
		if m == nil {
			return nil, fmt.Errorf("the node %s is gone", s.Name)
		}
		s.Runtime.Sandboxes = slices.Clone(s.Runtime.Sandboxes)
		s.Runtime.Containers = slices.Clone(s.Runtime.Containers)
		s.Disk = s.Disk.Clone(nil)
		if err := age(s, m); err != nil {
			return nil, fmt.Errorf("the node %s: %w", s.Name, err)
		}
		if err := addEnded(s, m); err != nil {
			return nil, fmt.Errorf("the node %s: %w", s.Name, err)
		}
	}
	return states, nil
}

// addEnded adds the containers that ran before others, and have ended.
func addEnded(s *node.State, m *cloud.Machine) error {
	for _, e := range m.Containers {
		if e.Like == "" {
			continue
		}
		k := slices.IndexFunc(s.Runtime.Containers, func(c cri.ContainerState) bool { return c.ID == e.Like })
		if k < 0 || e.Finished.IsZero() {
			return fmt.Errorf("no container can be like %q and have ended at %v", e.Like, e.Finished)
		}
		c := s.Runtime.Containers[k]
		// A node keeps one that has ended, the last. If this one was started again already, that is not the last any
		// more.
		s.Runtime.Containers = slices.DeleteFunc(s.Runtime.Containers, func(o cri.ContainerState) bool {
			return o.State == runtimeapi.ContainerState_CONTAINER_EXITED && o.Sandbox == c.Sandbox &&
				o.Name() == c.Name()
		})
		c.ID, c.Created, c.Started, c.Finished, c.Log = e.ID, e.Created, e.Started, e.Finished, cri.FormatLog(e.Log)
		c.State, c.ExitCode, c.Reason, c.Message = runtimeapi.ContainerState_CONTAINER_EXITED, e.ExitCode, e.Reason, ""
		if err := c.SetRestarts(e.Restarts); err != nil {
			return err
		}
		s.Runtime.Containers = append(s.Runtime.Containers, c)
	}
	return nil
}

// age gives a node another past. Its files are as old as it is, those of a pod as old as the pod.
func age(s *node.State, m *cloud.Machine) error {
	all := m.Booted.Sub(s.Runtime.Booted)
	s.Runtime.Booted = m.Booted
	s.Disk.Age("/", all)
	for i := range s.Runtime.Sandboxes {
		b := &s.Runtime.Sandboxes[i]
		k := slices.IndexFunc(m.Sandboxes, func(e *cloud.Sandbox) bool { return e.ID == b.ID })
		if k < 0 {
			continue
		}
		by := m.Sandboxes[k].Created.Sub(b.Created)
		b.Created = b.Created.Add(by)
		for _, dir := range b.Dirs() {
			s.Disk.Age(dir, by-all)
		}
	}
	for i := range s.Runtime.Containers {
		c := &s.Runtime.Containers[i]
		k := slices.IndexFunc(m.Containers, func(e *cloud.Container) bool { return e.ID == c.ID })
		if k < 0 {
			continue
		}
		e := m.Containers[k]
		s.Disk.Age(c.Dir(), e.Created.Sub(c.Created)-all)
		c.Created, c.Started, c.Finished = e.Created, e.Started, e.Finished
		c.Log = cri.FormatLog(e.Log)
		if e.Restarts != c.Restarts() {
			if err := c.SetRestarts(e.Restarts); err != nil {
				return err
			}
		}
	}
	return nil
}
