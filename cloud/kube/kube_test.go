package kube

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/utils/ptr"
)

const patience = time.Minute

// Ports of every pod of the fake cluster, by what is there.
const (
	echoPort   = 8080 // says which pod it is, then what it was told
	deafPort   = 8081 // reads nothing and never hangs up
	floodPort  = 8082 // sends and sends
	closedPort = 8083
	brokenPort = 8084 // the kubelet fails
)

// kubelet serves the port-forward of an API server, over SPDY alone, and counts the tunnels.
type kubelet struct {
	tunnels, ended atomic.Int32
	slow           chan struct{} // until it is closed, nothing is answered; nil for no such wait
}

func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pod := strings.Split(r.URL.Path, "/")[6]
	if pod == "gone" {
		http.Error(w, `pods "gone" not found`, http.StatusNotFound)
		return
	}
	if r.Header.Get("Upgrade") == "websocket" {
		http.Error(w, "no WebSockets", http.StatusBadRequest)
		return
	}
	k.tunnels.Add(1)
	defer k.ended.Add(1)
	if k.slow != nil {
		<-k.slow
	}
	portforward.ServePortForward(w, r, k, pod, "", nil, time.Hour, patience, []string{portforward.ProtocolV1Name})
}

// PortForward implements portforward.PortForwarder.
func (k *kubelet) PortForward(_ context.Context, pod string, _ string, port int32, s io.ReadWriteCloser) error {
	defer s.Close()
	switch port {
	case echoPort:
		fmt.Fprintln(s, pod)
		_, err := io.Copy(s, s)
		return err
	case deafPort:
		select {}
	case floodPort:
		for {
			if _, err := s.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
				return nil
			}
		}
	case closedPort:
		return errors.New("failed to connect to localhost:8083 inside namespace: dial tcp4 127.0.0.1:8083: connect: connection refused")
	}
	return errors.New("the sandbox is not there")
}

func slice(service string, port int32, pods ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: service + "-1", Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(port)}},
	}
	for _, p := range pods {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Hostname: ptr.To(p), Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(!strings.HasPrefix(p, "unready"))},
			TargetRef: &v1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: p},
		})
	}
	return s
}

func service(name, ip string) *v1.Service {
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"},
		Spec: v1.ServiceSpec{
			ClusterIP: ip, ClusterIPs: []string{ip}, Ports: []v1.ServicePort{{Name: "http", Port: 80}},
		},
	}
}

// newCloud is a cluster with a few services.
func newCloud(t *testing.T) (*Cloud, *kubelet) {
	t.Helper()
	k := &kubelet{}
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	objects := []runtime.Object{
		service("front", "10.96.0.7"), slice("front", echoPort, "front-1", "unready-2"),
		service("empty", "10.96.0.8"), slice("empty", echoPort, "unready-1"),
		service("deaf", "10.96.0.9"), slice("deaf", deafPort, "deaf-1"),
		service("flood", "10.96.0.10"), slice("flood", floodPort, "flood-1"),
		service("closed", "10.96.0.11"), slice("closed", closedPort, "closed-1"),
		service("broken", "10.96.0.12"), slice("broken", brokenPort, "broken-1"),
		service("gone", "10.96.0.13"), slice("gone", echoPort, "gone"),
		service("store", v1.ClusterIPNone), slice("store", echoPort, "store-0", "store-1"),
		&v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "front-1", Namespace: "shop"},
			Status:     v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.244.0.5"},
		},
	}
	config := &rest.Config{Host: server.URL}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cloud{config: config, names: newNames(fake.NewClientset(objects...)), pool: newPool(client, config)}
	t.Cleanup(func() { _ = c.Close() })
	return c, k
}

func dial(t *testing.T, c *Cloud, address string) (net.Conn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return c.Dial(ctx, "tcp", address)
}

// say sends a line, and returns the pod that answers and what it says.
func say(t *testing.T, conn net.Conn, text string) (pod, answer string) {
	t.Helper()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintln(conn, text); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	for _, line := range []*string{&pod, &answer} {
		text, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		*line = strings.TrimSpace(text)
	}
	return pod, answer
}

