package guard

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/test/labtest"
)

// thief makes a service account with all rights and returns a token of its.
func (a *agent) thief(t *testing.T) string {
	t.Helper()
	a.run(t, "", []string{"create", "serviceaccount", "thief"}, "created")
	a.run(t, "", []string{"create", "clusterrolebinding", "thief-" + a.ns, "--clusterrole=cluster-admin", "--serviceaccount=" + a.ns + ":thief"}, "created")
	return strings.TrimSpace(a.run(t, "", []string{"create", "token", "thief"}))
}

// curl runs curl in the agent's pod, with a token.
func (a *agent) curl(t *testing.T, token string, args ...string) string {
	t.Helper()
	all := append([]string{"exec", "web", "--", "curl", "-sk", "-w", "\n%{http_code}", "-H", "Authorization: Bearer " + token}, args...)
	out, err := a.kubectl(t, "", all...)
	if err != nil {
		t.Errorf("curl %v: %v\n%s", args, err, out)
	}
	return out
}

// TestNoWayAround takes an identity of the agent's own making, from a pod and from the host, to
// everything in the cluster that answers for the API.
func TestNoWayAround(t *testing.T) {
	a := behind(t)
	token := a.thief(t)
	const server = "https://kubernetes.default.svc.cluster.local"
	pods := server + "/api/v1/namespaces/" + a.ns + "/pods"
	labtest.Await(t, func() (string, error) { // Rights take a moment.
		if out := a.curl(t, token, pods); !strings.Contains(out, `"name": "web"`) {
			return "", fmt.Errorf("pods: %.300s", out)
		}
		return "", nil
	})
	if out := a.curl(t, token, pods); strings.Contains(out, "managedFields") || strings.Contains(out, `"name": "load"`) {
		t.Errorf("a pod sees more than the agent: %s", out)
	}
	for _, address := range []string{"https://10.96.0.1", "https://172.18.0.2:6443"} {
		if out := a.curl(t, token, address+"/api/v1/namespaces/"+a.ns+"/pods/load"); !strings.HasSuffix(out, "\n404") {
			t.Errorf("a hidden pod at %s: %s", address, out)
		}
	}
	refused := map[string][]string{
		"impersonation":          {"-H", "Impersonate-User: system:admin", "-H", "Impersonate-Group: system:masters", pods},
		"metrics":                {server + "/metrics"},
		"goroutines":             {server + "/debug/pprof/goroutine?debug=2"},
		"flow control":           {server + "/debug/api_priority_and_fairness/dump_requests"},
		"configz":                {server + "/configz"},
		"the API server's logs":  {server + "/logs/"},
		"a kubelet's settings":   {"https://172.18.0.3:10250/configz"},
		"a kubelet's pods":       {"https://172.18.0.3:10250/pods"},
		"a kubelet's run":        {"-X", "POST", "-d", "cmd=id", "https://172.18.0.3:10250/run/" + a.ns + "/web/nginx"},
		"a kubelet by its proxy": {server + "/api/v1/nodes/node-1/proxy/configz"},
		"a kubelet's run by it":  {"-X", "POST", server + "/api/v1/nodes/node-1/proxy/run/" + a.ns + "/web/nginx?cmd=id"},
	}
	for what, args := range refused {
		if out := a.curl(t, token, args...); !strings.HasSuffix(out, "\n403") {
			t.Errorf("%s: %.400s", what, out)
		}
	}
	if out := a.curl(t, token, "https://172.18.0.3:10250/metrics/resource"); !strings.HasSuffix(out, "\n200") || !strings.Contains(out, "node_cpu_usage_seconds_total") {
		t.Errorf("a kubelet's metrics: %.300s", out)
	}
	before := len(a.journal())
	a.curl(t, token, "-X", "POST", "-H", "Content-Type: application/json", "-d", `{"metadata":{"name":"stolen"}}`, server+"/api/v1/namespaces/"+a.ns+"/configmaps")
	var found bool
	for _, e := range a.journal()[before:] {
		found = found || e.Resource == "configmaps" && e.Name == "stolen" && e.Status == 201 &&
			e.User == "system:serviceaccount:"+a.ns+":thief" && strings.HasPrefix(e.From, "10.244.")
	}
	if !found {
		t.Errorf("the write of a pod is not in the journal: %+v", a.journal()[before:])
	}
	// The API server proxies to itself without anybody's credentials.
	if out, err := a.kubectl(t, "", "get", "--raw", "/api/v1/namespaces/default/services/https:kubernetes:443/proxy/metrics"); err == nil {
		t.Errorf("metrics by way of a proxy: %.300s", out)
	}
	a.fromHost(t, token)
}

// hostConfig is for clients that connect to the API server's port on this machine.
func hostConfig(t *testing.T) *rest.Config {
	t.Helper()
	b, err := lab.Cloud.Kubeconfig("admin")
	if err != nil {
		t.Fatal(err)
	}
	c, err := clientcmd.RESTConfigFromKubeConfig(b)
	if err != nil {
		t.Fatal(err)
	}
	return rest.AnonymousClientConfig(c)
}

