package guard

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/test/labtest"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: nginx, image: "nginx:1.29"}]
`

// managers are those of an object, as the API server has it.
func managers(t *testing.T, ns, name string) []string {
	t.Helper()
	d, err := lab.Client.AppsV1().Deployments(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range d.ManagedFields {
		out = append(out, m.Manager)
	}
	return out
}

// TestManagedFieldsStay writes objects that were read without managed fields: the API server keeps
// those it has.
func TestManagedFieldsStay(t *testing.T) {
	a := newAgent(t)
	labApplies(t, a.ns, deployment)
	before := managers(t, a.ns, "shop")
	deployments := a.client.AppsV1().Deployments(a.ns)
	labtest.Await(t, func() (any, error) {
		d, err := deployments.Get(t.Context(), "shop", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if len(d.ManagedFields) > 0 {
			t.Errorf("the agent sees %v", d.ManagedFields)
		}
		d.Spec.Template.Annotations = map[string]string{"a": "b"}
		d, err = deployments.Update(t.Context(), d, metav1.UpdateOptions{FieldManager: "agent"})
		if err == nil && len(d.ManagedFields) > 0 {
			t.Errorf("the agent sees %v", d.ManagedFields)
		}
		return nil, err
	})
	after := managers(t, a.ns, "shop")
	if len(before) == 0 || !strings.Contains(strings.Join(after, " "), before[0]) || !strings.Contains(strings.Join(after, " "), "agent") {
		t.Errorf("the managers were %v and are %v", before, after)
	}
	// A conflict says that there is one, not with whom.
	_, err := deployments.Apply(t.Context(), appsv1ac.Deployment("shop", a.ns).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(3)), metav1.ApplyOptions{FieldManager: "agent"})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "unknown"`) || strings.Contains(err.Error(), before[0]) {
		t.Errorf("a conflict: %v", err)
	}
	d, err := deployments.Apply(t.Context(), appsv1ac.Deployment("shop", a.ns).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(2)), metav1.ApplyOptions{FieldManager: "agent", Force: true})
	if err != nil || *d.Spec.Replicas != 2 {
		t.Errorf("a forced apply: %v", err)
	}
}

// object is what the tests look at of what a journal has.
type object struct {
	Kind     string
	Metadata metav1.ObjectMeta
	Spec     struct{ Replicas *int }
	Data     map[string]string
}

func decode(t *testing.T, raw json.RawMessage) *object {
	t.Helper()
	if raw == nil {
		return nil
	}
	o := &object{}
	if err := json.Unmarshal(raw, o); err != nil {
		t.Fatal(err)
	}
	if o.Metadata.ManagedFields != nil {
		t.Errorf("managed fields in the journal: %s", raw)
	}
	return o
}

func TestJournal(t *testing.T) {
	a := newAgent(t)
	labApplies(t, a.ns, deployment)
	ctx := t.Context()
	check := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	deployments, maps := a.client.AppsV1().Deployments(a.ns), a.client.CoreV1().ConfigMaps(a.ns)
	last := func() guard.Entry { j := a.journal(); return j[len(j)-1] }

	scale, err := deployments.GetScale(ctx, "shop", metav1.GetOptions{})
	check(scale, err)
	scale.ResourceVersion = ""
	scale.Spec.Replicas = 2
	check(deployments.UpdateScale(ctx, "shop", scale, metav1.UpdateOptions{}))
	e := last()
	before, after := decode(t, e.Before), decode(t, e.After)
	if e.Verb != "update" || e.Subresource != "scale" || before.Kind != "Deployment" || *before.Spec.Replicas != 1 || after.Kind != "Deployment" || *after.Spec.Replicas != 2 {
		t.Errorf("a scale: %+v", e)
	}
	check(maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "x-"}, Data: map[string]string{"a": "1"}}, metav1.CreateOptions{}))
	e = last()
	name := e.Name
	if !strings.HasPrefix(name, "x-") || decode(t, e.After).Data["a"] != "1" || e.Before != nil || decode(t, e.Request).Data["a"] != "1" || e.Status != 201 {
		t.Errorf("a creation: %+v", e)
	}
	check(maps.Patch(ctx, name, types.JSONPatchType, []byte(`[{"op":"replace","path":"/data/a","value":"2"}]`), metav1.PatchOptions{DryRun: []string{"All"}}))
	if e = last(); !e.DryRun || decode(t, e.Before).Data["a"] != "1" || decode(t, e.After).Data["a"] != "2" || e.ContentType != "application/json-patch+json" {
		t.Errorf("a dry run: %+v", e)
	}
	check(maps.Apply(ctx, corev1ac.ConfigMap("y", a.ns).WithData(map[string]string{"a": "1"}), metav1.ApplyOptions{FieldManager: "agent"}))
	if e = last(); e.Before != nil || decode(t, e.After).Data["a"] != "1" {
		t.Errorf("an apply that creates: %+v", e)
	}
	check(nil, maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=y"}))
	var l v1.ConfigMapList
	if e = last(); e.Verb != "deletecollection" || json.Unmarshal(e.Before, &l) != nil || len(l.Items) != 1 || l.Items[0].Name != "y" {
		t.Errorf("a collection: %+v", e)
	}
	check(nil, maps.Delete(ctx, name, metav1.DeleteOptions{}))
	if e = last(); e.Verb != "delete" || decode(t, e.Before).Data["a"] != "1" || e.After != nil {
		t.Errorf("a deletion: %+v", e)
	}
	if _, err := maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "Not A Name"}}, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a bad name: %v", err)
	}
	if e = last(); e.Status != 422 || !strings.Contains(e.Error, "is invalid") || e.After != nil {
		t.Errorf("a failure: %+v", e)
	}
	pod := labtest.Await(t, func() (*v1.PodList, error) {
		l, err := a.client.CoreV1().Pods(a.ns).List(ctx, metav1.ListOptions{})
		if err == nil && len(l.Items) == 0 {
			err = apierrors.NewNotFound(v1.Resource("pods"), "any")
		}
		return l, err
	}).Items[0]
	check(nil, a.client.PolicyV1().Evictions(a.ns).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: a.ns}}))
	if e = last(); e.Subresource != "eviction" || e.Name != pod.Name || decode(t, e.Before).Kind != "Pod" {
		t.Errorf("an eviction: %+v", e)
	}
	for i, e := range a.journal() {
		if e.Seq != i+1 {
			t.Errorf("entry %d has number %d", i, e.Seq)
		}
	}
}
