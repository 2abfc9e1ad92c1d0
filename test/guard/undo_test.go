package guard

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"

	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/test/labtest"
)

const belongings = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: other}
spec:
  replicas: 1
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: other}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: nginx, image: "nginx:1.29"}]
---
apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {selector: {app: shop}, ports: [{name: http, port: 80}, {name: admin, port: 81}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: shop}}
data: {a: "1", b: "2"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fixed}
data: {a: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: batch-1, labels: {set: batch}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: batch-2, labels: {set: batch}, finalizers: [shop.example/wait]}
---
apiVersion: v1
kind: Secret
metadata: {name: sh.helm.release.v1.shop.v1, labels: {owner: helm}}
type: helm.sh/release.v1
stringData: {release: one}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: someone}]
`

const boats = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.undo.example}
spec:
  group: undo.example
  scope: Namespaced
  names: {kind: Boat, plural: boats}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

var boat = schema.GroupVersionResource{Group: "undo.example", Version: "v1", Resource: "boats"}

// kept are the resources that are compared. Pods come and go with their workloads, and so do endpoints.
var kept = []schema.GroupVersionResource{
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "secrets"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
	boat,
}

// things are all objects of a namespace, without what is explained to differ: uids, versions, times, status, managed fields
// and the numbers of releases.
func things(t *testing.T, d dynamic.Interface, ns string) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, r := range kept {
		l, err := d.Resource(r).Namespace(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatalf("%s: %v", r.Resource, err)
		}
		for _, o := range l.Items {
			for _, f := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
				unstructured.RemoveNestedField(o.Object, "metadata", f)
			}
			unstructured.RemoveNestedField(o.Object, "status")
			annotations := o.GetAnnotations()
			maps.DeleteFunc(annotations, func(k, _ string) bool {
				return strings.HasPrefix(k, "deployment.kubernetes.io/revision") || k == "deployment.kubernetes.io/desired-replicas" ||
					k == "deployment.kubernetes.io/max-replicas"
			})
			o.SetAnnotations(annotations)
			owners := o.GetOwnerReferences()
			for i := range owners {
				owners[i].UID = ""
			}
			o.SetOwnerReferences(owners)
			out[r.Resource+" "+o.GetName()] = o.Object
		}
	}
	return out
}

// TestUndo makes writes of all kinds to a real API in a transaction and aborts it, with a stock kubectl: nothing differs.
func TestUndo(t *testing.T) {
	a := newAgent(t)
	labApplies(t, a.ns, deployment+"---"+belongings)
	labApplies(t, "", boats)
	d, err := dynamic.NewForConfig(lab.Cloud.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	agents, err := dynamic.NewForConfig(a.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	check := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ours := d.Resource(boat).Namespace(a.ns)
	newBoat := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "undo.example/v1", "kind": "Boat", "metadata": map[string]any{"name": name}, "spec": map[string]any{"sails": int64(2)},
		}}
	}
	for _, name := range []string{"one", "two"} {
		labtest.Await(t, func() (any, error) { return ours.Create(ctx, newBoat(name), metav1.CreateOptions{}) })
	}
	// Two releases of what will be deleted, so that it has a history.
	deployments := a.client.AppsV1().Deployments(a.ns)
	check(lab.Client.AppsV1().Deployments(a.ns).Patch(ctx, "other", types.StrategicMergePatchType, []byte(`{"spec":{"template":{"metadata":{"annotations":{"release":"2"}}}}}`), metav1.PatchOptions{}))
	settled := func() {
		t.Helper()
		labtest.Await(t, func() (any, error) {
			for name, releases := range map[string]int{"shop": 1, "other": 2} {
				o, err := lab.Client.AppsV1().Deployments(a.ns).Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return nil, err
				}
				if o.Status.ObservedGeneration != o.Generation || o.Status.UpdatedReplicas != 1 || o.Status.Replicas != 1 || o.Status.ReadyReplicas != 1 {
					return nil, fmt.Errorf("%s: %+v", name, o.Status)
				}
				l, err := lab.Client.AppsV1().ReplicaSets(a.ns).List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
				if err != nil {
					return nil, err
				}
				owned := slices.DeleteFunc(l.Items, func(r appsv1.ReplicaSet) bool { return !metav1.IsControlledBy(&r, o) })
				if len(owned) < releases {
					return nil, fmt.Errorf("%s has %d releases of its own", name, len(owned))
				}
			}
			return nil, nil
		})
	}
	settled()
	want := things(t, d, a.ns)
	// now is what there is, without the release that was taken back: it stays in the history of its workload, empty.
	now := func() map[string]any {
		got := things(t, d, a.ns)
		maps.DeleteFunc(got, func(name string, o any) bool {
			n, _, _ := unstructured.NestedInt64(o.(map[string]any), "spec", "replicas")
			return strings.HasPrefix(name, "replicasets shop-") && n == 0 && want[name] == nil
		})
		return got
	}

	core := a.client.CoreV1()
	theirs := agents.Resource(boat).Namespace(a.ns)
	a.run(t, "", []string{"create", "--raw", "/lab/begin", "-f", "-"}, "Transaction 1 has begun")
	check(deployments.UpdateScale(ctx, "shop", &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: a.ns}, Spec: autoscalingv1.ScaleSpec{Replicas: 2}}, metav1.UpdateOptions{}))
	check(deployments.Patch(ctx, "shop", types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"nginx","env":[{"name":"A","value":"1"}]}]}}}}`), metav1.PatchOptions{}))
	check(core.ConfigMaps(a.ns).Apply(ctx, corev1ac.ConfigMap("settings", a.ns).WithData(map[string]string{"a": "9"}), metav1.ApplyOptions{FieldManager: "agent", Force: true}))
	check(core.ConfigMaps(a.ns).Patch(ctx, "settings", types.JSONPatchType, []byte(`[{"op":"remove","path":"/data/b"},{"op":"add","path":"/metadata/labels/x","value":"y"}]`), metav1.PatchOptions{}))
	check(core.ConfigMaps(a.ns).Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "made-"}}, metav1.CreateOptions{}))
	check(core.ConfigMaps(a.ns).Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"shop.example/never"}}}, metav1.CreateOptions{}))
	check(nil, core.ConfigMaps(a.ns).Delete(ctx, "held", metav1.DeleteOptions{}))
	check(core.ConfigMaps(a.ns).Patch(ctx, "fixed", types.MergePatchType, []byte(`{"immutable":true,"data":{"a":"2"}}`), metav1.PatchOptions{}))
	check(core.Secrets(a.ns).Create(ctx, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "sh.helm.release.v1.shop.v2", Labels: map[string]string{"owner": "helm"}}, Type: "helm.sh/release.v1"}, metav1.CreateOptions{}))
	check(nil, core.Secrets(a.ns).Delete(ctx, "sh.helm.release.v1.shop.v1", metav1.DeleteOptions{}))
	check(core.Services(a.ns).Patch(ctx, "shop", types.MergePatchType, []byte(`{"status":{"conditions":[{"type":"a","status":"True","reason":"b","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`), metav1.PatchOptions{}, "status"))
	check(nil, core.Services(a.ns).Delete(ctx, "shop", metav1.DeleteOptions{}))
	check(theirs.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"sails":3,"engine":true}}`), metav1.PatchOptions{}))
	check(nil, agents.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).Delete(ctx, "boats.undo.example", metav1.DeleteOptions{}))
	check(a.client.RbacV1().Roles(a.ns).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{}))
	check(nil, a.client.RbacV1().RoleBindings(a.ns).Delete(ctx, "readers", metav1.DeleteOptions{}))
	pods, err := core.Pods(a.ns).List(ctx, metav1.ListOptions{LabelSelector: "app=other"})
	check(pods, err)
	check(nil, a.client.PolicyV1().Evictions(a.ns).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pods.Items[0].Name, Namespace: a.ns}}))
	check(nil, deployments.Delete(ctx, "other", metav1.DeleteOptions{}))
	check(core.Pods(a.ns).Create(ctx, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bound"}, Spec: v1.PodSpec{
		SchedulerName: "nobody", Containers: []v1.Container{{Name: "a", Image: "nginx:1.29"}}, TerminationGracePeriodSeconds: new(int64),
	}}, metav1.CreateOptions{}))
	nodes, err := core.Nodes().List(ctx, metav1.ListOptions{})
	check(nodes, err)
	// The old path of bindings, which is not the pod's.
	check(nil, core.RESTClient().Post().Namespace(a.ns).Resource("bindings").Body(&v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "bound"}, Target: v1.ObjectReference{Kind: "Node", Name: nodes.Items[0].Name}}).Do(ctx).Error())
	if out, err := a.kubectl(t, "", "delete", "configmaps", "-l", "set=batch", "--wait=false"); err == nil || !strings.Contains(out, "is full: it has 20 writes") {
		t.Errorf("the 21st write: %v\n%s", err, out)
	}
	last := a.journal()
	if e := last[slices.IndexFunc(last, func(e guard.Entry) bool { return e.Resource == "bindings" })]; decode(t, e.Before) == nil || decode(t, e.After) == nil {
		t.Errorf("a binding: %+v", e)
	}
	out := a.run(t, "", []string{"create", "--raw", "/lab/abort", "-f", "-"}, "20 writes were taken back")
	if strings.Contains(out, "differs") || strings.Contains(out, "not restored") {
		t.Errorf("%s", out)
	}
	settled()
	labtest.Await(t, func() (any, error) {
		if diff := cmp.Diff(want, now()); diff != "" {
			return nil, fmt.Errorf("it is not as it was: %s", diff)
		}
		return nil, nil
	})
	if l, err := lab.Client.CoreV1().Pods(a.ns).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=bound"}); err != nil || len(l.Items) > 0 {
		t.Errorf("the pod that was bound is there: %v", err)
	}

	// A collection goes as one write, also one with a finalizer, and comes again.
	check(nil, core.ConfigMaps(a.ns).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "set=batch"}))
	if out := a.run(t, "", []string{"create", "--raw", "/lab/undo?n=1", "-f", "-"}, "created anew"); strings.Contains(out, "differs") || strings.Contains(out, "not restored") {
		t.Errorf("%s", out)
	}
	a.run(t, "", []string{"get", "--raw", "/lab/history"}, "deletecollection configmaps", "taken back")
	if diff := cmp.Diff(want, now()); diff != "" {
		t.Error(diff)
	}
	check(nil, lab.Client.CoreV1().ConfigMaps(a.ns).Delete(ctx, "batch-2", metav1.DeleteOptions{}))
	check(lab.Client.CoreV1().ConfigMaps(a.ns).Patch(ctx, "batch-2", types.MergePatchType, json.RawMessage(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
}
