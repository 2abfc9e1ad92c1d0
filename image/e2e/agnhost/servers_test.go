package agnhost

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestLiveness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := pod(t)
		start(m, "liveness")
		m.WaitListen(":8080")
		time.Sleep(10*time.Second - time.Millisecond)
		if code, body := get(t, m, "http://localhost:8080/healthz"); code != 200 {
			t.Errorf("young: %d %s", code, body)
		}
		time.Sleep(time.Second)
		if code, body := get(t, m, "http://localhost:8080/healthz"); code != 500 || !strings.Contains(body, "s old, which is over 10s") {
			t.Errorf("old: %d %s", code, body)
		}
	})
}

func TestTestWebserver(t *testing.T) {
	m := pod(t)
	m.Write("/results/agnhost_udp@kubernetes.default", "OK\n")
	start(m, "test-webserver", "--port", "81")
	m.WaitListen(":81")
	tests := []struct {
		path string
		code int
		want string
	}{
		{"/results/agnhost_udp@kubernetes.default", 200, "OK\n"},
		{"/results", 301, ""},
		{"/results/", 200, `<a href="agnhost_udp@kubernetes.default">`},
		{"/", 200, `<a href="agnhost">agnhost</a>`},
		{"/none", 404, "404 page not found"},
	}
	for _, tt := range tests {
		code, body := get(t, m, "http://localhost:81"+tt.path)
		if code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s", tt.path, code, body)
		}
	}
}

func TestPicturesAreServed(t *testing.T) {
	m := kittest.New(t).Machine("pod", "10.244.0.2")
	image := Nautilus(nil)
	m.Install(image)
	m.Start(Main, append(image.Entrypoint, image.Cmd...)...)
	m.WaitListen(":80")
	if _, body := get(t, m, "http://localhost/data.json"); body != "{\n  \"image\": \"nautilus.jpg\"\n}\n" {
		t.Errorf("data.json: %s", body)
	}
	if _, body := get(t, m, "http://localhost/nautilus.jpg"); http.DetectContentType([]byte(body)) != "image/jpeg" {
		t.Error("nautilus.jpg is no picture")
	}
}

func TestPorter(t *testing.T) {
	m := pod(t)
	m.Vars["SERVE_PORT_80"] = "test"
	m.Vars["SERVE_TCP_PORT_160"] = "foo=bar"
	m.Vars["SERVE_TLS_PORT_443"] = "tls"
	m.Vars["SERVE_UDP_PORT_53"] = "datagram"
	m.Vars["SERVE_PORT_81"] = "other"
	r := start(m, "porter")
	m.WaitListen(":443")
	client := m.Client()
	client.Transport.(*http.Transport).TLSClientConfig = insecureTLS
	for url, want := range map[string]string{"http://localhost:80/any": "test", "http://localhost:160": "foo=bar", "https://localhost:443": "tls"} {
		m.WaitListen(strings.TrimSuffix(url[strings.LastIndex(url, ":"):], "/any"))
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != want {
			t.Errorf("%s: %s", url, body)
		}
	}
	r.Await("listening for datagrams on port 53")
	if _, stderr, code := output(m, "connect", "localhost:53", "--protocol=udp", "--timeout=1s"); code != 0 {
		t.Error(stderr)
	}
	r.Signal(syscall.SIGTERM)
	r.Wait()
}

func TestPorterJSON(t *testing.T) {
	m := pod(t)
	m.Vars["SERVE_PORT_80"] = "foo"
	start(m, "porter", "--json-response")
	m.WaitListen(":80")
	if body := kittest.Ask(t, m, "PATCH", "http://localhost/some/path", "").Body; strings.TrimSpace(body) != `{"Method":"PATCH","Body":"foo"}` {
		t.Error(body)
	}
}

