package agnhost

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// shell is a /bin/sh that knows two commands.
func shell(_ context.Context, env *kit.Env) error {
	switch env.Args[2] {
	case "hostname":
		fmt.Fprintln(env.Stdout, env.Hostname)
		return nil
	case "fail":
		fmt.Fprintln(env.Stderr, "no luck")
		return kit.Exit(3)
	}
	return kit.Exit(127)
}

// netexecPods returns a server with netexec on it, and a client.
func netexecPods(t *testing.T, args ...string) (run *kittest.Run, server, client *kittest.Machine) {
	t.Helper()
	w := kittest.New(t)
	server, client = w.Machine("netserver-0", "10.244.0.2"), w.Machine("client", "10.244.0.3")
	server.Install(Image(map[string]kit.Program{"sh": shell}))
	server.Vars["NODE_NAME"] = "node-a"
	run = start(server, append([]string{"netexec"}, args...)...)
	return run, server, client
}

func TestNetexecPages(t *testing.T) {
	run, _, client := netexecPods(t, "--http-port=8083")
	client.WaitListen("netserver-0:8083")
	run.Await("listening for datagrams at :8081")
	tests := []struct {
		path string
		code int
		body string
		log  string
	}{
		{"/hostname", 200, "netserver-0", "GET /hostname\n"},
		{"/hostName", 200, "netserver-0", "GET /hostName\n"},
		{"/serverport", 200, "8083", "GET /serverport\n"},
		{"/echo?msg=poststart", 200, "poststart", "GET /echo?msg=poststart\n"},
		{"/echo?msg=teapot&code=418", 418, "teapot", "GET /echo?msg=teapot&code=418\n"},
		{"/echo?code=x", 400, "code=x is not a status of HTTP", ""},
		{"/echo?code=99", 400, "code=99 is not a status of HTTP", ""},
		{"/envvar?var=NODE_NAME", 200, "node-a", "GET /envvar?var=NODE_NAME\n"},
		{"/envvar?var=NONE", 400, "var=NONE names no variable of the environment", ""},
		{"/healthz", 200, "ok", "GET /healthz\n"},
		{"/readyz", 200, "ok", "GET /readyz\n"},
		{"/shell?cmd=hostname", 200, `{"output":"netserver-0\n"}`, "GET /shell?cmd=hostname\n"},
		{"/shell?shellCommand=fail", 200, `{"output":"no luck\n","error":"exit status 3"}`, ""},
		{"/dial?host=10.244.0.2&port=8083", 400, "there is no request=", ""},
		{
			"/dial?host=none&port=8083&request=x", 400,
			"host=none&port=8083: lookup none on 10.96.0.10:53: no such host", "",
		},
		{"/dial?host=10.244.0.2&port=8083&request=x&protocol=smtp", 400, "protocol=smtp: it speaks http and udp", ""},
		{"/dial?host=10.244.0.2&port=8083&request=x&tries=many", 400, "tries=many is not a number", ""},
	}
	for _, tt := range tests {
		code, body := get(t, client, "http://netserver-0:8083"+tt.path)
		if diff := cmp.Diff(tt.body, body); diff != "" || code != tt.code {
			t.Errorf("%s: %d, want %d (-want +got):\n%s", tt.path, code, tt.code, diff)
		}
		run.Await(tt.log)
	}
	if _, body := get(t, client, "http://netserver-0:8083/clientip"); !strings.HasPrefix(body, "10.244.0.3:") {
		t.Errorf("/clientip: %q", body)
	}
}

func TestNetexecWithoutUDPIsNotReady(t *testing.T) {
	_, server, _ := netexecPods(t, "--udp-port=-1")
	server.WaitListen(":8080")
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, _ := get(t, server, "http://localhost:8080"+path); code != http.StatusPreconditionFailed {
			t.Errorf("%s: %d", path, code)
		}
	}
}

