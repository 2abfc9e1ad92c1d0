package fault

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/app/everytest"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/internal/manifest"
)

// A wrong template is one write, and what follows from it is the Deployment controller's own doing: nothing else of the
// Deployment changes, and no ReplicaSet or event is written.
func TestRedeployIsOneWrite(t *testing.T) {
	a := hotel.App()
	l := newLab(t, a, nil)
	f := bind(t, "misconfig_app", a, "geo", "")
	for range 2 { // It can be tried again.
		l.patches = nil
		l.ClearActions()
		if err := f.Inject(t.Context(), l.env); err != nil {
			t.Fatal(err)
		}
		if len(l.patches) != 1 || l.patches[0].name != "geo" || len(l.Actions()) != 1 {
			t.Fatalf("%v", l.Actions())
		}
	}
	o, err := read(a)
	if err != nil {
		t.Fatal(err)
	}
	right, err := o.object(a, "Deployment", "geo")
	if err != nil {
		t.Fatal(err)
	}
	text, err := right.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var before map[string]any
	if err := json.Unmarshal(text, &before); err != nil {
		t.Fatal(err)
	}
	for _, u := range []map[string]any{before, l.patches[0].body} {
		unstructured.RemoveNestedField(u, "spec", "template", "spec", "containers")
	}
	if diff := cmp.Diff(before["spec"], l.patches[0].body["spec"]); diff != "" {
		t.Error(diff)
	}
}

// All applications of the lab let the old pods of a release go before the new ones are ready, and have them serve until
// then. So a fault does not have to say it, which would be the only difference of its kind.
func TestApplicationsLetGo(t *testing.T) {
	for _, a := range everytest.Apps() {
		objects, err := manifest.Read(a.Manifests)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range objects {
			if u.GetKind() != "Deployment" {
				continue
			}
			wrong := u.DeepCopy()
			if err := letGo(wrong); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(u.Object, wrong.Object); diff != "" {
				t.Errorf("%s in %s keeps its pods: %s", u.GetName(), a.Name, diff)
			}
			if kind, _, _ := unstructured.NestedString(u.Object, "spec", "strategy", "type"); kind == "Recreate" {
				continue
			}
			containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			seconds, _, _ := unstructured.NestedInt64(containers[0].(map[string]any), "lifecycle", "preStop", "sleep", "seconds")
			if seconds < 5 {
				t.Errorf("%s in %s does not serve until another pod is ready", u.GetName(), a.Name)
			}
		}
	}
}

// Another application's Deployment that would keep its pods lets them go with the mistake.
func TestLetGo(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		want       any
	}{
		{"nothing said", `{}`, "100%"},
		{"one of one", `{replicas: 1, strategy: {rollingUpdate: {maxUnavailable: 1, maxSurge: 1}}}`, int64(1)},
		{"one of two", `{replicas: 2, strategy: {rollingUpdate: {maxUnavailable: 1}}}`, "100%"},
		{"none", `{strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0}}}`, "100%"},
		{"a part", `{replicas: 2, strategy: {rollingUpdate: {maxUnavailable: 50%}}}`, "100%"},
		{"all", `{replicas: 2, strategy: {rollingUpdate: {maxUnavailable: 100%}}}`, "100%"},
		{"anew", `{strategy: {type: Recreate}}`, nil},
	} {
		objects, err := manifest.Parse([]byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: " + c.spec))
		if err != nil {
			t.Fatal(err)
		}
		if err := letGo(objects[0]); err != nil {
			t.Fatal(err)
		}
		got, _, _ := unstructured.NestedFieldNoCopy(objects[0].Object, "spec", "strategy", "rollingUpdate", "maxUnavailable")
		if !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