func TestDial(t *testing.T) {
	c, _ := newCloud(t)
	for address, want := range map[string]string{
		"front.shop.svc.cluster.local:80":           "front-1",
		"front.shop.svc:80":                         "front-1",
		"front.shop:80":                             "front-1",
		"FRONT.shop.svc.cluster.local.:80":          "front-1",
		"10.96.0.7:80":                              "front-1",
		"store-1.store.shop.svc.cluster.local:8080": "store-1",
	} {
		conn, err := dial(t, c, address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if pod, answer := say(t, conn, "hello"); pod != want || answer != "hello" {
			t.Errorf("%s: %s answers %q", address, pod, answer)
		}
		if conn.RemoteAddr().String() != address {
			t.Errorf("the remote address is %v, not %s", conn.RemoteAddr(), address)
		}
		_ = conn.Close()
	}
}

func TestDialFails(t *testing.T) {
	c, _ := newCloud(t)
	var dns *net.DNSError
	for _, address := range []string{
		"nobody.shop.svc.cluster.local:80", "front:80", "a.b.c.d:80", ".shop.svc:80", "store-7.store.shop.svc:8080",
	} {
		if _, err := dial(t, c, address); !errors.As(err, &dns) || !dns.IsNotFound {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"empty.shop.svc:80", "front.shop.svc:81"} {
		if _, err := dial(t, c, address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := dial(t, c, "192.0.2.1:80"); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Error(err)
	}
	if _, err := dial(t, c, "gone.shop.svc:80"); err == nil || !strings.Contains(err.Error(), "forward a port of pod gone") {
		t.Error(err)
	}
	if _, err := c.Dial(t.Context(), "udp", "front.shop.svc:80"); err == nil {
		t.Error("there is UDP")
	}
	for _, address := range []string{"front.shop.svc", "front.shop.svc:http", "front.shop.svc:70000"} {
		if _, err := dial(t, c, address); err == nil {
			t.Errorf("%s can be dialled", address)
		}
	}
}

// Why nobody answers is told to who reads, since the API server has agreed by then.
func TestRefused(t *testing.T) {
	c, _ := newCloud(t)
	for address, want := range map[string]string{
		"closed.shop.svc:80": "read tcp closed.shop.svc:80: connection refused",
		"broken.shop.svc:80": "the sandbox is not there",
	} {
		conn, err := dial(t, c, address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err = conn.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
		_ = conn.Close()
	}
}

// Connections that follow one another share a tunnel; those at the same time have their own.
func TestTunnelsAreKept(t *testing.T) {
	c, k := newCloud(t)
	for range 5 {
		conn, err := dial(t, c, "front.shop.svc:80")
		if err != nil {
			t.Fatal(err)
		}
		say(t, conn, "hello")
		_ = conn.Close()
		await(t, "the tunnel is back", func() bool { return c.pool.idling() == 1 })
	}
	if n := k.tunnels.Load(); n != 1 {
		t.Errorf("%d tunnels for connections that followed one another", n)
	}
	var conns []net.Conn
	for range 3 {
		conn, err := dial(t, c, "front.shop.svc:80")
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	if n := k.tunnels.Load(); n != 3 {
		t.Errorf("%d tunnels for three connections", n)
	}
	for _, conn := range conns {
		say(t, conn, "hello")
		_ = conn.Close()
	}
}

// Who dials a cluster that is slow to answer does not make it slower, and what it has opened in the end is used.
func TestSlowTunnels(t *testing.T) {
	c, k := newCloud(t)
	k.slow = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	var dials sync.WaitGroup
	for range 10 * maxOpening {
		dials.Go(func() {
			if _, err := c.Dial(ctx, "tcp", "front.shop:80"); !errors.Is(err, context.Canceled) {
				t.Errorf("dialled: %v", err)
			}
		})
	}
	await(t, "tunnels to be asked for", func() bool { return k.tunnels.Load() >= maxOpening })
	cancel()
	dials.Wait()
	if n := k.tunnels.Load(); n != maxOpening {
		t.Errorf("%d tunnels were asked for", n)
	}
	close(k.slow)
	await(t, "tunnels to be kept", func() bool { return c.pool.idling() == maxOpening })
	conn, err := dial(t, c, "front.shop:80")
	if err != nil {
		t.Fatal(err)
	}
	if pod, _ := say(t, conn, "hello"); pod != "front-1" {
		t.Errorf("it is %s", pod)
	}
	if n := k.tunnels.Load(); n != maxOpening {
		t.Errorf("%d tunnels were asked for in the end", n)
	}
}

// Who does not read, or never hangs up, harms nobody else, and is gone when this side has hung up.
func TestDeafAndFlooding(t *testing.T) {
	c, k := newCloud(t)
	for _, address := range []string{"deaf.shop.svc:80", "flood.shop.svc:80"} {
		bad, err := dial(t, c, address)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := dial(t, c, "front.shop.svc:80")
		if err != nil {
			t.Fatal(err)
		}
		say(t, conn, "hello")
		_ = conn.Close()
		_ = bad.SetReadDeadline(time.Now().Add(-time.Second))
		if _, err := bad.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: a read after the deadline: %v", address, err)
		}
		_ = bad.Close()
		if _, err := bad.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: a write after it was closed: %v", address, err)
		}
	}
	await(t, "the tunnels end", func() bool { return k.ended.Load() == 2 })
}

// Close ends what is open, and nothing can be opened any more.
func TestClose(t *testing.T) {
	c, k := newCloud(t)
	conn, err := dial(t, c, "front.shop.svc:80")
	if err != nil {
		t.Fatal(err)
	}
	say(t, conn, "hello")
	_ = c.Close()
	_ = c.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection of a closed cloud: %v", err)
	}
	await(t, "the tunnel ends", func() bool { return k.ended.Load() == 1 })
	if _, err := dial(t, c, "front.shop.svc:80"); !errors.Is(err, errClosed) {
		t.Errorf("a closed cloud: %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	dead := httptest.NewServer(nil)
	dead.Close()
	good := write("good", `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "`+dead.URL+`"}}],
		users: [{name: u, user: {}}], contexts: [{name: a, context: {cluster: c, user: u}}]}`)
	for want, o := range map[string]Options{
		"read the kubeconfig: ":                         {Kubeconfig: filepath.Join(dir, "absent")},
		"read the kubeconfig: error loading config":     {Kubeconfig: write("bad", "{{{")},
		"the kubeconfig has no current context":         {Kubeconfig: good},
		`the kubeconfig has no context "b"`:             {Kubeconfig: good, Context: "b"},
		"the cluster of context a does not answer: Get": {Kubeconfig: good, Context: "a"},
	} {
		if c, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, %v", o, c, err)
		}
	}
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// idling is how many tunnels wait for a connection.
func (p *pool) idling() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range p.idle {
		n += len(list)
	}
	return n
}
