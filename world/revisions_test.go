package world_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/kit/past"
	"github.com/aiopslab/aiopslab/world"
)

// patch is what a ControllerRevision has of a template.
func patch(t *testing.T, template *v1.PodTemplateSpec) []byte {
	t.Helper()
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	if err != nil {
		t.Fatal(err)
	}
	m["$patch"] = "replace"
	b, err := json.Marshal(map[string]any{"spec": map[string]any{"template": m}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// setHash is how a StatefulSet's controller names a revision.
func setHash(data []byte) string {
	f := fnv.New32()
	fmt.Fprintf(f, "%s0", data)
	return rand.SafeEncodeString(fmt.Sprint(f.Sum32()))
}

// operated is a history with some stores, each a custom resource with a StatefulSet that an operator made of it, and a
// DaemonSet.
func operated(t *testing.T, stores int) *cloud.History {
	t.Helper()
	h := history(0)
	template := func() v1.PodTemplateSpec {
		return v1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "store"}},
			Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "shop:1.2.4"}}},
		}
	}
	for i := range stores {
		name := fmt.Sprintf("store-%d", i)
		store := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "lab.example.com/v1", "kind": "Store",
			"metadata": map[string]any{
				"namespace": "shop", "name": name, "uid": "store " + name, "generation": float64(1),
				"creationTimestamp": made.Add(4 * time.Second).Format(time.RFC3339),
				"managedFields": []any{
					map[string]any{"manager": "helm", "time": made.Add(4 * time.Second).Format(time.RFC3339)},
					map[string]any{
						"manager": "operator", "time": made.Add(7 * time.Second).Format(time.RFC3339), "subresource": "status",
					},
				},
			},
			"spec": map[string]any{"replicas": float64(2)},
		}}
		set := &appsv1.StatefulSet{
			TypeMeta: kind("apps/v1", "StatefulSet"), ObjectMeta: meta("shop", name+"-kv", 5*time.Second),
			Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(2)), Template: template()},
		}
		set.Annotations = map[string]string{"example.com/last-applied-configuration": "{}"}
		set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(store, schema.GroupVersionKind{Kind: "Store"})}
		data := patch(t, &set.Spec.Template)
		rev := revisionOf(set, "StatefulSet", setHash(data), "controller.kubernetes.io/hash", data)
		set.Status = appsv1.StatefulSetStatus{
			ObservedGeneration: 1, CurrentRevision: rev.Name, UpdateRevision: rev.Name, CollisionCount: new(int32),
		}
		store.Object["status"] = map[string]any{
			"observedGeneration": float64(1), "part": map[string]any{"statefulSet": map[string]any{
				"observedGeneration": float64(1), "currentRevision": rev.Name,
			}},
		}
		h.Objects = append(h.Objects, store, set, rev, &v1.Pod{
			TypeMeta: kind("v1", "Pod"), ObjectMeta: podMeta(set, set.Name+"-0", "StatefulSet"),
			Spec: v1.PodSpec{NodeName: "node-1", Containers: set.Spec.Template.Spec.Containers},
		})
	}
	d := &appsv1.DaemonSet{
		TypeMeta: kind("apps/v1", "DaemonSet"), ObjectMeta: meta("shop", "agent", 5*time.Second),
		Spec: appsv1.DaemonSetSpec{Template: template(), RevisionHistoryLimit: ptr.To(int32(2))},
	}
	d.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "1"}
	rev := revisionOf(d, "DaemonSet", h.Hash(&d.Spec.Template), "controller-revision-hash", patch(t, &d.Spec.Template))
	p := &v1.Pod{TypeMeta: kind("v1", "Pod"), ObjectMeta: podMeta(d, "agent-x2x8p", "DaemonSet")}
	p.Labels["pod-template-generation"] = "1"
	h.Objects = append(h.Objects, d, rev, p)
	return h
}

func podMeta(owner metav1.Object, name, kind string) metav1.ObjectMeta {
	m := meta("shop", name, 6*time.Second)
	m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind(kind))}
	return m
}

