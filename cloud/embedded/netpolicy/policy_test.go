package netpolicy

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	web    = "10.244.1.1" // shop, app=web
	db     = "10.244.1.2" // shop, app=db
	probe  = "10.244.1.3" // tools, app=probe
	host   = "192.168.0.1"
	other  = "192.168.0.2"
	beyond = "203.0.113.7"
)

func pod(namespace, name, ip string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), Labels: map[string]string{"app": name}},
		Spec: v1.PodSpec{Containers: []v1.Container{{Ports: []v1.ContainerPort{
			{Name: "sql", ContainerPort: 5432, Protocol: v1.ProtocolTCP}, {Name: "dns", ContainerPort: 53, Protocol: v1.ProtocolUDP},
		}}}},
		Status: v1.PodStatus{PodIP: ip, HostIP: host, Phase: v1.PodRunning},
	}
}

// newPolicy returns a policy of three pods with the given rules, in YAML, for those of shop.
func newPolicy(t *testing.T, specs ...string) *Policy {
	t.Helper()
	p := New(vnet.New(vnet.Config{}))
	for _, n := range []string{"shop", "tools"} {
		p.update(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n, Labels: map[string]string{"team": n}}}, false)
	}
	p.update(pod("shop", "web", web), false)
	p.update(pod("shop", "db", db), false)
	p.update(pod("tools", "probe", probe), false)
	for i, spec := range specs {
		np := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", UID: types.UID(rune('a' + i))}}
		if err := yaml.Unmarshal([]byte(spec), &np.Spec); err != nil {
			t.Fatal(err)
		}
		p.update(np, false)
	}
	return p
}

// admits judges "SRC > DST:PORT/PROTOCOL".
func admits(p *Policy, traffic string) bool {
	src, rest, _ := strings.Cut(traffic, " > ")
	dst, protocol, _ := strings.Cut(rest, "/")
	return p.Admit(netip.MustParseAddr(src), protocol, netip.MustParseAddrPort(dst))
}

func TestAdmit(t *testing.T) {
	const denyIngress = `{podSelector: {}, policyTypes: [Ingress]}`
	toDB := func(ports string) string {
		return `{podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress], ingress: [{ports: [` + ports + `]}]}`
	}
	from := func(peer string) string {
		return `{podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress], ingress: [{from: [` + peer + `]}]}`
	}
	to := func(peer string) string {
		return `{podSelector: {matchLabels: {app: web}}, policyTypes: [Egress], egress: [{to: [` + peer + `]}]}`
	}
	webDB, probeDB, webOut := web+" > "+db+":5432/tcp", probe+" > "+db+":5432/tcp", web+" > "+beyond+":443/tcp"
	tests := []struct {
		name     string
		policies []string
		traffic  string
		want     bool
	}{
		{"no policy", nil, webDB, true},
		{"deny all in", []string{denyIngress}, webDB, false},
		{"deny all in, from outside", []string{denyIngress}, beyond + " > " + db + ":5432/tcp", false},
		{"deny all in, going out", []string{denyIngress}, webOut, true},
		{"deny all in, of another namespace", []string{denyIngress}, web + " > " + probe + ":80/tcp", true},
		{"a node's own pods", []string{denyIngress}, host + " > " + db + ":5432/tcp", true},
		{"another node's pods", []string{denyIngress}, other + " > " + db + ":5432/tcp", false},
		{"itself", []string{`{podSelector: {}, policyTypes: [Ingress, Egress]}`}, db + " > " + db + ":5432/tcp", true},
		{"not selected", []string{toDB("{port: 1}")}, db + " > " + web + ":80/tcp", true},

		{"port", []string{toDB("{port: 5432}")}, webDB, true},
		{"port of another protocol", []string{toDB("{port: 5432, protocol: UDP}")}, webDB, false},
		{"another port", []string{toDB("{port: 5433}")}, webDB, false},
		{"port by name", []string{toDB("{port: sql}")}, webDB, true},
		{"name of another protocol", []string{toDB("{port: dns, protocol: UDP}")}, web + " > " + db + ":53/udp", true},
		{"no such name", []string{toDB("{port: http}")}, webDB, false},
		{"range", []string{toDB("{port: 5000, endPort: 6000}")}, webDB, true},
		{"below a range", []string{toDB("{port: 5433, endPort: 6000}")}, webDB, false},
		{"any port of a protocol", []string{toDB("{protocol: TCP}")}, webDB, true},
		{"one of several", []string{toDB("{port: 1}, {port: 5432}")}, webDB, true},

		{"pods", []string{from("{podSelector: {matchLabels: {app: web}}}")}, webDB, true},
		{"other pods", []string{from("{podSelector: {matchLabels: {app: probe}}}")}, webDB, false},
		{"pods of another namespace", []string{from("{podSelector: {}}")}, probeDB, false},
		{"a namespace", []string{from("{namespaceSelector: {matchLabels: {team: tools}}}")}, probeDB, true},
		{"another namespace", []string{from("{namespaceSelector: {matchLabels: {team: tools}}}")}, webDB, false},
		{"pods of a namespace", []string{from("{namespaceSelector: {}, podSelector: {matchLabels: {app: probe}}}")}, probeDB, true},
		{"other pods of a namespace", []string{from("{namespaceSelector: {matchLabels: {team: tools}}, podSelector: {matchLabels: {app: web}}}")}, probeDB, false},
		{"outside is no pod", []string{from("{namespaceSelector: {}}")}, beyond + " > " + db + ":5432/tcp", false},
		{"block", []string{from("{ipBlock: {cidr: 203.0.113.0/24}}")}, beyond + " > " + db + ":5432/tcp", true},
		{"except", []string{from("{ipBlock: {cidr: 203.0.113.0/24, except: [203.0.113.7/32]}}")}, beyond + " > " + db + ":5432/tcp", false},
		{"expressions", []string{from("{podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}}")}, webDB, false},

		{"policies add up", []string{denyIngress, from("{podSelector: {}}")}, webDB, true},
		{"out to pods", []string{to("{podSelector: {matchLabels: {app: db}}}")}, webDB, true},
		{"out to others", []string{to("{podSelector: {matchLabels: {app: db}}}")}, webOut, false},
		{"out to a block", []string{to("{ipBlock: {cidr: 0.0.0.0/0}}")}, webOut, true},
		{"out, but not in", []string{to("{podSelector: {}}"), denyIngress}, webDB, false},
		{"in, but not out", []string{from("{podSelector: {}}"), `{podSelector: {}, policyTypes: [Egress]}`}, webDB, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := admits(newPolicy(t, tt.policies...), tt.traffic); got != tt.want {
				t.Errorf("%s: %v", tt.traffic, got)
			}
		})
	}
}

