package consul

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const base = "http://10.244.0.2:8500"

// serve starts an agent and returns it with another machine.
func serve(t *testing.T) (agent, other *kittest.Machine) {
	t.Helper()
	w := kittest.New(t)
	agent, other = w.Machine("consul", "10.244.0.2"), w.Machine("pod", "10.244.0.3")
	agent.Start(Main, "consul", "agent", "-dev", "-client", "0.0.0.0")
	agent.WaitListen(":8500")
	return agent, other
}

// call asks the agent and returns the answer's body and headers.
func call(t *testing.T, c *http.Client, method, path, body string) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

// healthy returns the addresses of a service's passing instances.
func healthy(t *testing.T, c *http.Client, name, query string) (addrs []string, index string) {
	t.Helper()
	_, body, h := call(t, c, "GET", "/v1/health/service/"+name+"?passing&"+query, "")
	var entries []struct {
		Service struct {
			Address string
			Port    int
		}
	}
	if err := json.Unmarshal([]byte(body), &entries); err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	for _, e := range entries {
		addrs = append(addrs, fmt.Sprintf("%s:%d", e.Service.Address, e.Service.Port))
	}
	return addrs, h.Get("X-Consul-Index")
}

func TestRegisterAndWatch(t *testing.T) {
	_, pod := serve(t)
	c := pod.Client()
	register := `{"ID":"geo-1","Name":"srv-geo","Address":"10.244.0.3","Port":8083}`
	if code, body, _ := call(t, c, "PUT", "/v1/agent/service/register", register); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	addrs, index := healthy(t, c, "srv-geo", "")
	if len(addrs) != 1 || addrs[0] != "10.244.0.3:8083" {
		t.Fatalf("registered %v", addrs)
	}

	// The same again is no change: a watcher would be woken for nothing.
	call(t, c, "PUT", "/v1/agent/service/register", register)
	if _, again := healthy(t, c, "srv-geo", ""); again != index {
		t.Errorf("index %s became %s without a change", index, again)
	}

	// A query with the index waits for the next change.
	type answer struct {
		addrs []string
		index string
	}
	got := make(chan answer)
	go func() {
		addrs, index := healthy(t, c, "srv-geo", "index="+index+"&wait=1m")
		got <- answer{addrs, index}
	}()
	call(t, c, "PUT", "/v1/agent/service/deregister/geo-1", "")
	if a := <-got; len(a.addrs) != 0 || a.index == index {
		t.Errorf("after deregistration: %+v", a)
	}
	if code, body, _ := call(t, c, "PUT", "/v1/agent/service/deregister/geo-1", ""); code != 404 || !strings.Contains(body, `Unknown service ID "geo-1"`) {
		t.Errorf("%d %s", code, body)
	}
}

func TestChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, pod := serve(t)
		c := pod.Client()
		run := pod.Start(func(ctx context.Context, env *kit.Env) error {
			ln, err := env.Net.Listen("tcp", ":8083")
			if err != nil {
				return err
			}
			defer context.AfterFunc(ctx, func() { ln.Close() })()
			for {
				conn, err := ln.Accept()
				if err != nil {
					return nil
				}
				conn.Close()
			}
		}, "server")
		pod.WaitListen(":8083")
		call(t, c, "PUT", "/v1/agent/service/register",
			`{"ID":"geo-1","Name":"srv-geo","Address":"10.244.0.3","Port":8083,"Check":{"TCP":"10.244.0.3:8083","Interval":"5s","DeregisterCriticalServiceAfter":"1m"}}`)
		if addrs, _ := healthy(t, c, "srv-geo", ""); len(addrs) != 0 {
			t.Errorf("passing before the first check: %v", addrs)
		}
		time.Sleep(6 * time.Second)
		if addrs, _ := healthy(t, c, "srv-geo", ""); len(addrs) != 1 {
			t.Errorf("not passing after the first check: %v", addrs)
		}
		run.Signal(syscall.SIGKILL)
		run.Wait()
		time.Sleep(6 * time.Second)
		if _, body, _ := call(t, c, "GET", "/v1/health/state/critical", ""); !strings.Contains(body, "connection refused") {
			t.Errorf("critical checks: %s", body)
		}
		time.Sleep(2 * time.Minute)
		if _, body, _ := call(t, c, "GET", "/v1/agent/services", ""); body != "{}\n" {
			t.Errorf("after a minute of being critical: %s", body)
		}
	})
}

