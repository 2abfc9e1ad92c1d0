package node

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/probe"
	"k8s.io/utils/ptr"
)

const refused = "dial tcp 10.244.0.2:80: connect: connection refused"

// listenAs lets programs listen at the pod's address.
func listenAs(t *testing.T, k *kubelet, addr string) net.Listener {
	t.Helper()
	host := k.node.fleet.cfg.Network.Host(podAddress)
	if host == nil {
		var err error
		if host, err = k.node.fleet.cfg.Network.AddHost(podAddress); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(host.Close)
	}
	l, err := host.NewStack().Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// probing is a container under probes.
type probing struct {
	*kubelet
	pod      *v1.Pod
	observed *kubecontainer.PodStatus
}

// startProbing starts a container that has just started to run, with nobody listening.
func startProbing(t *testing.T, change func(*v1.Container)) *probing {
	t.Helper()
	k := testKubelet(t)
	listenAs(t, k, ":1") // There is such a host.
	pod := testPod(func(p *v1.Pod) { change(&p.Spec.Containers[0]) })
	k.add(pod)
	id := kubecontainer.ContainerID{Type: "cri", ID: "1"}
	p := &probing{k, pod, &kubecontainer.PodStatus{ContainerStatuses: []*kubecontainer.Status{{
		ID: id, Name: "c", State: kubecontainer.ContainerStateRunning, CreatedAt: time.Now(), StartedAt: time.Now(),
	}}}}
	k.probes.sync(pod, p.observed)
	return p
}

// status is what the probes make of the container.
func (p *probing) status() (started, ready bool) {
	s := v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "c", ContainerID: "cri://1", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}}
	p.probes.fill(p.pod, &s)
	return *s.ContainerStatuses[0].Started, s.ContainerStatuses[0].Ready
}

func tcpProbe(delay, period, failures int32) *v1.Probe {
	return &v1.Probe{
		ProbeHandler:        v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(80)}},
		InitialDelaySeconds: delay, PeriodSeconds: period, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: failures,
	}
}

func (p *probing) expect(t *testing.T, when string, started, ready bool, events ...string) {
	t.Helper()
	synctest.Wait()
	if s, r := p.status(); s != started || r != ready {
		t.Errorf("%s: started %v, ready %v", when, s, r)
	}
	if diff := cmp.Diff(events, p.events()); diff != "" {
		t.Errorf("%s: %s", when, diff)
	}
}

func TestReadinessProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startProbing(t, func(c *v1.Container) { c.ReadinessProbe = tcpProbe(2, 10, 3) })
		failed := "Warning Unhealthy Readiness probe failed: " + refused
		p.expect(t, "at first", true, false)
		time.Sleep(3 * time.Second)
		// In its first period a container is looked at often, and failures do not count.
		p.expect(t, "early", true, false)
		l := listenAs(t, p.kubelet, ":80")
		time.Sleep(2 * time.Second)
		p.expect(t, "listening", true, true)
		l.Close()
		time.Sleep(20 * time.Second)
		p.expect(t, "failed twice", true, true, failed, failed)
		time.Sleep(10 * time.Second)
		p.expect(t, "failed thrice", true, false, failed)
		listenAs(t, p.kubelet, ":80")
		time.Sleep(10 * time.Second)
		p.expect(t, "back", true, true)
		if diff := cmp.Diff([]bool{true, false, true}, p.statuses.(*statuses).ready); diff != "" {
			t.Error(diff)
		}
		p.probes.remove(p.pod.UID)
	})
}

func TestLivenessProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startProbing(t, func(c *v1.Container) { c.LivenessProbe = tcpProbe(5, 2, 2) })
		failed := "Warning Unhealthy Liveness probe failed: " + refused
		id := p.observed.ContainerStatuses[0].ID
		time.Sleep(5 * time.Second)
		p.expect(t, "during the delay", true, true)
		time.Sleep(time.Second)
		p.expect(t, "failed once", true, true, failed)
		if _, ok := p.probes.liveness.Get(id); ok {
			t.Error("one failure is not enough")
		}
		time.Sleep(2 * time.Second)
		p.expect(t, "failed twice", true, true, failed)
		if r, ok := p.probes.liveness.Get(id); !ok || r.String() != "Failure" {
			t.Errorf("%v, %v", r, ok)
		}
		// The container is about to be killed: it is left alone until it runs again.
		time.Sleep(time.Minute)
		p.expect(t, "later", true, true)
		p.observed.ContainerStatuses[0].ID.ID, p.observed.ContainerStatuses[0].StartedAt = "2", time.Now()
		p.probes.sync(p.pod, p.observed)
		if _, ok := p.probes.liveness.Get(id); ok {
			t.Error("the new run is judged by the old one")
		}
		time.Sleep(6 * time.Second)
		p.expect(t, "its next run", true, true, failed)
	})
}

func TestStartupProbeComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startProbing(t, func(c *v1.Container) {
			c.StartupProbe = tcpProbe(0, 1, 30)
			c.LivenessProbe, c.ReadinessProbe = tcpProbe(0, 1, 1), tcpProbe(0, 1, 1)
		})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for _, e := range p.events() {
			if !strings.Contains(e, "Startup probe failed") {
				t.Errorf("before it has started: %s", e)
			}
		}
		p.expect(t, "starting", false, false)
		listenAs(t, p.kubelet, ":80")
		time.Sleep(3 * time.Second)
		p.expect(t, "started", true, true)
		if diff := cmp.Diff([]bool{true}, p.statuses.(*statuses).started); diff != "" {
			t.Error(diff)
		}
	})
}

func TestCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := testKubelet(t)
		web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/ok":
				if r.Host != "shop.example" || r.Header.Get("X-Probe") != "1" || !strings.HasPrefix(r.UserAgent(), "kube-probe/") {
					http.Error(w, "who are you?", http.StatusBadRequest)
				}
			case "/away":
				http.Redirect(w, r, "http://example.com/", http.StatusFound)
			case "/slow":
				<-r.Context().Done()
			default:
				http.NotFound(w, r)
			}
		})}
		go web.Serve(listenAs(t, k, ":80"))
		defer web.Close()
		checks := health.NewServer()
		checks.SetServingStatus("sick", healthpb.HealthCheckResponse_NOT_SERVING)
		rpc := grpc.NewServer()
		healthpb.RegisterHealthServer(rpc, checks)
		go rpc.Serve(listenAs(t, k, ":90"))
		defer rpc.Stop()
		other := grpc.NewServer()
		go other.Serve(listenAs(t, k, ":91"))
		defer other.Stop()

		get := func(path string, port int32) v1.ProbeHandler {
			return v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port), Scheme: v1.URISchemeHTTP, HTTPHeaders: []v1.HTTPHeader{{Name: "Host", Value: "shop.example"}, {Name: "X-Probe", Value: "1"}}}}
		}
		dial := func(port intstr.IntOrString) v1.ProbeHandler {
			return v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: port}}
		}
		call := func(port int32, service string) v1.ProbeHandler {
			return v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: port, Service: &service}}
		}
		tests := []struct {
			name    string
			handler v1.ProbeHandler
			want    probe.Result
			output  string // part of it
			err     string
		}{
			{"http", get("/ok", 80), probe.Success, "", ""},
			{"http, not found", get("/none", 80), probe.Failure, "HTTP probe failed with statuscode: 404", ""},
			{"http, elsewhere", get("/away", 80), probe.Warning, "Probe terminated redirects", ""},
			{"http, slow", get("/slow", 80), probe.Failure, `Get "http://10.244.0.2:80/slow": context deadline exceeded`, ""},
			{"http, nobody", get("/", 81), probe.Failure, `Get "http://10.244.0.2:81/": dial tcp 10.244.0.2:81: connect: connection refused`, ""},
			{"tcp", dial(intstr.FromInt32(80)), probe.Success, "", ""},
			{"tcp by name", dial(intstr.FromString("http")), probe.Success, "", ""},
			{"tcp, no such name", dial(intstr.FromString("https")), probe.Unknown, "", `port "https" not found`},
			{"tcp, nobody", dial(intstr.FromInt32(81)), probe.Failure, "dial tcp 10.244.0.2:81: connect: connection refused", ""},
			{"grpc", call(90, ""), probe.Success, "service healthy", ""},
			{"grpc, sick", call(90, "sick"), probe.Failure, `service unhealthy (responded with "NOT_SERVING")`, ""},
			{"grpc, no such service", call(90, "none"), probe.Failure, "unknown service", ""},
			{"grpc, without checks", call(91, ""), probe.Failure, "does not implement the grpc health protocol", ""},
			{"grpc, nobody", call(81, ""), probe.Failure, "timeout: failed to connect service", ""},
			{"nothing", v1.ProbeHandler{}, probe.Unknown, "", "missing probe handler for web_shop(u1):c"},
		}
		c := &v1.Container{Name: "c", Ports: []v1.ContainerPort{{Name: "http", ContainerPort: 80}}}
		for _, tt := range tests {
			got, output, err := k.check(t.Context(), &v1.Probe{ProbeHandler: tt.handler, TimeoutSeconds: 1}, testPod(nil), c, "1", podAddress.String())
			if got != tt.want || !strings.Contains(output, tt.output) {
				t.Errorf("%s: %s, %q, %v", tt.name, got, output, err)
			}
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
	})
}

func TestProbeResultsAreAdopted(t *testing.T) {
	k := testKubelet(t)
	pod := testPod(func(p *v1.Pod) {
		p.Spec.Containers[0].ReadinessProbe, p.Spec.Containers[0].StartupProbe = tcpProbe(0, 1, 1), tcpProbe(0, 1, 1)
		p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", ContainerID: "cri://1", Ready: true, Started: ptr.To(true), State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}
	})
	k.probes.adopt(pod)
	if started, ready := (&probing{kubelet: k, pod: pod}).status(); !started || !ready {
		t.Errorf("started %v, ready %v", started, ready)
	}
}
