package fault

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/astronomy"
	"github.com/aiopslab/aiopslab/app/everytest"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/internal/term"
)

// node parses the parameters of a document.
func node(t *testing.T, text string) *yaml.Node {
	t.Helper()
	n := &yaml.Node{}
	if err := yaml.Unmarshal([]byte(text), n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestKindsAreComplete(t *testing.T) {
	kinds := Kinds()
	if !slices.IsSortedFunc(kinds, func(a, b *Kind) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the kinds are not sorted")
	}
	for i, k := range kinds {
		if i > 0 && kinds[i-1].Name == k.Name {
			t.Errorf("%s is there twice", k.Name)
		}
		if k.Title == "" || k.Description == "" || strings.HasSuffix(k.Title, ".") {
			t.Errorf("%s: title %q, description %q", k.Name, k.Title, k.Description)
		}
		if k.Name != "noop" && (!slices.Contains(term.SystemLevels, k.Cause.SystemLevel) || !slices.Contains(term.FaultTypes, k.Cause.FaultType)) {
			t.Errorf("%s: cause %+v", k.Name, k.Cause)
		}
		for _, fixes := range []map[string]string{k.TrueFixes, k.MayFix} {
			for remedy, why := range fixes {
				if !slices.Contains(Remedies, remedy) || why == "" {
					t.Errorf("%s: fix %q: %q", k.Name, remedy, why)
				}
			}
		}
		// A rollback starts what was ever released before anew.
		if _, restarted := k.MayFix[RestartEverything]; restarted && k.MayFix[RollBackEverything] == "" {
			t.Errorf("%s: what is restarted may mend it, what is rolled back may not", k.Name)
		}
		for _, p := range k.Parameters() {
			if p.Name == "" || p.Doc == "" || p.Type == "" {
				t.Errorf("%s: parameter %+v", k.Name, p)
			}
		}
	}
}

// Every target that a kind offers can be bound with the defaults, and has a solution or none, always.
func TestTargetsCanBeBound(t *testing.T) {
	for _, a := range everytest.Apps() {
		for _, k := range Kinds() {
			for _, name := range k.Targets(a) {
				if _, ok := a.Service(name); !ok && name != "" {
					t.Errorf("%s: %s has no service %q", k.Name, a.Name, name)
				}
				target := Target{App: a, Service: name}
				if f, err := k.New(target, nil); err != nil || f == nil {
					t.Errorf("%s of %s: %v", k.Name, name, err)
				}
				if _, err := k.Fix(target, nil); err != nil {
					t.Errorf("%s of %s: %v", k.Name, name, err)
				}
			}
		}
	}
}

// The targets that AIOpsLab's problems name.
func TestTargets(t *testing.T) {
	for _, tt := range []struct {
		kind string
		app  *app.App
		want []string // are among the targets
		not  []string // are not
	}{
		{"misconfig_k8s", social.App(), []string{"user-service", "text-service", "post-storage-service"}, nil},
		{"misconfig_k8s", hotel.App(), []string{"memcached-profile", "frontend", "mongodb-geo"}, []string{"geo"}}, // Consul has its pod's address.
		{"scale_pods_to_zero", social.App(), []string{"user-service"}, nil},
		{"assign_to_non_existent_node", social.App(), []string{"user-service"}, nil},
		{"wrong_bin_usage", hotel.App(), []string{"profile", "geo", "frontend"}, []string{"consul", "mongodb-geo"}},
		{"auth_miss_mongodb", social.App(), []string{"url-shorten-mongodb"}, []string{"user-mongodb"}},
		{"auth_miss_mongodb", hotel.App(), nil, []string{"mongodb-geo"}},
		{"revoke_auth", hotel.App(), []string{"mongodb-geo", "mongodb-rate"}, []string{"mongodb-user", "geo"}},
		{"storage_user_unregistered", hotel.App(), []string{"mongodb-geo", "mongodb-rate"}, []string{"mongodb-user"}},
		{"misconfig_app", hotel.App(), []string{"geo"}, []string{"rate"}},
		{"feature_flag", astronomy.App(), []string{"ad", "cart", "frontend", "kafka", "payment", "checkout", "recommendation"}, []string{"quote", ""}},
		{"misconfig_k8s", astronomy.App(), []string{"cart", "kafka"}, []string{"accounting"}},
		{"misconfig_app", social.App(), nil, []string{"user-service"}},
		{"redeploy_without_pv", hotel.App(), []string{"", "mongodb-geo"}, []string{"geo"}},
		{"container_kill", hotel.App(), []string{"geo"}, nil},
		{"pod_kill", hotel.App(), []string{"user"}, nil},
		{"network_loss", hotel.App(), []string{"user"}, nil},
		{"network_duplicate", hotel.App(), []string{"consul"}, []string{"user"}},
		{"cpu_stress", hotel.App(), []string{"search", "geo"}, []string{"frontend"}},
		{"kernel_fault", hotel.App(), []string{"user"}, []string{"search"}},
		{"disk_woreout", hotel.App(), []string{"mongodb-reservation"}, []string{"geo"}},
		{"noop", social.App(), []string{""}, nil},
	} {
		k, err := Find(Kinds(), tt.kind)
		if err != nil {
			t.Fatal(err)
		}
		got := k.Targets(tt.app)
		for _, s := range tt.want {
			if !slices.Contains(got, s) {
				t.Errorf("%s of %s cannot go to %q: %v", tt.kind, tt.app.Name, s, got)
			}
		}
		for _, s := range tt.not {
			if slices.Contains(got, s) {
				t.Errorf("%s of %s can go to %q", tt.kind, tt.app.Name, s)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	if _, err := Find(Kinds(), "misconfig_k8"); err == nil || err.Error() != `there is no fault "misconfig_k8"; did you mean "misconfig_k8s"?` {
		t.Error(err)
	}
	if _, err := Find(Kinds(), "gremlins"); err == nil || !strings.Contains(err.Error(), "; there are assign_to_non_existent_node, ") {
		t.Error(err)
	}
	for _, tt := range []struct {
		kind, target, params string
		want                 string
	}{
		{"misconfig_k8s", "user-servce", "", `misconfig_k8s cannot go to "user-servce" of social-network; did you mean "user-service"?`},
		{"misconfig_k8s", "", "", `misconfig_k8s needs a target of social-network: one of nginx-thrift, `},
		{"auth_miss_mongodb", "jaeger", "", `auth_miss_mongodb cannot go to "jaeger" of social-network; it can go to url-shorten-mongodb`},
		{"misconfig_app", "text-service", "", `misconfig_app cannot go to any service of social-network`},
		{"misconfig_k8s", "user-service", "{prot: 1}", `misconfig_k8s:1: unknown field "prot"; did you mean "port"?`},
		{"misconfig_k8s", "user-service", "{port: high}", "misconfig_k8s:1: parameter \"port\": want a whole number, not \"high\""},
		{"misconfig_k8s", "user-service", "[1]", `misconfig_k8s:1: parameters are written as {name: value, ...}`},
		{"misconfig_k8s", "user-service", "{port: 0}", `misconfig_k8s:1: parameter "port" must be between 1 and 65535`},
		{"misconfig_k8s", "user-service", "{instead_of: 80}", `misconfig_k8s: the Service user-service has no target port 80 to change to 9999`},
		{"assign_to_non_existent_node", "user-service", `{node: ""}`, `assign_to_non_existent_node:1: parameter "node" must not be empty`},
		{"wrong_bin_usage", "user-service", "{binary: geo}", `wrong_bin_usage: parameter "binary": "geo" is no command that user-service could run by mistake; there are media-frontend, nginx-thrift`},
		{"network_loss", "user-service", "{loss: 99}", `network_loss:1: parameter "loss" is a part of all: at most 1`},
		{"network_loss", "user-service", "{los: 0.9, nod: true}", "network_loss:1: unknown field \"los\"; did you mean \"loss\"?\nnetwork_loss:1: unknown field \"nod\"; did you mean \"node\"?"},
		{"network_delay", "user-service", "{delay: 1s, jitter: 2s}", `network_delay:1: parameter "jitter" must not be negative, and at most as much as "delay"`},
		{"network_delay", "user-service", "{direction: up}", `network_delay:1: parameter "direction": it is "up", and must be to, from or both`},
		{"network_delay", "user-service", "{every: 5s}", `network_delay:1: parameter "every" and "for" go together`},
		{"pod_kill", "user-service", "{every: 5s, for: 5s}", `pod_kill:1: parameter "for" must be shorter than "every"`},
		{"network_bandwidth", "user-service", "{rate: 0}", `network_bandwidth:1: parameter "rate" must be more than 0`},
		{"network_loss", "user-mongodb", "{node: true}", `network_loss: parameter "node": user-mongodb has a volume on its node and cannot move off it; leave node out`},
		{"container_kill", "user-service", "{containers: [main]}", `container_kill: parameter "containers": user-service has no container "main"; it has user-service`},
		{"memory_stress", "user-service", "{memory: much}", `memory_stress:1: parameter "memory": "much" is no amount such as 512Mi`},
		{"cpu_stress", "user-service", "{cores: 0}", `cpu_stress:1: parameter "cores" and "slow" must be more than 0`},
		{"kernel_fault", "user-service", "{percent: 0}", `kernel_fault:1: parameter "percent" must be more than 0 and at most 100`},
		{"disk_woreout", "user-mongodb", "{path: data}", `disk_woreout:1: parameter "path" must be absolute`},
	} {
		k, err := Find(Kinds(), tt.kind)
		if err != nil {
			t.Fatal(err)
		}
		_, err = k.New(Target{App: social.App(), Service: tt.target}, node(t, tt.params))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s %s %s: %v, want %s", tt.kind, tt.target, tt.params, err, tt.want)
		}
	}
	if _, err := noop().New(Target{}, nil); err == nil {
		t.Error("a fault without an application")
	}
}

func TestParameters(t *testing.T) {
	k, _ := Find(Kinds(), "network_delay")
	got := map[string]Parameter{}
	for _, p := range k.Parameters() {
		got[p.Name] = p
	}
	for name, want := range map[string][2]string{
		"delay": {"duration", "10s"}, "jitter": {"duration", ""}, "direction": {"string", "to"}, "node": {"boolean", ""}, "every": {"duration", ""},
	} {
		if p := got[name]; p.Type != want[0] || p.Default != want[1] {
			t.Errorf("%s: %+v, want %v", name, p, want)
		}
	}
	if len(got) != 8 {
		t.Errorf("%d parameters", len(got))
	}
	disk, _ := Find(Kinds(), "disk_woreout")
	for _, p := range disk.Parameters() {
		if p.Name == "methods" && (p.Type != "list" || p.Default != "write, fsync") {
			t.Errorf("%+v", p)
		}
	}
}

// docs/faults.md has a table of all kinds with their titles, and shows example_test.go as it is.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Kinds() {
		if row := "| `" + k.Name + "` | " + k.Title + " |"; !strings.Contains(string(doc), row) {
			t.Errorf("docs/faults.md lacks the row\n%s", row)
		}
	}
	code, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), "```go\n"+string(code)+"```\n") {
		t.Error("docs/faults.md does not show example_test.go as it is; copy it there")
	}
}
