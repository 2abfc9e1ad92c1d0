package guard

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/aiopslab/aiopslab/test/labtest"
)

// TestBeforeOfEveryKind patches an object of each kind that the API server has, as a dry run: the journal has what it was
// before, read at a revision of the store.
func TestBeforeOfEveryKind(t *testing.T) {
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
	one := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "undo.example/v1", "kind": "Boat", "metadata": map[string]any{"name": "one"},
	}}
	labtest.Await(t, func() (any, error) {
		return d.Resource(boat).Namespace(a.ns).Create(t.Context(), one, metav1.CreateOptions{})
	})
	lists, err := lab.Client.Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.APIResources {
			// An APIService of the API server's own cannot be patched.
			if r.Name != "apiservices" && slices.Contains(r.Verbs, "patch") && slices.Contains(r.Verbs, "list") {
				tried += patchFirst(t, a, d, agents, gv.WithResource(r.Name))
			}
		}
	}
	if tried < 15 {
		t.Errorf("only %d kinds had an object", tried)
	}
}

// patchFirst patches an object of a kind that the agent sees, and returns how many there were, 0 or 1.
func patchFirst(t *testing.T, a *agent, lab, agents dynamic.Interface, r schema.GroupVersionResource) int {
	t.Helper()
	seen, err := agents.Resource(r).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Errorf("%s: %v", r.Resource, err)
		return 0
	}
	if len(seen.Items) == 0 {
		return 0
	}
	o := seen.Items[0]
	before := len(a.journal())
	labtest.Await(t, func() (any, error) { // Others may delete it meanwhile.
		_, err := agents.Resource(r).Namespace(o.GetNamespace()).Patch(t.Context(), o.GetName(), types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"tried":"yes"}}}`), metav1.PatchOptions{DryRun: []string{"All"}})
		if len(a.journal()) == before {
			return nil, errors.Join(err, errors.New("it is not in the journal"))
		}
		return nil, nil
	})
	e := a.journal()[len(a.journal())-1]
	var was unstructured.Unstructured
	if err := json.Unmarshal(e.Before, &was); err != nil {
		t.Errorf("%s %s, status %d: before: %v: %s", r.Resource, o.GetName(), e.Status, err, e.Error)
		return 1
	}
	if was.GetUID() != o.GetUID() || was.GetKind() != o.GetKind() || was.GetAPIVersion() != o.GetAPIVersion() {
		t.Errorf("%s: before it was %s %s %s, not %s %s %s", r.Resource, was.GetAPIVersion(), was.GetKind(), was.GetUID(),
			o.GetAPIVersion(), o.GetKind(), o.GetUID())
	}
	return 1
}