func TestPodsChange(t *testing.T) {
	const from = `{podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]}`
	p := newPolicy(t, from)
	check := func(when, traffic string, want bool) {
		t.Helper()
		if admits(p, traffic) != want {
			t.Errorf("%s: %s: %v", when, traffic, !want)
		}
	}
	// The pod starts over with another address: the old one is nobody's.
	const moved = "10.244.1.40"
	p.update(pod("shop", "web", moved), false)
	check("after a move", moved+" > "+db+":80/tcp", true)
	check("after a move", web+" > "+db+":80/tcp", false)
	// Somebody else gets the address; what is heard of its last owner changes nothing.
	p.update(pod("tools", "late", moved), false)
	p.update(pod("shop", "web", moved), true)
	check("taken over", moved+" > "+db+":80/tcp", false)
	p.update(pod("tools", "late", moved), true)

	over := pod("shop", "web", web)
	p.update(over, false)
	check("back", web+" > "+db+":80/tcp", true)
	done := over.DeepCopy()
	done.Status.Phase = v1.PodSucceeded
	p.update(done, false)
	check("over", web+" > "+db+":80/tcp", false)
	onHost := pod("shop", "agent", host)
	onHost.Spec.HostNetwork = true
	p.update(onHost, false)
	if p.pods[netip.MustParseAddr(host)] != nil {
		t.Error("a pod on the node's network has its address")
	}
	for _, name := range []string{"web", "db", "probe"} {
		p.update(pod("", name, ""), true)
	}
	if len(p.pods)+len(p.addrs) != 0 {
		t.Errorf("something is left: %v %v", p.pods, p.addrs)
	}
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fake.NewClientset(pod("shop", "web", web), pod("shop", "db", db))
		f := informers.NewSharedInformerFactory(c, 0)
		p := New(vnet.New(vnet.Config{}))
		if _, err := p.Watch(f); err != nil {
			t.Fatal(err)
		}
		f.StartWithContext(t.Context())
		f.WaitForCacheSync(t.Context().Done())
		np := &networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "u"},
			Spec: networkingv1.NetworkPolicySpec{
				PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
				Ingress:     []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromString("sql"))}}}},
			},
		}
		policies := c.NetworkingV1().NetworkPolicies("shop")
		if _, err := policies.Create(t.Context(), np, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !admits(p, web+" > "+db+":5432/tcp") || admits(p, web+" > "+db+":80/tcp") {
			t.Error("the policy is not enforced")
		}
		if err := policies.Delete(t.Context(), "db", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !admits(p, web+" > "+db+":80/tcp") {
			t.Error("the policy is still enforced")
		}
	})
}