func TestPorterGoesOnWithoutOnePort(t *testing.T) {
	m := pod(t)
	m.Vars["SERVE_PORT_80"], m.Vars["SERVE_TLS_PORT_443"], m.Vars["CERT_FILE"] = "foo", "bar", "/none"
	r := start(m, "porter")
	r.Await(`server on port "443" failed: open /none: no such file or directory`)
	m.WaitListen(":80")
	m.Vars["SERVE_SCTP_PORT_90"] = "x"
	if _, stderr, code := output(m, "porter"); code != 1 || !strings.Contains(stderr, "SCTP is not available") {
		t.Errorf("SCTP: exit %d %s", code, stderr)
	}
}

func TestServeHostname(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := pod(t)
		r := start(m, "serve-hostname", "--port", "8090")
		m.WaitListen(":8090")
		if code, body := get(t, m, "http://localhost:8090/any"); code != 200 || body != "pod-1" {
			t.Errorf("%d %s", code, body)
		}
		r.Signal(syscall.SIGTERM)
		r.Await("signal terminated")
		// It answers until everybody has noticed that it goes.
		time.Sleep(59 * time.Second)
		if code, _ := get(t, m, "http://localhost:8090"); code != 200 {
			t.Errorf("after SIGTERM: %d", code)
		}
		if code := r.Wait(); code != 0 {
			t.Errorf("exit %d", code)
		}
	})
}

func TestServeHostnameRaw(t *testing.T) {
	w := kittest.New(t)
	server, client := w.Machine("backend", "10.244.0.2"), w.Machine("client", "10.244.0.3")
	start(server, "serve-hostname", "--http=false", "--tcp", "--udp")
	client.WaitListen("backend:9376")
	for _, network := range []string{"tcp", "udp"} {
		c, err := client.Env().Net.DialContext(t.Context(), network, "backend:9376")
		if err != nil {
			t.Fatal(err)
		}
		// As nc does, say something first.
		io.WriteString(c, "hostName\n")
		c.SetDeadline(time.Now().Add(time.Minute))
		buf := make([]byte, 100)
		n, err := c.Read(buf)
		if string(buf[:n]) != "backend" {
			t.Errorf("%s: %q, %v", network, buf[:n], err)
		}
		c.Close()
	}
	if _, stderr, code := output(client, "serve-hostname", "--tcp"); code != 1 || !strings.Contains(stderr, "one port cannot serve HTTP and something else") {
		t.Errorf("exit %d %s", code, stderr)
	}
}

func TestGRPCHealth(t *testing.T) {
	m := pod(t)
	start(m, "grpc-health-checking", "--service", "liveness")
	m.WaitListen(":5000")
	m.WaitListen(":8080")
	conn, err := grpc.NewClient("passthrough:///localhost:5000",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return m.Env().Net.DialContext(ctx, "tcp", addr)
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	check := func(service string) (healthpb.HealthCheckResponse_ServingStatus, error) {
		r, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		return r.GetStatus(), err
	}
	if s, err := check("liveness"); s != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("%v %v", s, err)
	}
	if _, err := check("other"); status.Code(err) != codes.NotFound {
		t.Errorf("other service: %v", err)
	}
	if _, err := healthpb.NewHealthClient(conn).List(t.Context(), &healthpb.HealthListRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("list: %v", err)
	}
	get(t, m, "http://localhost:8080/make-not-serving")
	if s, err := check("liveness"); s != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("%v %v", s, err)
	}
	get(t, m, "http://localhost:8080/make-serving")
	if s, err := check("liveness"); s != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("%v %v", s, err)
	}
}

func TestGRPCHealthGetsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &grpcHealth{program: newProgram(pod(t).Env("/agnhost")), delay: 5, started: time.Now()}
		for age, want := range map[time.Duration]healthpb.HealthCheckResponse_ServingStatus{
			4 * time.Second: healthpb.HealthCheckResponse_SERVING, 6 * time.Second: healthpb.HealthCheckResponse_NOT_SERVING,
		} {
			g.started = time.Now().Add(-age)
			if r, err := g.Check(t.Context(), &healthpb.HealthCheckRequest{}); r.GetStatus() != want {
				t.Errorf("after %v: %v %v", age, r, err)
			}
		}
	})
}
