package incluster

import (
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// pod returns a machine with a service account.
func pod(t *testing.T, w *kittest.World, ca []byte) *kittest.Machine {
	m := w.Machine("pod", "10.244.0.3")
	m.Vars = map[string]string{"KUBERNETES_SERVICE_HOST": "10.244.0.2", "KUBERNETES_SERVICE_PORT": "6443"}
	m.Write(dir+"/ca.crt", string(ca))
	m.Write(dir+"/token", "first\n")
	m.Write(dir+"/namespace", "shop\n")
	return m
}

// TestConfig talks to a server over the pod's network, with the pod's token.
func TestConfig(t *testing.T) {
	w := kittest.New(t)
	l, err := w.Machine("server", "10.244.0.2").Env().Net.Listen("tcp", ":6443")
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Header.Get("Authorization")+" "+r.UserAgent())
	}))
	srv.Listener.Close()
	srv.Listener = named{l}
	srv.StartTLS()
	defer srv.Close()
	m := pod(t, w, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	config, err := Config(m.Env("/app"))
	if err != nil {
		t.Fatal(err)
	}
	config.ServerName = "example.com" // What the test server's certificate is for.
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	res, err := client.Get(config.Host + "/version")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); string(b) != "Bearer first /app" {
		t.Errorf("%s", b)
	}
}

// A program that has ended is gone, with whatever its client was made from.
func TestNothingIsKept(t *testing.T) {
	m := pod(t, kittest.New(t), nil)
	gone := make(chan struct{})
	func() {
		env := m.Env("/app")
		n := &watched{Network: env.Net}
		runtime.AddCleanup(n, func(done chan struct{}) { close(done) }, gone)
		env.Net = n
		config, err := Config(env)
		if err != nil {
			t.Fatal(err)
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		n.client = client // As a program has it that is reached from its network.
	}()
	for range 100 {
		runtime.GC()
		select {
		case <-gone:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("the network of a program that has ended is still there")
}

// watched is a network from which the program can be reached.
type watched struct {
	kit.Network
	client *http.Client
}

// named is a listener whose address can be part of a URL.
type named struct{ net.Listener }

func (named) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 244, 0, 2), Port: 6443} }

// TestToken shows that a token is read anew: the kubelet renews it.
func TestToken(t *testing.T) {
	m := pod(t, kittest.New(t), nil)
	s := tokenSource{m.Env("/app")}
	for _, want := range []string{"first", "second"} {
		m.Write(dir+"/token", want)
		if got, err := s.Token(); err != nil || got.AccessToken != want {
			t.Errorf("%v, %v", got, err)
		}
	}
}

func TestMissing(t *testing.T) {
	m := pod(t, kittest.New(t), nil)
	if got := Namespace(m.Env("/app")); got != "shop" {
		t.Errorf("namespace %q", got)
	}
	for _, tt := range []struct{ name, want string }{ // The authority is read first.
		{"token", "read the service account's token: open " + dir + "/token: no such file or directory"},
		{"ca.crt", "read the cluster's certificate authority: open " + dir + "/ca.crt: no such file or directory"},
	} {
		if err := m.Namespace.As(kit.User{}).Remove(dir + "/" + tt.name); err != nil {
			t.Fatal(err)
		}
		if _, err := Config(m.Env("/app")); err == nil || err.Error() != tt.want {
			t.Errorf("without %s: %v", tt.name, err)
		}
	}
	if err := m.Env().RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if got := Namespace(m.Env("/app")); got != "default" {
		t.Errorf("namespace %q", got)
	}
	m.Vars = nil
	if _, err := Config(m.Env("/app")); err == nil || !strings.Contains(err.Error(), "KUBERNETES_SERVICE_HOST") {
		t.Errorf("outside a pod: %v", err)
	}
}