func revisionOf(owner metav1.Object, of, hash, label string, data []byte) *appsv1.ControllerRevision {
	rev := &appsv1.ControllerRevision{
		TypeMeta: kind("apps/v1", "ControllerRevision"), ObjectMeta: podMeta(owner, owner.GetName()+"-"+hash, of),
		Data: runtime.RawExtension{Raw: data}, Revision: 1,
	}
	rev.Labels[label], rev.Annotations = hash, map[string]string{"example.com/last-applied-configuration": "{}"}
	return rev
}

// What has no ReplicaSets was released several times, too: what is left of it is what its controller would have left, and
// the current release is the one that its controller finds to be so.
func TestRevisions(t *testing.T) {
	counts := map[int]int{}
	for seed := range uint64(12) {
		h := write(t, operated(t, 3), seed)
		of := map[types.UID][]*appsv1.ControllerRevision{}
		for _, r := range all[*appsv1.ControllerRevision](h) {
			of[r.OwnerReferences[0].UID] = append(of[r.OwnerReferences[0].UID], r)
		}
		for _, s := range all[*appsv1.StatefulSet](h) {
			list := inOrder(t, of[s.UID])
			counts[len(list)]++
			last := list[len(list)-1]
			if s.Status.CurrentRevision != last.Name || string(last.Data.Raw) != string(patch(t, &s.Spec.Template)) {
				t.Errorf("seed %d: the last revision is %s, the current one %s", seed, last.Name, s.Status.CurrentRevision)
			}
			if n := int64(len(list)); s.Generation != n || s.Status.ObservedGeneration != n {
				t.Errorf("seed %d: generation %d, %d seen, of %d releases", seed, s.Generation, s.Status.ObservedGeneration, n)
			}
			for _, r := range list {
				hash := setHash(r.Data.Raw)
				if r.Name != s.Name+"-"+hash || r.Labels["controller.kubernetes.io/hash"] != hash {
					t.Errorf("seed %d: %s with the labels %v; its hash is %s", seed, r.Name, r.Labels, hash)
				}
				if r != last && len(r.Annotations) > 0 {
					t.Errorf("seed %d: %s was made of %v", seed, r.Name, r.Annotations)
				}
			}
			pod := podOf(h, s.UID)
			if d := pod.CreationTimestamp.Sub(last.CreationTimestamp.Time); d < 0 {
				t.Errorf("seed %d: %s is %v older than its release", seed, pod.Name, -d)
			}
			if age := now.Sub(last.CreationTimestamp.Time); age < past.Window {
				t.Errorf("seed %d: %s was released %v ago: telemetry tells of who was there before", seed, s.Name, age)
			}
		}
		d := all[*appsv1.DaemonSet](h)[0]
		list := inOrder(t, of[d.UID])
		if n := fmt.Sprint(len(list)); len(list) > 3 || d.Annotations[appsv1.DeprecatedTemplateGeneration] != n || podOf(h, d.UID).Labels["pod-template-generation"] != n {
			t.Errorf("seed %d: %d releases of a DaemonSet that keeps two: %v", seed, len(list), d.Annotations)
		}
		for _, r := range list {
			if hash := r.Labels["controller-revision-hash"]; r.Name != d.Name+"-"+hash {
				t.Errorf("seed %d: %s has the hash %s", seed, r.Name, hash)
			}
		}
	}
	if len(counts) < 4 || counts[1] > counts[2]+counts[3]+counts[4] {
		t.Errorf("workloads by their revisions: %v", counts)
	}
}

// Pods of a StatefulSet and of a DaemonSet were evicted as others were, but not so lately that telemetry, which knows of
// no pod before them, would begin in the middle.
func TestEvictedFromSets(t *testing.T) {
	evicted := 0
	h := write(t, operated(t, 600), 1)
	released := map[types.UID]time.Time{}
	for _, r := range all[*appsv1.ControllerRevision](h) {
		owner := r.OwnerReferences[0].UID
		if at := r.CreationTimestamp.Time; at.After(released[owner]) {
			released[owner] = at
		}
	}
	for _, p := range all[*v1.Pod](h) {
		if p.CreationTimestamp.Sub(released[p.OwnerReferences[0].UID]) > time.Minute {
			evicted++
		}
		if age := now.Sub(p.CreationTimestamp.Time); age < past.Window {
			t.Errorf("%s was made %v ago: telemetry reaches back to the pod before it", p.Name, age)
		}
	}
	if evicted < 30 {
		t.Errorf("%d of 600 pods are younger than their release", evicted)
	}
}

