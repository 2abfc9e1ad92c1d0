package world

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud"
)

const (
	// foundedAfter is how long after its cluster a namespace was made, at most.
	foundedAfter = 3 * time.Hour
	// registered is how long after its start a machine is a node.
	registered = 10 * time.Second
	// settled is how long ago nothing has changed any more.
	settled = 2 * time.Minute
	// rescheduled is the chance that a pod is younger than its release: something has evicted it.
	rescheduled = 0.15
)

// chronicle is a history in which things have their places.
type chronicle struct {
	Past
	*cloud.History

	birth       time.Time // of the cluster
	first       time.Time // when it was really made
	moves       []move    // of the cluster, then of the namespaces in the order they were made
	deployments []*appsv1.Deployment
	sets        map[types.UID][]*appsv1.ReplicaSet // by owner
	old         map[types.UID][]*appsv1.ReplicaSet // those of earlier releases, by owner
	pods        map[types.UID][]*v1.Pod            // by owner
	containers  map[string]*container              // by ID
	rollouts    []rollout                          // the last ones
	revisable   []revised                          // StatefulSets and DaemonSets
	revisions   map[types.UID][]*appsv1.ControllerRevision
	customs     []*unstructured.Unstructured
	changed     map[types.UID]changed // what belongs to a custom resource, by its owner
	events      int                   // written so far
}

// move says how far what belongs to a namespace, or was really made after it, is moved into the past.
type move struct {
	namespace string
	from      time.Time
	by        time.Duration
}

// container is a container with its place.
type container struct {
	*cloud.Container
	sandbox *cloud.Sandbox
	machine *cloud.Machine
}

