package kube

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/aiopslab/aiopslab/cloud"
)

// disturbanceLabel tells the objects of a disturbance from those of others.
const disturbanceLabel = "aiopslab.io/disturbance"

// failTime is how long Chaos Mesh may fail at an object: it tries again, and a container may only just have started.
const failTime = 10 * time.Second

// meshing brings about a disturbance through Chaos Mesh. An object of Chaos Mesh's cannot be changed, and it chooses
// its pods once; so each is for one pod, or for one start of a container where its effect ends with that, and has that
// in its name. What is no longer to be is removed, and what is to be is made.
type meshing struct {
	cloud   *Cloud
	spec    cloud.Disturbance
	objects dynamic.ResourceInterface
	id      string
	made    map[string]*charm // by name; each may be there
	asked   bool              // something was made
	effect  bool              // there was one
}

// charm is an object of Chaos Mesh's, and what becomes of it.
type charm struct {
	name string
	pod  types.UID
	once bool // it has effect once, and is over then
	body map[string]any

	since    time.Time // when it was made
	injected bool
	leaving  bool
	failure  string
}

// meshObjects are the kinds of the resources.
var meshObjects = map[string]string{
	podChaos: "PodChaos", networkChaos: "NetworkChaos", stressChaos: "StressChaos", ioChaos: "IOChaos",
}

func newMeshing(c *Cloud, d cloud.Disturbance) *meshing {
	resource, _ := meshKind(d)
	return &meshing{
		cloud: c, spec: d, id: strings.ToLower(rand.Text()), made: map[string]*charm{},
		objects: c.dynamic.Resource(meshVersion.WithResource(resource)).Namespace(quarters(c.run)),
	}
}

// apply implements means.
func (m *meshing) apply(ctx context.Context, pods []v1.Pod, degree float64) (settled bool, err error) {
	if err := m.refresh(ctx); err != nil {
		return false, err
	}
	wanted, err := m.wanted(ctx, pods, degree)
	if err != nil {
		return false, err
	}
	busy := map[types.UID]bool{} // Pods whose last disturbance is not yet undone: two would add up.
	for name, c := range m.made {
		age := time.Since(c.since)
		if !c.leaving && (wanted[name] == nil && !(c.once && !c.injected && age < failTime) ||
			!c.injected && age > injectTime) { // It may fare better when it is made anew.
			if err := m.remove(ctx, c); err != nil {
				return false, err
			}
		}
		busy[c.pod] = busy[c.pod] || c.leaving
	}
	settled = m.effect
	for name, c := range wanted {
		old := m.made[name]
		switch {
		case old == nil && !busy[c.pod]:
			err = firstError(err, m.make(ctx, c))
		case old != nil && !old.injected && old.failure != "" && time.Since(old.since) > failTime:
			err = firstError(err, fmt.Errorf("what Chaos Mesh was asked for fails: %s", old.failure))
		}
		settled = settled && old != nil && old.injected && !old.leaving
	}
	return settled, err
}

// refresh learns what has become of the objects that were made.
func (m *meshing) refresh(ctx context.Context) error {
	there, err := m.list(ctx)
	if err != nil {
		return err
	}
	for name, c := range m.made {
		o := there[name]
		if o == nil {
			delete(m.made, name)
			continue
		}
		c.leaving = o.GetDeletionTimestamp() != nil
		c.injected, c.failure = injected(o), failure(o)
		m.effect = m.effect || c.injected
	}
	return nil
}

// list returns the objects that are there, by their names.
func (m *meshing) list(ctx context.Context) (map[string]*unstructured.Unstructured, error) {
	list, err := m.objects.List(ctx, metav1.ListOptions{LabelSelector: disturbanceLabel + "=" + m.id})
	if err != nil {
		return nil, fmt.Errorf("list what Chaos Mesh is to do: %w", err)
	}
	there := map[string]*unstructured.Unstructured{}
	for _, o := range list.Items {
		there[o.GetName()] = &o
	}
	return there, nil
}

// make makes an object. If it is not known whether that went well, the next refresh tells.
func (m *meshing) make(ctx context.Context, c *charm) error {
	resource, _ := meshKind(m.spec)
	o := &unstructured.Unstructured{Object: map[string]any{"spec": c.body}}
	o.SetGroupVersionKind(schema.GroupVersionKind(meshVersion.WithKind(meshObjects[resource])))
	o.SetName(c.name)
	o.SetLabels(map[string]string{RunLabel: m.cloud.run, disturbanceLabel: m.id})
	c.since = time.Now()
	m.made[c.name], m.asked = c, true
	// A field that this Chaos Mesh does not know would be left out silently otherwise.
	_, err := m.objects.Create(ctx, o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("ask Chaos Mesh for it: %w", err)
	}
	return nil
}

