package fault

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/app/everytest"
	"github.com/aiopslab/aiopslab/app/hotel"
)

func TestPodSymptom(t *testing.T) { synctest.Test(t, testPodSymptom) } // A second is a second there.

func testPodSymptom(t *testing.T) {
	a := hotel.App()
	pod := func(change func(*v1.Pod)) *v1.Pod {
		p := readyPod(a, "geo", "n1", time.Hour)
		change(p)
		return p
	}
	unreadyPod := func(c v1.ContainerStatus) *v1.Pod {
		return pod(func(p *v1.Pod) {
			p.Status.Conditions[0].Status, p.Status.ContainerStatuses = v1.ConditionFalse, []v1.ContainerStatus{c}
		})
	}
	waiting := v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	ended := v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}
	for _, tt := range []struct {
		name     string
		replicas int32
		pod      *v1.Pod
		want     string
	}{
		{"well", 1, pod(func(*v1.Pod) {}), ""},
		{"scaled down", 0, nil, "geo is scaled to 0 pods"},
		{"none", 1, nil, "0 of 1 pods of geo are ready"},
		{"too few", 2, pod(func(*v1.Pod) {}), "1 of 2 pods of geo are ready"},
		{"going", 1, pod(func(p *v1.Pod) {
			p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.Now()), []string{"x/y"}
		}), "0 of 1 pods of geo are ready"},
		// A container that dies soon after its start is ready for a moment.
		{"just ready", 1, readyPod(a, "geo", "n1", 0), "0 of 1 pods of geo are ready: geo-1 has been ready for "},
		{"restarted too fast to be seen unready", 1, pod(func(p *v1.Pod) {
			p.Status.ContainerStatuses = []v1.ContainerStatus{{RestartCount: 1, State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
		}), "0 of 1 pods of geo are ready: geo-1 has been ready for "},
		{"back-off", 1, unreadyPod(v1.ContainerStatus{State: waiting}), "0 of 1 pods of geo are ready: geo-1 is in CrashLoopBackOff"},
		{"killed", 1, unreadyPod(v1.ContainerStatus{State: ended}), "0 of 1 pods of geo are ready: geo-1 has ended with code 137 (OOMKilled)"},
		{"restarted", 1, unreadyPod(v1.ContainerStatus{RestartCount: 3}), "0 of 1 pods of geo are ready: geo-1 is not ready and has restarted 3 times"},
		{"pending", 1, pod(func(p *v1.Pod) {
			p.Status = v1.PodStatus{Phase: v1.PodPending, Conditions: []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Message: "0/3 nodes are available"}}}
		}), "0 of 1 pods of geo are ready: geo-1 is Pending: 0/3 nodes are available"},
	} {
		c := fake.NewClientset(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "geo"}, Spec: appsv1.DeploymentSpec{Replicas: &tt.replicas}})
		if tt.pod != nil {
			c.Tracker().Add(tt.pod)
		}
		got, err := podSymptom(t.Context(), &Env{Client: c, App: a}, "geo")
		if err != nil || tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
	// A pod that was started a moment before the fault does not show it; one that is ready again since does.
	for _, tt := range []struct {
		ready time.Duration // ago
		want  string
	}{
		{2500 * time.Millisecond, ""},
		{0, "0 of 1 pods of geo are ready: geo-1 has been ready for "},
	} {
		c := fake.NewClientset(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "geo"}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)}})
		c.Tracker().Add(readyPod(a, "geo", "n1", tt.ready))
		e := &Env{Client: c, App: a, Injected: time.Now().Add(-time.Second)}
		if got, err := unsettled(t.Context(), e, "geo", killSettle); err != nil || !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("ready for %v: %q, %v; want %q", tt.ready, got, err, tt.want)
		}
	}
	// A pod to spare need not be ready. One that is needed must.
	for ready, want := range []string{"0 of 1 pods of geo are ready", ""} {
		c := fake.NewClientset(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "geo"}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)}})
		for i := range ready {
			p := readyPod(a, "geo", "n1", time.Hour)
			p.Name = fmt.Sprint("geo-", i)
			c.Tracker().Add(p)
		}
		e := &Env{Client: c, App: a, Spare: func(s string) int { return map[string]int{"geo": 1}[s] }}
		if got, err := podSymptom(t.Context(), e, "geo"); err != nil || got != want {
			t.Errorf("%d ready, one to spare: %q, %v; want %q", ready, got, err, want)
		}
	}
	// Not every service is run by a Deployment.
	meta := metav1.ObjectMeta{Namespace: a.Namespace, Name: "geo"}
	set := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](2)}}
	daemons := &appsv1.DaemonSet{ObjectMeta: meta, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2}}
	for _, o := range []runtime.Object{set, daemons} {
		c := fake.NewClientset(o)
		e := &Env{Client: c, App: a}
		c.Tracker().Add(readyPod(a, "geo", "n1", time.Hour))
		if got, err := podSymptom(t.Context(), e, "geo"); err != nil || got != "1 of 2 pods of geo are ready" {
			t.Errorf("%T: %q, %v", o, got, err)
		}
		other := readyPod(a, "geo", "n2", time.Hour)
		other.Name = "geo-2"
		c.Tracker().Add(other)
		if got, err := podSymptom(t.Context(), e, "geo"); err != nil || got != "" {
			t.Errorf("%T: %q, %v", o, got, err)
		}
	}
	if got, err := podSymptom(t.Context(), &Env{Client: fake.NewClientset(), App: a}, "geo"); err != nil || got != "there is no Deployment, StatefulSet or DaemonSet geo" {
		t.Errorf("%q, %v", got, err)
	}
}

