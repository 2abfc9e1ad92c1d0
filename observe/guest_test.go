package observe

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/internal/manifest"
)

func confined(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifest.Read(Manifests())
	if err != nil {
		t.Fatal(err)
	}
	list, err := confine(objects, &cloud.Tenancy{
		Run: "r1", Namespaces: []string{"shop-2", "observe-2"}, Suffix: "-2",
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Telemetry of a guest has no right to look at what others run, and shares no name with what is theirs.
func TestGuestHasNoRightsElsewhere(t *testing.T) {
	roles, bound := map[string][]rbacv1.PolicyRule{}, map[string][]string{} // by role: the namespaces; "" for all
	for _, u := range confined(t) {
		switch u.GetKind() {
		case "ClusterRole":
			var r rbacv1.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &r); err != nil {
				t.Fatal(err)
			}
			roles[r.Name] = r.Rules
		case "ClusterRoleBinding", "RoleBinding":
			role, _, _ := unstructured.NestedString(u.Object, "roleRef", "name")
			bound[role] = append(bound[role], u.GetNamespace())
		default:
			continue
		}
		if u.GetNamespace() == "" && !strings.Contains(u.GetName(), "-r1") {
			t.Errorf("%s %s may be others'", u.GetKind(), u.GetName())
		}
	}
	if len(roles) != 4 {
		t.Errorf("%d roles", len(roles))
	}
	for name, rules := range roles {
		where := bound[name]
		if slices.Equal(where, []string{"shop-2", "observe-2"}) {
			continue
		}
		if !slices.Equal(where, []string{""}) {
			t.Errorf("%s is bound in %q", name, where)
		}
		for _, r := range rules {
			for _, resource := range r.Resources {
				if !slices.Contains(wide, resource) {
					t.Errorf("%s may %v %s everywhere", name, r.Verbs, resource)
				}
			}
		}
	}
}

// Telemetry of one run takes nothing that another run beside it needs.
func TestGuestsSideBySide(t *testing.T) {
	for _, u := range confined(t) {
		name := u.GetKind() + " " + u.GetName()
		if ns := u.GetNamespace(); ns != "" && ns != "observe-2" && ns != "shop-2" {
			t.Errorf("%s is in %s", name, ns)
		}
		if u.GetKind() == "Namespace" && u.GetName() != "observe-2" {
			t.Errorf("%s is others'", name)
		}
		b, err := u.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		for _, shared := range []string{`"nodePort"`, `"namespace":"observe"`, "observe.svc"} {
			if strings.Contains(string(b), shared) {
				t.Errorf("%s has %s", name, shared)
			}
		}
	}
}

// Nobody else's pods are scraped, listed or counted.
func TestGuestWatchesItsOwn(t *testing.T) {
	found := false
	for _, u := range confined(t) {
		if u.GetName() == stateMetrics && u.GetKind() == "Deployment" {
			b, _ := u.MarshalJSON()
			found = strings.Contains(string(b), `"--namespaces=shop-2,observe-2"`)
		}
		text, ok, _ := unstructured.NestedString(u.Object, "data", "prometheus.yml")
		if !ok {
			continue
		}
		c, err := config.Load(text, promslog.NewNopLogger())
		if err != nil {
			t.Fatal(err)
		}
		pods, nodes := 0, 0
		for _, s := range c.ScrapeConfigs {
			for _, d := range s.ServiceDiscoveryConfigs {
				k, ok := d.(*kubernetes.SDConfig)
				switch {
				case !ok:
				case k.Role == kubernetes.RoleNode:
					nodes++
					last := s.MetricRelabelConfigs[len(s.MetricRelabelConfigs)-1]
					if last.Action != "keep" || !last.Regex.MatchString("shop-2") || !last.Regex.MatchString("") || last.Regex.MatchString("theirs") {
						t.Errorf("%s keeps %s", s.JobName, last.Regex)
					}
				default:
					pods++
					if !slices.Equal(k.NamespaceDiscovery.Names, []string{"shop-2", "observe-2"}) {
						t.Errorf("%s looks in %v", s.JobName, k.NamespaceDiscovery.Names)
					}
				}
			}
		}
		if pods != 1 || nodes != 2 {
			t.Errorf("%d jobs for pods, %d for nodes", pods, nodes)
		}
	}
	if !found {
		t.Error("kube-state-metrics tells of all namespaces")
	}
}
