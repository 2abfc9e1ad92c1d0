package noise

import (
	"slices"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/tidb"
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
// once, by a difference that is not in the template of any pod.
func TestDifferenceWithoutPods(t *testing.T) {
	objects, err := manifest.Read(tidb.App().Manifests)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "TidbCluster" })
	set := &unstructured.Unstructured{Object: map[string]any{
		"kind": "StatefulSet", "metadata": map[string]any{"name": "kv"}, "spec": map[string]any{
			"minReadySeconds": int64(2), "template": map[string]any{"metadata": map[string]any{}},
		},
	}}
	for _, u := range []*unstructured.Unstructured{objects[i], set} {
		seen := map[string]bool{}
		for _, build := range []string{"00000001", "deadbeef", "ffffffff"} {
			l, now := &Life{build: build}, u.DeepCopy()
			l.dress(now)
			again := u.DeepCopy()
			l.dress(again)
			if diff := cmp.Diff(now.Object, again.Object); diff != "" {
				t.Errorf("%s: one build makes two of it: %s", u.GetKind(), diff)
			}
			was, is := u.Object["spec"].(map[string]any), now.Object["spec"].(map[string]any)
			if cmp.Equal(was, is) || !cmp.Equal(was["template"], is["template"]) {
				t.Errorf("%s: %s", u.GetKind(), cmp.Diff(was, is))
			}
			for _, component := range []string{"pd", "tidb"} {
				if !cmp.Equal(was[component], is[component]) {
					t.Errorf("%s: %s", component, cmp.Diff(was[component], is[component]))
				}
			}
			tikv, _ := is["tikv"].(map[string]any)
			delete(tikv, "evictLeaderTimeout")
			if !cmp.Equal(was["tikv"], is["tikv"]) {
				t.Errorf("tikv: %s", cmp.Diff(was["tikv"], is["tikv"]))
			}
			seen[now.GetAnnotations()[buildAnnotation]] = true
		}
		if len(seen) != 3 {
			t.Errorf("%s has the marks %v", u.GetKind(), seen)
		}
	}
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
