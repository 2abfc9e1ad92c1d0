package agnhost

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestNetCloseWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := kittest.New(t)
		server, client := w.Machine("server", "10.244.0.2"), w.Machine("client", "10.244.0.3")
		s := start(server, "net", "--runner", "nat-closewait-server", "--options", `{"LocalAddr":"0.0.0.0:11302","PostFinTimeoutSeconds":3}`)
		start(client, "net", "--serve", ":11301")
		client.WaitListen(":11301")
		code, body := request(t, client, "POST", "http://localhost:11301/run/nat-closewait-client", "",
			`{"RemoteAddr":"10.244.0.2:11302","PostFinTimeoutSeconds":1,"TimeoutSeconds":1,"LeakConnection":true}`)
		if code != 200 || !strings.HasPrefix(body, "ok\noutput:\n\n") || !strings.Contains(body, "Server has half-closed the connection, waiting 1 seconds\n") {
			t.Errorf("client: %d %s", code, body)
		}
		if code := s.Wait(); code != 0 || !strings.Contains(s.Stdout.String(), "Server sent FIN, waiting 3 seconds") {
			t.Errorf("server: exit %d %s", code, s.Stdout)
		}
		time.Sleep(time.Second)
	})
}

func TestNetFailures(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{nil, "Must set either --runner or --serve, see --help"},
		{[]string{"--runner=none"}, `Error: invalid runner: "none", see --help`},
		{[]string{"--runner=nat-closewait-client", "--options=x"}, "Error: invalid options JSON"},
	}
	for _, tt := range tests {
		if _, stderr, code := output(pod(t), append([]string{"net"}, tt.args...)...); code != 1 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%v: exit %d %s", tt.args, code, stderr)
		}
	}
}

func TestNoSnat(t *testing.T) {
	w := kittest.New(t)
	a, b, node := w.Machine("a", "10.244.0.2"), w.Machine("b", "10.244.0.3"), w.Machine("node", "10.244.0.4")
	for _, m := range []*kittest.Machine{a, b} {
		m.Vars = map[string]string{"POD_IP": m.Addr, "NODE_IP": node.Addr}
		start(m, "no-snat-test")
		m.WaitListen(":8080")
	}
	start(node, "no-snat-test-proxy")
	node.WaitListen(":31235")
	if code, body := get(t, node, "http://localhost:31235/checknosnat?target=10.244.0.2:8080&ips=10.244.0.3:8080,10.244.0.2:8080"); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	if code, body := get(t, node, "http://localhost:31235/checknosnat?target=10.244.0.2:8080&ips=10.244.0.3:81"); code != 500 || !strings.Contains(body, "connection refused") {
		t.Errorf("%d %s", code, body)
	}
	// A pod that is mistaken about its own address sees what looks like SNAT.
	a.Vars["POD_IP"] = "10.244.0.9"
	start(a, "no-snat-test", "--port=82")
	a.WaitListen(":82")
	if code, body := get(t, a, "http://10.244.0.2:82/checknosnat?ips=10.244.0.3:8080"); code != 500 || !strings.Contains(body, `returned ip "10.244.0.2" != my Pod ip "10.244.0.9"`) {
		t.Errorf("%d %s", code, body)
	}
	if _, stderr, code := output(node, "no-snat-test"); code != 1 || stderr != "POD_IP env var was not present in the environment\n" {
		t.Errorf("exit %d %s", code, stderr)
	}
}

func TestResourceConsumerController(t *testing.T) {
	w := kittest.New(t)
	consumer, controller := w.Machine("rc", "10.244.0.2"), w.Machine("ctrl", "10.244.0.3")
	w.Name("rc.ns.svc.cluster.local", consumer.Addr)
	controller.Write("/etc/resolv.conf", "search ns.svc.cluster.local svc.cluster.local cluster.local\n")
	seen := start(consumer, "netexec", "--http-port=80")
	consumer.WaitListen(":80")
	start(controller, "resource-consumer-controller", "--consumer-service-name=rc", "--consumer-service-namespace=ns", "--consumer-port=80")
	controller.WaitListen(":8080")
	const form = "application/x-www-form-urlencoded"
	code, body := request(t, controller, "POST", "http://localhost:8080/ConsumeCPU", form, "millicores=250&durationSec=30&requestSizeMillicores=100")
	want := "RC manager: sending 2 requests to consume 100 millicores each and 1 request to consume 50 millicores\n"
	if code != 200 || !strings.HasPrefix(body, want) || strings.Count(body, "Consumed 100 millicores\n") != 2 || strings.Count(body, "Consumed 50 millicores\n") != 1 {
		t.Errorf("%d %s", code, body)
	}
	seen.Await("GET /\n")
	for path, want := range map[string]int{"/ConsumeCPU": 400, "/None": 404} {
		if code, body := request(t, controller, "POST", "http://localhost:8080"+path, form, "millicores=x"); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, _ := get(t, controller, "http://localhost:8080/ConsumeCPU"); code != 400 {
		t.Errorf("GET: %d", code)
	}
}
