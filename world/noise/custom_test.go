package noise

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/tidb"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/internal/manifest"
)

// A custom resource of an application is released with the rest, or a change of it would be the only one. What an
// operator makes of it is not for a release to replace.
func TestCustomResource(t *testing.T) {
	parts, err := partsOf(tidb.App())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(parts, func(p *part) bool { return p.has([]string{"TidbCluster/basic"}) })
	if i < 0 || parts[i].rolls || parts[i].deployment != nil {
		t.Errorf("%+v", parts)
	}
	for _, p := range parts {
		if p.rolls != (p.service == "bank" || p.service == "tidb-controller-manager") {
			t.Errorf("pods of %s are replaced: %v", p.service, p.rolls)
		}
	}
}

// A release changes the specification of what has no pods to replace, so that its generation does not tell of a fault:
// by differences that are not in the template of any pod. One build makes one of it.
func TestDifferenceWithoutPods(t *testing.T) {
	set := &unstructured.Unstructured{Object: map[string]any{
		"kind": "StatefulSet", "metadata": map[string]any{"name": "kv"}, "spec": map[string]any{
			"minReadySeconds": int64(2), "template": map[string]any{"metadata": map[string]any{}},
		},
	}}
	seen := map[string]bool{}
	for _, u := range []*unstructured.Unstructured{tidbCluster(t), set} {
		for n := range 100 {
			l, now := &Life{Env: &fault.Env{App: tidb.App()}, build: fmt.Sprintf("%08x", n)}, u.DeepCopy()
			l.dress(now)
			again := u.DeepCopy()
			l.dress(again)
			if diff := cmp.Diff(now.Object, again.Object); diff != "" {
				t.Errorf("%s: one build makes two of it: %s", u.GetKind(), diff)
			}
			changed := paths(u.Object["spec"], now.Object["spec"], "")
			for _, path := range changed {
				seen[path] = true
				known := path == "minReadySeconds" || slices.ContainsFunc(harmless[u.GetKind()], func(s setting) bool {
					return strings.HasPrefix(s.path, path)
				})
				if !known {
					t.Errorf("%s: %s is changed", u.GetKind(), path)
				}
			}
			if len(changed) == 0 || len(changed) > maxSettings {
				t.Errorf("%s: %v are changed", u.GetKind(), changed)
			}
			if now.GetAnnotations()[buildAnnotation] != l.build {
				t.Errorf("%s has the marks %v", u.GetKind(), now.GetAnnotations())
			}
		}
	}
	// Each setting of a component, the component that a fault is in as well, and what a fault sets.
	if len(seen) < 7 || !seen["tidb.statefulSetUpdateStrategy"] {
		t.Errorf("changed is only %v", slices.Sorted(maps.Keys(seen)))
	}
}

// A mistake in a custom resource is one of the differences that a release makes in it, and stays what it is.
func TestMistakeIsADifference(t *testing.T) {
	counts := map[bool]map[int]int{true: {}, false: {}}
	for n := range 300 {
		for _, faulty := range []bool{false, true} {
			parts, err := partsOf(tidb.App())
			if err != nil {
				t.Fatal(err)
			}
			u := tidbCluster(t)
			l := &Life{Env: &fault.Env{App: tidb.App()}, build: fmt.Sprintf("%08x", n), parts: parts}
			if faulty {
				if err := unstructured.SetNestedField(u.Object, "SomeStrategy", "spec", "tidb", "statefulSetUpdateStrategy"); err != nil {
					t.Fatal(err)
				}
			}
			l.dress(u)
			if is, _, _ := unstructured.NestedString(u.Object, "spec", "tidb", "statefulSetUpdateStrategy"); faulty && is != "SomeStrategy" {
				t.Fatalf("the mistake has become %q", is)
			}
			counts[faulty][len(paths(tidbCluster(t).Object["spec"], u.Object["spec"], ""))]++
		}
	}
	if diff := cmp.Diff(counts[false], counts[true]); diff != "" {
		t.Errorf("by how many settings differ, without a mistake and with one: %s", diff)
	}
}

func tidbCluster(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Read(tidb.App().Manifests)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "TidbCluster" })
	return objects[i]
}

// paths are where two values differ.
func paths(a, b any, at string) (list []string) {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	if x == nil || y == nil {
		if !cmp.Equal(a, b) {
			list = append(list, strings.TrimPrefix(at, "."))
		}
		return list
	}
	names := maps.Clone(x)
	maps.Copy(names, y)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		list = append(list, paths(x[name], y[name], at+"."+name)...)
	}
	return list
}

// sets are workloads whose pods a release does not replace.
const sets = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: kv}
spec:
  serviceName: kv
  selector: {matchLabels: {app: kv}}
  template:
    metadata: {labels: {app: kv}}
    spec: {containers: [{name: kv, image: "example/kv:v1"}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: "example/agent:v1"}]}
`

// A StatefulSet and a DaemonSet of an application are released with the rest, and their pods stay.
func TestReleaseOfSets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrial(t, Calm, 3)
		a := x.life.Env.App
		added := fstest.MapFS{"sets.yaml": {Data: []byte(sets)}}
		a.Manifests.(fstest.MapFS)["sets.yaml"] = added["sets.yaml"]
		a.Services = append(a.Services, app.Service{Name: "kv", Kind: "redis"}, app.Service{Name: "agent", Kind: "service"})
		objects, err := manifest.Read(added)
		if err != nil {
			t.Fatal(err)
		}
		c, err := manifest.NewClient(x.RESTConfig())
		if err == nil {
			err = c.Apply(t.Context(), a.Namespace, objects)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := x.life.Release(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		s, err := x.client.AppsV1().StatefulSets(a.Namespace).Get(t.Context(), "kv", metav1.GetOptions{})
		if err != nil || s.Annotations[buildAnnotation] == "" || s.Spec.MinReadySeconds == 0 || len(s.Spec.Template.Annotations) > 0 {
			t.Errorf("%+v, %v", s, err)
		}
		d, err := x.client.AppsV1().DaemonSets(a.Namespace).Get(t.Context(), "agent", metav1.GetOptions{})
		if err != nil || d.Annotations[buildAnnotation] == "" || d.Spec.MinReadySeconds == 0 || len(d.Spec.Template.Annotations) > 0 {
			t.Errorf("%+v, %v", d, err)
		}
		for _, p := range x.life.parts {
			if (p.service == "kv" || p.service == "agent") && (p.rolls || p.scales) {
				t.Errorf("%+v", p)
			}
		}
	})
}