func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, pod := serve(t)
		c := pod.Client()
		call(t, c, "PUT", "/v1/agent/service/register", `{"Name":"web","Address":"10.244.0.3","Port":80,"Check":{"TTL":"10s"}}`)
		for range 3 {
			call(t, c, "PUT", "/v1/agent/check/pass/service:web", "")
			time.Sleep(7 * time.Second)
		}
		if addrs, _ := healthy(t, c, "web", ""); len(addrs) != 1 {
			t.Errorf("a refreshed check: %v", addrs)
		}
		time.Sleep(11 * time.Second)
		if addrs, _ := healthy(t, c, "web", ""); len(addrs) != 0 {
			t.Errorf("an expired check: %v", addrs)
		}
	})
}

func TestBadRequests(t *testing.T) {
	_, pod := serve(t)
	c := pod.Client()
	for _, tt := range []struct {
		method, path, body string
		code               int
		text               string
	}{
		{"PUT", "/v1/agent/service/register", `{`, 400, "Request decode failed"},
		{"PUT", "/v1/agent/service/register", `{}`, 400, "Missing service name"},
		{"PUT", "/v1/agent/service/register", `{"Name":"a","Check":{"TCP":"x:1"}}`, 400, "Interval must be > 0"},
		{"PUT", "/v1/agent/service/register", `{"Name":"a","Check":{"GRPC":"x:1"}}`, 400, "must be set"},
		{"PUT", "/v1/agent/check/pass/none", ``, 404, `Unknown check ID "none"`},
		{"GET", "/v1/health/state/odd", ``, 400, "Invalid state"},
		{"GET", "/v1/kv/none", ``, 404, ""},
		{"PUT", "/v1/kv/", `x`, 400, "Missing key name"},
	} {
		if code, body, _ := call(t, c, tt.method, tt.path, tt.body); code != tt.code || !strings.Contains(body, tt.text) {
			t.Errorf("%s %s %s: %d %q", tt.method, tt.path, tt.body, code, body)
		}
	}
}

func TestDNS(t *testing.T) {
	_, pod := serve(t)
	call(t, pod.Client(), "PUT", "/v1/agent/service/register", `{"Name":"web","Address":"10.244.0.3","Port":80}`)
	conn, err := pod.Env().Net.DialContext(t.Context(), "tcp", "10.244.0.2:8600")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ask := func(name string, kind uint16) *dns.Msg {
		t.Helper()
		q := new(dns.Msg).SetQuestion(name, kind)
		co := &dns.Conn{Conn: conn}
		if err := co.WriteMsg(q); err != nil {
			t.Fatal(err)
		}
		m, err := co.ReadMsg()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := ask("web.service.consul.", dns.TypeA); len(m.Answer) != 1 || m.Answer[0].(*dns.A).A.String() != "10.244.0.3" {
		t.Errorf("%v", m)
	}
	if m := ask("web.service.consul.", dns.TypeSRV); len(m.Answer) != 1 || m.Answer[0].(*dns.SRV).Port != 80 {
		t.Errorf("%v", m)
	}
	if m := ask("none.service.consul.", dns.TypeA); m.Rcode != dns.RcodeNameError {
		t.Errorf("%v", m)
	}
	if m := ask("example.com.", dns.TypeA); m.Rcode != dns.RcodeRefused {
		t.Errorf("%v", m)
	}
}

func TestCommands(t *testing.T) {
	agent, _ := serve(t)
	for _, tt := range []struct {
		args   string
		code   int
		output string
	}{
		{"consul members", 0, "10.244.0.2:8301"},
		{"consul services register -name web -address 10.244.0.9 -port 80", 0, "Registered service: web"},
		{"consul catalog services", 0, "consul\nweb\n"},
		{"consul catalog nodes", 0, "10.244.0.2"},
		{"consul kv put a/b c", 0, "Success! Data written to: a/b"},
		{"consul kv get a/b", 0, "c\n"},
		{"consul kv delete a/b", 0, "Success! Deleted key: a/b"},
		{"consul kv get a/b", 1, "Unexpected response code: 404"},
		{"consul info", 0, "services = 1"},
		{"consul services deregister -id web", 0, "Deregistered service: web"},
		{"consul version", 0, "Consul v" + Version},
		{"consul agent", 1, "-dev"},
		{"consul nonsense", 127, "Usage: consul"},
	} {
		run := agent.Start(Main, strings.Fields(tt.args)...)
		code := run.Wait()
		if out := run.Stdout.String() + run.Stderr.String(); code != tt.code || !strings.Contains(out, tt.output) {
			t.Errorf("%s: exit %d, %q", tt.args, code, out)
		}
	}
}
