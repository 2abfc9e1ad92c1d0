package kube

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// addNode gives a cluster a machine, with a port on it that leads to a service.
func addNode(t *testing.T, c *Cloud, address string, port int32) {
	t.Helper()
	client := c.names.client.CoreV1()
	_, err := client.Nodes().Create(t.Context(), &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Status:     v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: address}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := client.Services("shop").Get(t.Context(), "front", metav1.GetOptions{})
	if err == nil {
		s.Spec.Ports[0].NodePort = port
		_, err = client.Services("shop").Update(t.Context(), s, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A guest reaches what is in its namespaces, by whatever address, and nothing else: neither what others run nor the
// machines.
func TestGuestReachesItsOwn(t *testing.T) {
	c, _ := newCloud(t)
	addNode(t, c, "127.0.0.1", 32000)
	c.names.allowed = []string{"shop"}
	for _, address := range []string{
		"front.shop.svc.cluster.local:80", "10.96.0.7:80", "10.244.0.5:8080", "127.0.0.1:32000",
	} {
		conn, err := dial(t, c, address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if pod, _ := say(t, conn, "hello"); pod != "front-1" {
			t.Errorf("%s leads to %s", address, pod)
		}
		_ = conn.Close()
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0") // Of a machine that is a node.
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if _, err := dial(t, c, ln.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a port of a machine: %v", err)
	}
	c.names.allowed = []string{"other"}
	var dns *net.DNSError
	if _, err := dial(t, c, "front.shop.svc.cluster.local:80"); !errors.As(err, &dns) {
		t.Errorf("a service of others: %v", err)
	}
	for _, address := range []string{"10.96.0.7:80", "10.244.0.5:8080"} {
		if _, err := dial(t, c, address); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("%s, which is others': %v", address, err)
		}
	}
	if _, err := dial(t, c, "127.0.0.1:32000"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a node port of others: %v", err)
	}
}

// The lab itself connects to a pod by its name, wherever it is. What a guest dials does not lead there.
func TestDialPod(t *testing.T) {
	c, _ := newCloud(t)
	c.names.allowed = []string{"shop"}
	conn, err := c.DialPod(t.Context(), "aiopslab-load", "load-1", echoPort)
	if err != nil {
		t.Fatal(err)
	}
	if pod, answer := say(t, conn, "hello"); pod != "load-1" || answer != "hello" || conn.RemoteAddr().String() != "load-1.aiopslab-load:8080" {
		t.Errorf("%s says %s from %v", pod, answer, conn.RemoteAddr())
	}
	_ = conn.Close()
	if _, err := c.DialPod(t.Context(), "aiopslab-load", "gone", echoPort); err == nil || !strings.Contains(err.Error(), `pods "gone" not found`) {
		t.Errorf("a pod that is gone: %v", err)
	}
	if _, err := dial(t, c, "load-1.aiopslab-load:8080"); err == nil {
		t.Error("a guest reaches the load generator")
	}
}

func TestTenancy(t *testing.T) {
	c, _ := newCloud(t)
	c.run, c.load, c.names.allowed = "r1", "load", []string{"shop"}
	got := c.Tenancy()
	if got.Run != "r1" || len(got.Namespaces) != 1 || got.Labels[RunLabel] != "r1" || got.Load != "load" {
		t.Errorf("%+v", got)
	}
	got.Namespaces[0] = "kube-system"
	if c.names.may("kube-system") {
		t.Error("who asks can change it")
	}
}

// What Resolve returns has one context and needs no file.
func TestResolve(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"ca.crt": "a certificate",
		"config": `{apiVersion: v1, kind: Config, current-context: a,
clusters: [{name: c, cluster: {server: "https://192.0.2.1", certificate-authority: ca.crt}}, {name: other, cluster: {server: "https://192.0.2.2"}}],
users: [{name: u, user: {token: secret-of-u}}, {name: cloudy, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: get-token, interactiveMode: Never}}}],
contexts: [{name: a, context: {cluster: c, user: u}}, {name: b, context: {cluster: other, user: cloudy}}]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Kubeconfig: filepath.Join(dir, "config")}
	r, err := Resolve(o)
	if err != nil || r.Plugin || r.Context != "a" {
		t.Fatal(r, err)
	}
	got, err := clientcmd.Load(r.Config)
	if err != nil {
		t.Fatal(err)
	}
	if ca := string(got.Clusters["c"].CertificateAuthorityData); ca != "a certificate" {
		t.Errorf("the certificate is %q", ca)
	}
	if len(got.Contexts) != 1 || strings.Contains(string(r.Config), "192.0.2.2") {
		t.Errorf("it tells of other clusters:\n%s", r.Config)
	}
	o.Context = "b"
	if r, err = Resolve(o); err != nil || !r.Plugin || strings.Contains(string(r.Config), "secret-of-u") {
		t.Errorf("%v:\n%s", err, r.Config)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, Options{Config: r.Config}); err == nil || !strings.Contains(err.Error(), "the cluster of context b") {
		t.Error(err)
	}
}