func (m *meshing) remove(ctx context.Context, c *charm) error {
	c.leaving = true
	if err := m.objects.Delete(ctx, c.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("have Chaos Mesh undo it: %w", err)
	}
	return nil
}

// end implements means. An object is gone when Chaos Mesh has undone it: it has a finalizer until then.
func (m *meshing) end(ctx context.Context) error {
	for left := "what it was asked for"; m.asked; {
		there, err := m.list(ctx)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: Chaos Mesh has not let go of %s in namespace %s; look at its controller",
				context.Cause(ctx), left, quarters(m.cloud.run))
		case err != nil || len(there) == 0:
			return err
		}
		for name, o := range there {
			left = name
			if o.GetDeletionTimestamp() == nil {
				if err := m.remove(ctx, &charm{name: name}); err != nil {
					return err
				}
			}
		}
		select {
		case <-time.After(pollTime):
		case <-ctx.Done():
		}
	}
	return nil
}

// pending implements means. What older versions do not tell in an object is in events about it.
func (m *meshing) pending(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	for _, c := range m.made {
		if c.failure != "" {
			return ": Chaos Mesh fails at it: " + c.failure
		}
	}
	events, err := m.cloud.client.CoreV1().Events(quarters(m.cloud.run)).List(ctx, metav1.ListOptions{})
	if err == nil {
		for _, e := range events.Items {
			if m.made[e.InvolvedObject.Name] != nil && e.Reason == "Failed" {
				return ": Chaos Mesh says: " + e.Message
			}
		}
	}
	if len(m.made) == 0 {
		return ": no pod that matches runs"
	}
	return ": Chaos Mesh does nothing about it; look at its controller"
}

// wanted are the objects that there should be.
func (m *meshing) wanted(ctx context.Context, pods []v1.Pod, degree float64) (map[string]*charm, error) {
	all := map[string]*charm{}
	if degree == 0 {
		return all, nil
	}
	target, err := m.target(ctx)
	if err != nil || target != nil && len(target) == 0 {
		return all, err
	}
	var refused error
	for _, p := range pods {
		if p.Status.Phase != v1.PodRunning {
			continue
		}
		list, err := charms(m.spec, &p, degree, target)
		refused = firstError(refused, err)
		for _, c := range list {
			b, err := json.Marshal([]any{m.id, p.UID, c.name, c.body})
			if err != nil {
				return nil, err
			}
			c.pod, c.name = p.UID, fmt.Sprintf("d%x", sha256.Sum256(b))[:10]
			all[c.name] = c
		}
	}
	if len(all) == 0 && refused != nil {
		return nil, refused
	}
	return all, nil
}

// target is the pods that traffic is disturbed with, as a selector of Chaos Mesh's has them, or nil for all.
func (m *meshing) target(ctx context.Context) (map[string]any, error) {
	if m.spec.Network == nil || m.spec.Network.Target == nil {
		return nil, nil
	}
	pods, err := m.cloud.selected(ctx, *m.spec.Network.Target)
	if err != nil {
		return nil, fmt.Errorf("network.target: %w", err)
	}
	names := map[string]any{}
	for _, p := range pods {
		if p.Status.PodIP != "" {
			list, _ := names[p.Namespace].([]any)
			names[p.Namespace] = append(list, p.Name)
		}
	}
	return names, nil
}

// injected reports whether an object has effect. Before it has chosen its pod, Chaos Mesh says of it that it is
// injected wherever it was to be.
func injected(o *unstructured.Unstructured) bool {
	return condition(o, "Selected") && condition(o, "AllInjected")
}

func condition(o *unstructured.Unstructured, name string) bool {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		if c, ok := c.(map[string]any); ok && c["type"] == name {
			return c["status"] == "True"
		}
	}
	return false
}

// failure is what went wrong the last time that Chaos Mesh tried, or "".
func failure(o *unstructured.Unstructured) (message string) {
	records, _, _ := unstructured.NestedSlice(o.Object, "status", "experiment", "containerRecords")
	for _, r := range records {
		r, _ := r.(map[string]any)
		events, _, _ := unstructured.NestedSlice(r, "events")
		if len(events) == 0 {
			continue
		}
		if last, _ := events[len(events)-1].(map[string]any); last["type"] == "Failed" {
			message = fmt.Sprint(last["message"])
		}
	}
	return strings.Join(strings.Fields(message), " ")
}