// inOrder sorts revisions, and holds that they have ascending numbers and ages, and templates that differ.
func inOrder(t *testing.T, list []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	t.Helper()
	slices.SortFunc(list, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	seen := map[string]bool{}
	for i, r := range list {
		if r.Revision != int64(i+1) || seen[string(r.Data.Raw)] || !strings.Contains(string(r.Data.Raw), `"$patch":"replace"`) {
			t.Errorf("%s is revision %d, the %dth: %s", r.Name, r.Revision, i+1, r.Data.Raw)
		}
		seen[string(r.Data.Raw)] = true
		if i > 0 && r.CreationTimestamp.Before(&list[i-1].CreationTimestamp) {
			t.Errorf("%s is older than the one before", r.Name)
		}
	}
	return list
}

func podOf(h *cloud.History, owner types.UID) *v1.Pod {
	list := all[*v1.Pod](h)
	return list[slices.IndexFunc(list, func(p *v1.Pod) bool { return p.OwnerReferences[0].UID == owner })]
}

// A custom resource was changed as often as what is made of it, and now and then besides. What its status quotes is what
// there is: its operator finds nothing to write.
func TestCustomResources(t *testing.T) {
	alone, young := 0, 0
	for seed := range uint64(12) {
		h := write(t, operated(t, 3), seed)
		sets := map[types.UID]*appsv1.StatefulSet{}
		for _, s := range all[*appsv1.StatefulSet](h) {
			sets[s.OwnerReferences[0].UID] = s
		}
		for _, u := range all[*unstructured.Unstructured](h) {
			set := sets[u.GetUID()]
			if set == nil {
				if u.Object["metadata"].(map[string]any)["generation"] != nil {
					t.Errorf("%s has %v", u.GetName(), u.Object["metadata"])
				}
				continue
			}
			meta, status := u.Object["metadata"].(map[string]any), u.Object["status"].(map[string]any)
			generation, _ := meta["generation"].(int64)
			if generation < set.Generation || status["observedGeneration"] != meta["generation"] {
				t.Errorf("seed %d: generation %v, seen %v, of its workload %d", seed, meta["generation"], status["observedGeneration"], set.Generation)
			}
			if generation > set.Generation {
				alone++
			}
			quoted, _, _ := unstructured.NestedMap(status, "part", "statefulSet")
			if quoted["observedGeneration"] != set.Status.ObservedGeneration {
				t.Errorf("seed %d: %v is quoted, of %+v", seed, quoted, set.Status)
			}
			fields := meta["managedFields"].([]any)
			at := timeOf(t, fields[0])
			for _, r := range all[*appsv1.ControllerRevision](h) {
				if r.OwnerReferences[0].UID == set.UID && at.Before(r.CreationTimestamp.Truncate(time.Second)) {
					t.Errorf("seed %d: written at %v, before %s was made of it", seed, at, r.Name)
				}
			}
			if age := now.Sub(at); age < time.Minute || age > 32*24*time.Hour || now.Sub(timeOf(t, fields[1])) < 20*24*time.Hour {
				t.Errorf("seed %d: managed fields %v", seed, fields)
			} else if age < 24*time.Hour {
				young++
			}
		}
	}
	if alone == 0 || young == 0 {
		t.Errorf("%d were changed besides, %d within a day", alone, young)
	}
}

func timeOf(t *testing.T, field any) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, field.(map[string]any)["time"].(string))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Nothing of it is so where nothing was ever released.
func TestSteadyRevisions(t *testing.T) {
	h := operated(t, 2)
	if err := (world.Past{Seed: 1, Now: now, Steady: []string{"shop"}}).Write(h); err != nil {
		t.Fatal(err)
	}
	if n := len(all[*appsv1.ControllerRevision](h)); n != 3 {
		t.Errorf("%d revisions", n)
	}
	for _, u := range all[*unstructured.Unstructured](h) {
		if g := u.Object["metadata"].(map[string]any)["generation"]; g != nil && g != float64(1) {
			t.Errorf("%s has the generation %v", u.GetName(), g)
		}
	}
}
