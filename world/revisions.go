package world

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/kit/past"
)

// longAgo is how long ago a workload was released at least whose pods keep their names: telemetry tells of who was
// there before a pod by another name, and so must not reach back to it.
const longAgo = past.Window + time.Hour

// revised is a workload whose releases are ControllerRevisions: a StatefulSet or a DaemonSet.
type revised struct {
	cloud.Object
	kind     string
	template *v1.PodTemplateSpec
	kept     int    // how many earlier releases are kept
	observed *int64 // the generation that its controller has seen
	// hash is how the name of the ControllerRevision of a template ends.
	hash func(data []byte, t *v1.PodTemplateSpec) string
}

// changed is how often what belongs to something was released anew, and the last time.
type changed struct {
	times int
	last  time.Time
	sets  []*appsv1.StatefulSet
}

func (c *chronicle) statefulSet(s *appsv1.StatefulSet) revised {
	hash := func(data []byte, _ *v1.PodTemplateSpec) string {
		f := fnv.New32()
		_, _ = f.Write(data) // It never fails.
		_, _ = f.Write([]byte(strconv.Itoa(int(ptr.Deref(s.Status.CollisionCount, 0)))))
		return rand.SafeEncodeString(fmt.Sprint(f.Sum32()))
	}
	return revised{
		s, "statefulset", &s.Spec.Template, keptOf(s.Spec.RevisionHistoryLimit), &s.Status.ObservedGeneration, hash,
	}
}

func (c *chronicle) daemonSet(s *appsv1.DaemonSet) revised {
	hash := func(_ []byte, t *v1.PodTemplateSpec) string { return c.Hash(t) }
	return revised{
		s, "daemonset", &s.Spec.Template, keptOf(s.Spec.RevisionHistoryLimit), &s.Status.ObservedGeneration, hash,
	}
}

// keptOf is how many earlier releases a controller keeps, ten if nobody says.
func keptOf(limit *int32) int { return int(ptr.Deref(limit, 10)) }

// revise tells how a StatefulSet or a DaemonSet came to be what it is, as release does of a Deployment. Nothing
// releases it in the present, so it was released once more.
func (c *chronicle) revise(s revised) error {
	list := c.revisions[s.GetUID()]
	if c.steady(s.GetNamespace()) || len(list) != 1 || s.kept == 0 {
		return nil
	}
	current := list[0]
	r := c.draw(s.kind + " " + s.GetNamespace() + "/" + s.GetName())
	times := c.releaseTimes(r, 2+r.IntN(maxReleases), s.GetCreationTimestamp().Time, longAgo)
	back := c.earlier(r, s.GetNamespace())
	times = times[max(0, len(times)-s.kept-1):]
	times[0] = s.GetCreationTimestamp().Time
	names := map[string]bool{current.Name: true}
	var old []*appsv1.ControllerRevision
	template := s.template.DeepCopy()
	for i := len(times) - 2; i >= 0; i-- {
		if err := back(template); err != nil {
			return err
		}
		rev, err := c.oldRevision(s, current, template, i+1, times[i])
		if err != nil {
			return err
		}
		if names[rev.Name] { // Two releases would be one.
			return nil
		}
		names[rev.Name], old = true, append(old, rev)
	}
	for _, rev := range old {
		c.Objects = append(c.Objects, rev)
	}
	last := times[len(times)-1]
	for _, p := range c.pods[s.GetUID()] {
		c.movePod(p, last.Add(p.CreationTimestamp.Sub(current.CreationTimestamp.Time)))
	}
	c.atRelease(s, current, len(times), last)
	return nil
}

// atRelease says that a workload is at its nth release, of a time.
func (c *chronicle) atRelease(s revised, current *appsv1.ControllerRevision, n int, at time.Time) {
	current.Revision = int64(n)
	by := at.Sub(current.CreationTimestamp.Time)
	shift(current, by)
	s.SetGeneration(s.GetGeneration() + int64(n-1))
	*s.observed = s.GetGeneration()
	fields := s.GetManagedFields()
	for i := range fields {
		if fields[i].Time != nil {
			fields[i].Time.Time = fields[i].Time.Add(by)
		}
	}
	s.SetManagedFields(fields)
	if d, ok := s.Object.(*appsv1.DaemonSet); ok {
		c.countTemplates(d, n)
	}
	owner := metav1.GetControllerOf(s)
	if owner == nil {
		return
	}
	of := c.changed[owner.UID]
	of.times += n - 1
	if at.After(of.last) {
		of.last = at
	}
	if set, ok := s.Object.(*appsv1.StatefulSet); ok {
		of.sets = append(of.sets, set)
	}
	c.changed[owner.UID] = of
}

// countTemplates notes how often the template of a DaemonSet was changed, as its controller does.
func (c *chronicle) countTemplates(d *appsv1.DaemonSet, n int) {
	if d.Annotations[appsv1.DeprecatedTemplateGeneration] == "" {
		return
	}
	d.Annotations[appsv1.DeprecatedTemplateGeneration] = strconv.Itoa(n)
	for _, p := range c.pods[d.UID] {
		if p.Labels["pod-template-generation"] != "" {
			p.Labels["pod-template-generation"] = strconv.Itoa(n)
		}
	}
}