func newChronicle(p Past, h *cloud.History) *chronicle {
	c := &chronicle{
		Past: p, History: h, sets: map[types.UID][]*appsv1.ReplicaSet{}, pods: map[types.UID][]*v1.Pod{},
		old:        map[types.UID][]*appsv1.ReplicaSet{},
		revisions:  map[types.UID][]*appsv1.ControllerRevision{},
		containers: map[string]*container{}, first: p.Now,
	}
	c.birth = p.Now.Add(-Age(p.Seed)).Truncate(time.Second)
	for _, o := range h.Objects {
		if t := o.GetCreationTimestamp().Time; !t.IsZero() && t.Before(c.first) {
			c.first = t
		}
		c.gather(o)
		switch o := o.(type) {
		case *appsv1.Deployment:
			c.deployments = append(c.deployments, o)
		case *appsv1.ReplicaSet:
			if owner := metav1.GetControllerOf(o); owner != nil {
				c.sets[owner.UID] = append(c.sets[owner.UID], o)
			}
		case *v1.Pod:
			var uid types.UID
			if owner := metav1.GetControllerOf(o); owner != nil {
				uid = owner.UID
			}
			c.pods[uid] = append(c.pods[uid], o)
		}
	}
	for _, list := range c.pods {
		slices.SortFunc(list, func(a, b *v1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	}
	for _, m := range h.Nodes {
		sandboxes := map[string]*cloud.Sandbox{}
		for _, s := range m.Sandboxes {
			sandboxes[s.ID] = s
		}
		for _, k := range m.Containers {
			c.containers[k.ID] = &container{k, sandboxes[k.Sandbox], m}
		}
	}
	return c
}

// date gives everything the age of its cluster or of its namespace.
func (c *chronicle) date() {
	c.moves = []move{{"", c.first, c.birth.Sub(c.first)}}
	var founded []*v1.Namespace
	for _, o := range c.Objects {
		if n, ok := o.(*v1.Namespace); ok && !isSystem(n.Name) {
			founded = append(founded, n)
		}
	}
	slices.SortFunc(founded, func(a, b *v1.Namespace) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	at := c.birth
	for _, n := range founded {
		at = between(c.draw("namespace "+n.Name), at.Add(10*time.Minute), at.Add(foundedAfter))
		c.moves = append(c.moves, move{n.Name, n.CreationTimestamp.Time, at.Sub(n.CreationTimestamp.Time)})
	}
	for _, o := range c.Objects {
		namespace := o.GetNamespace()
		if n, ok := o.(*v1.Namespace); ok && !isSystem(n.Name) {
			namespace = n.Name
		}
		shift(o, c.moveOf(namespace, o.GetCreationTimestamp().Time))
	}
	for _, m := range c.Nodes {
		m.Booted = between(c.draw("node "+m.Name), c.birth, c.birth.Add(5*time.Minute))
	}
	for _, o := range c.Objects {
		if n, ok := o.(*v1.Node); ok {
			c.dateNode(n)
		}
	}
}

func isSystem(namespace string) bool {
	switch namespace {
	case "", metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, v1.NamespaceNodeLease:
		return true
	}
	return false
}

// moveOf is how far something is moved that was really made at a moment. What the cluster itself has was
// made with it, and what is in no namespace with the one that was made last before.
func (c *chronicle) moveOf(namespace string, made time.Time) time.Duration {
	by := c.moves[0].by
	for _, m := range c.moves[1:] {
		if m.namespace == namespace || namespace == "" && !made.Before(m.from) {
			by = m.by
		}
	}
	return by
}

// dateNode gives a node the time at which its machine was started.
func (c *chronicle) dateNode(n *v1.Node) {
	for _, m := range c.Nodes {
		if m.Name != n.Name {
			continue
		}
		shift(n, m.Booted.Add(registered).Sub(n.CreationTimestamp.Time))
		for i := range n.Status.Conditions {
			n.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(c.Now.Truncate(time.Second))
		}
	}
}

// settle gives every pod its age, and with it its containers and their logs. Some were restarted since.
func (c *chronicle) settle() {
	for _, o := range slices.Clone(c.Objects) {
		p, ok := o.(*v1.Pod)
		if !ok {
			continue
		}
		born := p.CreationTimestamp.Time
		if r := c.draw("pod " + c.part(p)); !c.steady(p.Namespace) && r.Float64() < rescheduled {
			born = between(r, born, c.Now.Add(-evictedBefore(p)))
		}
		c.movePod(p, born)
		if r := c.draw("restarts of " + c.part(p)); !c.steady(p.Namespace) && r.Float64() < restarted {
			c.restart(p, r)
		}
	}
	c.dateEndpoints()
}

// evictedBefore is how long ago a pod was made at least that took the place of one that was evicted. Telemetry tells of
// who was there before a pod of a Deployment, see gone, and must not reach back to who was before one of a StatefulSet
// or a DaemonSet.
func evictedBefore(p *v1.Pod) time.Duration {
	if owner := metav1.GetControllerOf(p); owner != nil && (owner.Kind == "StatefulSet" || owner.Kind == "DaemonSet") {
		return longAgo
	}
	return settled
}

// part is what a pod is drawn for by. Its name ends by luck, so a pod that has an owner is the first, second, ...
// of those.
func (c *chronicle) part(p *v1.Pod) string {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return p.Namespace + "/" + p.Name
	}
	return fmt.Sprintf("%s/%s/%d", p.Namespace, owner.Name, slices.Index(c.pods[owner.UID], p))
}

// movePod says that a pod was made at a time.
func (c *chronicle) movePod(p *v1.Pod, at time.Time) {
	by := at.Sub(p.CreationTimestamp.Time)
	shift(p, by)
	moved := map[*cloud.Sandbox]bool{}
	statuses := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	for _, s := range statuses {
		k := c.containers[containerID(s.ContainerID)]
		if k == nil {
			continue
		}
		started := startOf(&s)
		if started.IsZero() {
			continue
		}
		// The status tells whole seconds, and is what the runtime must agree with.
		d := started.Sub(k.Started.Truncate(time.Second))
		if k.sandbox != nil && !moved[k.sandbox] {
			moved[k.sandbox] = true
			k.sandbox.Created = k.sandbox.Created.Add(d)
		}
		k.Created, k.Started = k.Created.Add(d), k.Started.Add(d)
		if !k.Finished.IsZero() {
			k.Finished = k.Finished.Add(d)
		}
		moveLog(k.Log, d)
	}
}

// containerID takes the scheme off a container's ID.
func containerID(id string) string {
	for i := range len(id) - 2 {
		if id[i:i+3] == "://" {
			return id[i+3:]
		}
	}
	return id
}

func startOf(s *v1.ContainerStatus) time.Time {
	switch {
	case s.State.Running != nil:
		return s.State.Running.StartedAt.Time
	case s.State.Terminated != nil:
		return s.State.Terminated.StartedAt.Time
	}
	return time.Time{}
}

// renewLeases says that who has a lease has kept it all the time.
func (c *chronicle) renewLeases() {
	made := map[string]metav1.Time{}
	for _, o := range c.Objects {
		if n, ok := o.(*v1.Node); ok {
			made[n.Name] = n.CreationTimestamp
		}
	}
	for _, o := range c.Objects {
		l, ok := o.(*coordination.Lease)
		if !ok {
			continue
		}
		if t, ok := made[l.Name]; ok && l.Namespace == v1.NamespaceNodeLease {
			l.CreationTimestamp = t
		}
		l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(c.Now))
		for i := range l.ManagedFields {
			l.ManagedFields[i].Time = ptr.To(metav1.NewTime(c.Now.Truncate(time.Second)))
		}
	}
}
