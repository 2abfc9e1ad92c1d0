package guard

import (
	"slices"
	"testing"

	"k8s.io/client-go/rest"
)

const rbacPath = "/apis/rbac.authorization.k8s.io/v1/"

// Where the lab is a guest, an agent has its namespaces, and all that the guard makes can be found again.
func TestRightsOfAGuest(t *testing.T) {
	f := newFake(t)
	g, err := Start(t.Context(), Options{
		Upstream: &rest.Config{Host: f.URL, BearerToken: "lab"}, Groups: []string{"sre-team-r1"},
		Namespaces: []string{"shop", "observe"}, Labels: map[string]string{"run": "r1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for _, path := range []string{
		"clusterroles/sre-team-r1", "clusterroles/sre-team-r1-namespace", "clusterrolebindings/sre-team-r1",
		"namespaces/shop/rolebindings/sre-team-r1", "namespaces/observe/rolebindings/sre-team-r1",
	} {
		if !f.has(rbacPath + path) {
			t.Errorf("there is no %s", path)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for path, o := range f.objects {
		labels, _ := o["metadata"].(map[string]any)["labels"].(map[string]any)
		if ns := o["metadata"].(map[string]any)["namespace"]; ns == nil && labels["run"] != "r1" {
			t.Errorf("%s has the labels %v", path, labels)
		}
		ref, ok := o["roleRef"].(map[string]any)
		if !ok {
			continue
		}
		want := "sre-team-r1-namespace"
		if o["metadata"].(map[string]any)["namespace"] == nil {
			want = "sre-team-r1"
		}
		if ref["name"] != want {
			t.Errorf("%s gives the role %v", path, ref["name"])
		}
	}
}

// No right leads out of a namespace: not to more rights, not to another identity, not to the labels that keep pods
// from their nodes, and not to the nodes.
func TestNoRightLeadsOut(t *testing.T) {
	for _, r := range within() {
		for _, verb := range []string{"*", "escalate", "bind", "impersonate", "approve", "sign"} {
			if slices.Contains(r.Verbs, verb) {
				t.Errorf("%v has the verb %s", r.Resources, verb)
			}
		}
		if slices.Contains(r.APIGroups, "*") || slices.Contains(r.APIGroups, "") && slices.Contains(r.Resources, "*") {
			t.Errorf("%v of %v can be about anything", r.Resources, r.APIGroups)
		}
		if slices.Contains(r.Resources, "namespaces") && !slices.Equal(r.Verbs, []string{"get"}) {
			t.Errorf("a namespace can be changed: %v", r.Verbs)
		}
		for _, resource := range []string{"nodes", "nodes/proxy", "persistentvolumes"} {
			if slices.Contains(r.Resources, resource) {
				t.Errorf("it is about %s", resource)
			}
		}
	}
	for _, r := range around() {
		if !slices.Equal(r.Verbs, []string{"get", "list", "watch"}) || slices.Contains(r.Resources, "*") {
			t.Errorf("outside of a namespace: %v of %v", r.Verbs, r.Resources)
		}
	}
}