// serve answers connections until the test ends.
func serve(t *testing.T, run func(net.Listener)) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); run(ln) }()
	t.Cleanup(func() { ln.Close(); <-done })
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", ln.Addr().String())
	}
}

// each answers every connection with the same.
func each(answer []byte) func(net.Listener) {
	return func(ln net.Listener) {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 4096))
			c.Write(answer)
			c.Close()
		}
	}
}

func TestAsk(t *testing.T) {
	for _, tt := range []struct {
		name, service string
		run           func(net.Listener)
		want          string // of the error
	}{
		// It is none of these, though each of them answers.
		{"another gRPC server", "geo", func(ln net.Listener) { grpc.NewServer().Serve(ln) }, "Unimplemented: unknown service geo.Geo"},
		{"a web server", "geo", func(ln net.Listener) { http.Serve(ln, http.NotFoundHandler()) }, "Unavailable: "},
		{"another web server", "frontend", func(ln net.Listener) { http.Serve(ln, http.NotFoundHandler()) }, "it answers 404 404 page not found"},
		{"closes", "geo", each(nil), "Unavailable: "},
		{"not memcached", "memcached-rate", each([]byte("HTTP/1.1 400 Bad Request\r\n")), `it answers "HTTP/1.1 400 Bad Request"`},
		{"not mongodb", "mongodb-geo", each(bytes.Repeat([]byte{0xff}, 64)), "it does not speak MongoDB's protocol"},
		{"silent", "geo", func(ln net.Listener) {
			c, err := ln.Accept()
			if err == nil {
				io.Copy(io.Discard, c)
				c.Close()
			}
		}, "no answer within 200ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			timeout := patience
			if strings.HasPrefix(tt.want, "no answer") {
				timeout = 200 * time.Millisecond
			}
			err := ask(t.Context(), &Env{App: hotel.App(), Dial: serve(t, tt.run)}, tt.service, timeout)
			if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// Every service of the applications says where its metrics are, or the probes of the network faults would not read
// them.
func TestMetricsPorts(t *testing.T) {
	for _, a := range everytest.Apps() {
		p, err := read(a)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range a.Services {
			if got := p.metrics(s.Name); got == "" && s.Kind == "service" {
				t.Errorf("%s of %s, a %s, serves metrics on port %q", s.Name, a.Name, s.Kind, got)
			}
		}
	}
}
