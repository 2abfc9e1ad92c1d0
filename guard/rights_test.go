package guard

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const rbacPath = "/apis/rbac.authorization.k8s.io/v1/"

var tidbClusters = schema.GroupResource{Group: "pingcap.com", Resource: "tidbclusters"}

// Where the lab is a guest, an agent has its namespaces, and all that the guard makes can be found again.
func TestRightsOfAGuest(t *testing.T) {
	f := newFake(t)
	g, err := Start(t.Context(), Options{
		Upstream: &rest.Config{Host: f.URL, BearerToken: "lab"}, Groups: []string{"sre-team-r1"},
		Namespaces: []string{"shop", "observe"}, Labels: map[string]string{"run": "r1"},
		Custom: []schema.GroupResource{tidbClusters},
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
	for name, want := range map[string]bool{"sre-team-r1": false, "sre-team-r1-namespace": true} {
		rules, _ := json.Marshal(f.objects[rbacPath+"clusterroles/"+name]["rules"])
		if got := strings.Contains(string(rules), `"tidbclusters"`); got != want {
			t.Errorf("%s is about the application's own kinds: %v", name, got)
		}
	}
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
	for _, r := range within([]schema.GroupResource{tidbClusters}) {
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
	for _, r := range around([]string{"pv-1"}) {
		if slices.Equal(r.ResourceNames, []string{"pv-1"}) && slices.Equal(r.Resources, []string{"persistentvolumes"}) &&
			slices.Equal(r.Verbs, []string{"update", "patch"}) {
			continue // What it may change there, the guard says.
		}
		if !slices.Equal(r.Verbs, []string{"get", "list", "watch"}) || slices.Contains(r.Resources, "*") {
			t.Errorf("outside of a namespace: %v of %v", r.Verbs, r.Resources)
		}
	}
}

// An agent who restores an operator's role must have the rights that it gives, or the API server takes it for an
// escalation.
func TestRightsCoverAnOperator(t *testing.T) {
	all := within([]schema.GroupResource{tidbClusters})
	for _, want := range []struct{ group, resource, verb string }{
		{"pingcap.com", "tidbclusters", "patch"},
		{"pingcap.com", "tidbclusters/status", "update"},
		{"pingcap.com", "tidbclusters/finalizers", "update"},
		{"apps", "statefulsets", "delete"},
		{"", "persistentvolumeclaims", "watch"},
	} {
		if !slices.ContainsFunc(all, func(r rbacv1.PolicyRule) bool {
			has := slices.Contains(r.Resources, want.resource) || slices.Contains(r.Resources, "*")
			return has && slices.Contains(r.APIGroups, want.group) && slices.Contains(r.Verbs, want.verb)
		}) {
			t.Errorf("an agent may not %s %s of %q", want.verb, want.resource, want.group)
		}
	}
	// What else an operator of the group's may act on is not the application's.
	if slices.ContainsFunc(all, func(r rbacv1.PolicyRule) bool {
		return slices.Contains(r.APIGroups, "pingcap.com") && slices.Contains(r.Resources, "*")
	}) {
		t.Error("an agent has all resources of a group that somebody else may have a part of")
	}
}