func TestNetexecDial(t *testing.T) {
	_, server, client := netexecPods(t, "--udp-listen-addresses=10.244.0.2,127.0.0.1,10.244.0.2")
	start(client, "netexec", "--http-port", "9080")
	server.WaitListen(":8080")
	client.WaitListen(":9080")
	dial := func(query string) (r struct{ Responses, Errors []string }) {
		t.Helper()
		code, body := get(t, client, "http://localhost:9080/dial?"+query)
		if err := json.Unmarshal([]byte(body), &r); err != nil || code != 200 {
			t.Fatalf("%s: %d %s", query, code, body)
		}
		return r
	}
	tests := []struct{ query, response, err string }{
		{"request=hostname&protocol=http&host=10.244.0.2&port=8080&tries=1", "netserver-0", ""},
		{"request=hostname&host=netserver-0&port=8080", "netserver-0", ""},
		{"request=hostname&protocol=udp&host=10.244.0.2&port=8081&tries=1", "netserver-0", ""},
		{"request=envvar%20NODE_NAME&protocol=udp&host=10.244.0.2&port=8081", "node-a", ""},
		{"request=envvar?var=NODE_NAME&protocol=http&host=10.244.0.2&port=8080", "node-a", ""},
		{"request=echo%20Hello&protocol=udp&host=10.244.0.2&port=8081", "Hello", ""},
		{"request=serverPort&protocol=udp&host=10.244.0.2&port=8081", "8081", ""},
		{"request=hostname&protocol=http&host=10.244.0.2&port=81", "", `Get "http://10.244.0.2:81/hostname": dial tcp 10.244.0.2:81: connect: connection refused`},
		{"request=hostname&protocol=udp&host=10.244.0.2&port=81", "", "read udp "},
	}
	for _, tt := range tests {
		r := dial(tt.query)
		if tt.err == "" && !cmp.Equal(r.Responses, []string{tt.response}) || tt.err != "" && (len(r.Errors) != 1 || !strings.HasPrefix(r.Errors[0], tt.err)) {
			t.Errorf("%s: %+v", tt.query, r)
		}
	}
	if r := dial("request=hostname&host=10.244.0.2&port=8080&tries=3"); len(r.Responses) != 3 {
		t.Errorf("three tries: %+v", r)
	}
	if r := dial("request=clientip&protocol=udp&host=10.244.0.2&port=8081"); len(r.Responses) != 1 || !strings.HasPrefix(r.Responses[0], "10.244.0.3:") {
		t.Errorf("clientip over UDP: %+v", r)
	}
}

// A pod that is deleted stays healthy, but is not ready any more, until its delay is over.
func TestNetexecDelaysShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run, server, _ := netexecPods(t, "--http-port=80", "--delay-shutdown=100")
		server.WaitListen(":80")
		run.Signal(syscall.SIGTERM)
		run.Await("told to terminate: goes on for 100 s")
		time.Sleep(99 * time.Second)
		if code, body := get(t, server, "http://localhost/readyz"); code != 503 || body != "terminating" {
			t.Errorf("/readyz: %d %s", code, body)
		}
		if code, _ := get(t, server, "http://localhost/healthz"); code != 200 {
			t.Errorf("/healthz: %d", code)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if code := run.Wait(); code != 0 {
			t.Errorf("exit %d", code)
		}
	})
}

func TestNetexecTLS(t *testing.T) {
	_, server, _ := netexecPods(t, "--tls-cert-file=/localhost.crt", "--tls-private-key-file=/localhost.key")
	server.WaitListen(":8080")
	client := server.Client()
	client.Transport.(*http.Transport).TLSClientConfig = insecureTLS
	resp, err := client.Get("https://localhost:8080/hostname")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "netserver-0" {
		t.Errorf("%s", body)
	}
}

func TestNetexecFailures(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--sctp-port=80"}, "SCTP is not available: it needs the kernel's protocol stack"},
		{[]string{"--tls-cert-file=/none"}, "open /none: no such file or directory"},
		{[]string{"--udp-listen-addresses=10.244.0.2,host"}, "--udp-listen-addresses: ParseAddr(\"host\"): unable to parse IP"},
		{[]string{"--udp-listen-addresses=10.244.9.9"}, "listen udp 10.244.9.9:8081: bind: cannot assign requested address"},
	}
	for _, tt := range tests {
		run, _, _ := netexecPods(t, tt.args...)
		if code := run.Wait(); code != 1 || !strings.Contains(run.Stderr.String(), tt.want+"\n") {
			t.Errorf("%v: exit %d\n%s", tt.args, code, run.Stderr)
		}
	}
}

func TestNetexecPortTaken(t *testing.T) {
	w := kittest.New(t)
	m := w.Machine("pod", "10.244.0.2")
	start(m, "netexec")
	m.WaitListen(":8080")
	_, stderr, code := output(m, "netexec", "--udp-port=-1")
	if code != 1 || !strings.Contains(stderr, "listen tcp [::]:8080: bind: address already in use") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
}

// Whoever probes a TCP port with nc sends a line that is no HTTP and wants any answer.
func TestNetexecAnswersGarbage(t *testing.T) {
	_, server, client := netexecPods(t)
	client.WaitListen("netserver-0:8080")
	c, err := client.Env().Net.DialContext(t.Context(), "tcp", net.JoinHostPort(server.Addr, "8080"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "hostName\n")
	if data, _ := io.ReadAll(c); !strings.HasPrefix(string(data), "HTTP/1.1 400 Bad Request") {
		t.Errorf("%s", data)
	}
}