// fromHost takes the token to the API server's port on the machine, and streams through it.
func (a *agent) fromHost(t *testing.T, token string) {
	t.Helper()
	config := hostConfig(t)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Pods(a.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].ManagedFields != nil {
		t.Errorf("from the host: %+v, %v", list, err)
	}
	before := len(a.journal())
	u := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(a.ns).Name("web").SubResource("exec").
		VersionedParams(&v1.PodExecOptions{Command: []string{"echo", "hello"}, Stdout: true}, scheme.ParameterCodec).URL()
	for name, open := range map[string]func() (remotecommand.Executor, error){
		"WebSocket": func() (remotecommand.Executor, error) {
			return remotecommand.NewWebSocketExecutor(config, http.MethodGet, u.String())
		},
		"SPDY": func() (remotecommand.Executor, error) {
			return remotecommand.NewSPDYExecutor(config, http.MethodPost, u)
		},
	} {
		e, err := open()
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := e.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out}); err != nil || out.String() != "hello\n" {
			t.Errorf("exec over %s: %q, %v", name, out.String(), err)
		}
	}
	if j := a.journal()[before:]; len(j) != 2 || j[0].Subresource != "exec" || !strings.HasSuffix(j[0].User, ":thief") {
		t.Errorf("%+v", j)
	}
}

// TestCertificates: no certificate makes one of those who may do everything, and even theirs does not
// lead past the guard.
func TestCertificates(t *testing.T) {
	a := behind(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "me", Organization: []string{"system:masters"}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.client.CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "me-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a request for a certificate of system:masters: %v", err)
	}
	admin := hostConfig(t)
	b, err := lab.Cloud.Kubeconfig("admin")
	if err != nil {
		t.Fatal(err)
	}
	with, err := clientcmd.RESTConfigFromKubeConfig(b)
	if err != nil {
		t.Fatal(err)
	}
	admin.CertData, admin.KeyData = with.CertData, with.KeyData
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	pods, err := client.CoreV1().Pods(a.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 || pods.Items[0].ManagedFields != nil {
		t.Errorf("%+v, %v", pods, err)
	}
	if _, err := client.CoreV1().ConfigMaps(a.ns).Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "admins"}}, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	j := a.journal()
	if e := j[len(j)-1]; e.Name != "admins" || e.User != "kubernetes-admin" || e.From != "127.0.0.1" {
		t.Errorf("%+v", e)
	}
	admin.Impersonate.UserName = "system:apiserver"
	if client, err = kubernetes.NewForConfig(admin); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods(a.ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("impersonation: %v", err)
	}
}

// TestTokenOfTheAgent takes the agent's own token into the cluster's network.
func TestTokenOfTheAgent(t *testing.T) {
	a := behind(t)
	config := hostConfig(t)
	config.BearerToken = a.config.BearerToken
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || r.Status.UserInfo.Username != guard.DefaultUser {
		t.Errorf("%+v, %v", r, err)
	}
	config.BearerToken = "wrong"
	if client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods(a.ns).List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a wrong token was taken")
	}
}

// TestAnonymous gives rights to those who have no credentials.
func TestAnonymous(t *testing.T) {
	a := behind(t)
	_, err := a.client.RbacV1().RoleBindings(a.ns).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "all"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:anonymous"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(hostConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	labtest.Await(t, func() (any, error) {
		return client.CoreV1().ConfigMaps(a.ns).Create(t.Context(), &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "nobody"}}, metav1.CreateOptions{})
	})
	j := a.journal()
	if e := j[len(j)-1]; e.Name != "nobody" || e.User != "system:anonymous" || e.Status != 201 {
		t.Errorf("%+v", e)
	}
}

// TestMachine looks for the name of the machine where the control plane writes it.
func TestMachine(t *testing.T) {
	name, err := os.Hostname()
	if err != nil || name == "" || name == "localhost" {
		t.Skip("the machine has no name of its own")
	}
	a := behind(t)
	events, err := a.client.EventsV1().Events(a.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scheduled := false
	for _, e := range events.Items {
		scheduled = scheduled || e.Reason == "Scheduled"
		if strings.Contains(e.ReportingInstance, name) || strings.Contains(e.DeprecatedSource.Host, name) {
			t.Errorf("an event of %s tells of %s", e.Regarding.Name, e.ReportingInstance)
		}
	}
	if !scheduled {
		t.Errorf("no event of the scheduler: %+v", events.Items)
	}
	leases, err := a.client.CoordinationV1().Leases("kube-system").List(context.Background(), metav1.ListOptions{})
	if err != nil || len(leases.Items) == 0 {
		t.Fatalf("%+v, %v", leases, err)
	}
	for _, l := range leases.Items {
		if strings.Contains(l.Labels[v1.LabelHostname], name) || l.Spec.HolderIdentity != nil && strings.Contains(*l.Spec.HolderIdentity, name) {
			t.Errorf("the lease %s tells of %v, %s", l.Name, l.Labels, *l.Spec.HolderIdentity)
		}
	}
}