// oldRevision is what is left of the nth release: the template that it had.
func (c *chronicle) oldRevision(s revised, current *appsv1.ControllerRevision, template *v1.PodTemplateSpec, n int,
	at time.Time,
) (*appsv1.ControllerRevision, error) {
	var data map[string]any
	if err := json.Unmarshal(current.Data.Raw, &data); err != nil {
		return nil, err
	}
	now, _, _ := unstructured.NestedMap(data, "spec", "template")
	then, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	if err != nil {
		return nil, err
	}
	then["$patch"] = "replace" // As both controllers write it.
	if _, told, _ := unstructured.NestedFieldNoCopy(now, "metadata", "creationTimestamp"); !told {
		unstructured.RemoveNestedField(then, "metadata", "creationTimestamp")
	}
	if err := unstructured.SetNestedMap(data, then, "spec", "template"); err != nil {
		return nil, err
	}
	rev := current.DeepCopy()
	if rev.Data.Raw, err = json.Marshal(data); err != nil {
		return nil, err
	}
	hash, hashed := s.hash(rev.Data.Raw, template), strings.TrimPrefix(current.Name, s.GetName()+"-")
	for key, value := range rev.Labels {
		if value == hashed {
			rev.Labels[key] = hash
		}
	}
	// What a workload says that it was made of is not what this release was made of.
	maps.DeleteFunc(rev.Annotations, func(key, _ string) bool { return strings.Contains(key, "last-applied") })
	rev.Name = s.GetName() + "-" + hash
	rev.UID = c.uid(fmt.Sprintf("revision %s/%s %d", s.GetNamespace(), s.GetName(), n))
	rev.Revision = int64(n)
	shift(rev, at.Sub(rev.CreationTimestamp.Time))
	return rev, nil
}

// maxAmended is how often a custom resource was changed besides what its workloads show, at most.
const maxAmended = 5

// amend tells that a custom resource was changed now and then: as often as the workloads that are made of it were
// released, and in ways that no workload shows.
func (c *chronicle) amend(u *unstructured.Unstructured) {
	meta, _ := u.Object["metadata"].(map[string]any)
	generation, ok := whole(meta["generation"])
	if !ok || u.GetNamespace() == "" || c.steady(u.GetNamespace()) {
		return
	}
	r := c.draw(u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName())
	of := c.changed[u.GetUID()]
	made := u.GetCreationTimestamp().Time
	times := c.releaseTimes(r, 1+r.IntN(maxAmended), made, freshest)
	last := times[len(times)-1]
	if of.last.After(last) {
		last = of.last
	}
	now := generation + int64(len(times)-1+of.times)
	meta["generation"] = now
	status, _ := u.Object["status"].(map[string]any)
	if seen, ok := whole(status["observedGeneration"]); ok && seen == generation {
		status["observedGeneration"] = now
	}
	for _, set := range of.sets {
		quote(status, set)
	}
	fields, _ := meta["managedFields"].([]any)
	for _, f := range fields { // Who writes the status has done so long ago, and since then nothing has changed in it.
		if f, ok := f.(map[string]any); ok && f["subresource"] == nil && f["time"] != nil {
			f["time"] = last.UTC().Format(time.RFC3339)
		}
	}
}

// quote corrects what a status quotes of that of a StatefulSet, or whoever writes it would do so at once.
func quote(v any, set *appsv1.StatefulSet) {
	switch v := v.(type) {
	case map[string]any:
		if v["observedGeneration"] != nil && v["currentRevision"] == set.Status.CurrentRevision {
			v["observedGeneration"] = set.Status.ObservedGeneration
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			quote(v[key], set)
		}
	case []any:
		for _, e := range v {
			quote(e, set)
		}
	}
}

// whole is a number of a JSON object.
func whole(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	}
	return 0, false
}

// gather notes what a history has of workloads with ControllerRevisions, and of custom resources.
func (c *chronicle) gather(o cloud.Object) {
	switch o := o.(type) {
	case *appsv1.StatefulSet:
		c.revisable = append(c.revisable, c.statefulSet(o))
	case *appsv1.DaemonSet:
		c.revisable = append(c.revisable, c.daemonSet(o))
	case *appsv1.ControllerRevision:
		if owner := metav1.GetControllerOf(o); owner != nil {
			c.revisions[owner.UID] = append(c.revisions[owner.UID], o)
		}
	case *unstructured.Unstructured:
		c.customs = append(c.customs, o)
	}
}

// reviseAll tells how StatefulSets, DaemonSets and custom resources came to be what they are.
func (c *chronicle) reviseAll() error {
	c.changed = map[types.UID]changed{}
	for _, s := range c.revisable {
		if err := c.revise(s); err != nil {
			return err
		}
	}
	for _, u := range c.customs {
		c.amend(u)
	}
	return nil
}
