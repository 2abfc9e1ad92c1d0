package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded"
)

// victim is what is disturbed: a web server with probes, limits and a volume, behind a service.
const victim = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: web
        image: nginx
        ports: [{containerPort: 80}]
        readinessProbe: {httpGet: {port: 80}, periodSeconds: 1, timeoutSeconds: 1, failureThreshold: 1}
        resources: {requests: {cpu: 200m, memory: 128Mi}, limits: {cpu: 200m, memory: 128Mi}}
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`

// prey is a victim in a namespace of the test.
type prey struct {
	*cluster
	t         *testing.T
	namespace string
	url       string
}

func (c *cluster) victim(t *testing.T) *prey {
	t.Helper()
	ns := c.namespace(t)
	c.apply(t, ns, victim)
	p := &prey{c, t, ns, "http://web." + ns + ".svc.cluster.local"}
	p.ready()
	c.awaitFetch(t, p.url)
	return p
}

// ready returns the victim's pod once it is the only one and ready.
func (p *prey) ready() v1.Pod {
	p.t.Helper()
	return p.readyPods(p.t, p.namespace, "app=web", 1)[0]
}

// container is the status of a pod's container, once ok says so.
func (p *prey) container(pod, what string, ok func(v1.ContainerStatus) bool) v1.ContainerStatus {
	p.t.Helper()
	return p.awaitPod(p.t, p.namespace, pod, what, func(p *v1.Pod) bool {
		return len(p.Status.ContainerStatuses) > 0 && ok(p.Status.ContainerStatuses[0])
	}).Status.ContainerStatuses[0]
}

// disturb does something to the service's pods. The disturbance ends with the test at the latest.
func (p *prey) disturb(d cloud.Disturbance) (stop func()) {
	p.t.Helper()
	if d.Selector.Namespace == "" {
		d.Selector = cloud.Selector{Namespace: p.namespace, Service: "web"}
	}
	end, err := p.Disturb(p.t.Context(), d)
	must(p.t, err)
	p.t.Cleanup(func() { _ = end(context.Background()) })
	return func() {
		p.t.Helper()
		must(p.t, end(p.t.Context()))
		must(p.t, end(p.t.Context()))
	}
}

// request measures a request from outside.
func (p *prey) request() (time.Duration, error) {
	start := time.Now()
	_, err := p.fetch(p.t.Context(), p.url)
	return time.Since(start), err
}

var telltale = regexp.MustCompile(`(?i)chaos|disturb|aiopslab|inject|stress`)

// unmarked checks that nothing in the API tells of a disturbance.
func (p *prey) unmarked() {
	p.t.Helper()
	pods, err := p.client.CoreV1().Pods(p.namespace).List(p.t.Context(), metav1.ListOptions{})
	must(p.t, err)
	for _, pod := range pods.Items {
		for _, m := range pod.ManagedFields {
			if !slices.Contains([]string{"kube-controller-manager", "kubelet", "kube-scheduler"}, m.Manager) {
				p.t.Errorf("%s wrote to pod %s", m.Manager, pod.Name)
			}
		}
		if len(pod.Annotations) > 0 || pod.Spec.Containers[0].Image != "nginx" {
			p.t.Errorf("annotations %v, image %s", pod.Annotations, pod.Spec.Containers[0].Image)
		}
	}
	events, err := p.client.CoreV1().Events(p.namespace).List(p.t.Context(), metav1.ListOptions{})
	must(p.t, err)
	for _, list := range []any{pods, events} {
		b, err := json.Marshal(list)
		must(p.t, err)
		text := strings.ReplaceAll(string(b), p.namespace, "")
		if found := telltale.FindString(text); found != "" {
			p.t.Errorf("the API says %q", found)
		}
	}
}

func TestNetworkChaos(t *testing.T) {
	t.Parallel()
	p := shared(t).victim(t)
	const delay = 300 * time.Millisecond
	stop := p.disturb(cloud.Disturbance{Network: &cloud.NetworkChaos{Delay: delay}})
	slow := func() {
		t.Helper()
		// The handshake and the answer each wait for the pod.
		if d, err := p.request(); err != nil || d < 2*delay {
			t.Errorf("a request took %v: %v", d, err)
		}
	}
	slow()
	pod := p.ready()
	start := time.Now()
	p.exec(t, p.namespace, pod.Name, "nslookup", "web."+p.namespace+".svc.cluster.local")
	if d := time.Since(start); d < delay {
		t.Errorf("a question to DNS took %v", d)
	}
	// Whoever takes the pod's place is disturbed as well.
	must(t, p.client.CoreV1().Pods(p.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}))
	await(t, func() (none struct{}, err error) {
		if next := p.ready(); next.Name == pod.Name {
			err = errors.New("there is no new pod")
		}
		return none, err
	})
	p.awaitFetch(t, p.url)
	slow()
	stop()
	if d, err := p.request(); err != nil || d > delay {
		t.Errorf("after the end a request took %v: %v", d, err)
	}

	// Behind a partition it does not even answer the node's probes.
	pod = p.ready()
	stop = p.disturb(cloud.Disturbance{Network: &cloud.NetworkChaos{Partition: true, Direction: cloud.Both}})
	p.awaitPod(t, p.namespace, pod.Name, "unready", func(p *v1.Pod) bool { return !isReady(p) })
	stop()
	if now := p.ready(); now.Name != pod.Name || now.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("%s has taken the place of %s", now.Name, pod.Name)
	}
	p.awaitFetch(t, p.url)
	p.unmarked()
}

func TestPodFailure(t *testing.T) {
	t.Parallel()
	p := shared(t).victim(t)
	pod := p.ready()
	before := pod.Status.ContainerStatuses[0]
	stop := p.disturb(cloud.Disturbance{Pod: &cloud.PodChaos{Action: cloud.PodFailure}})
	if _, err := p.fetch(t.Context(), "http://"+pod.Status.PodIP); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a failed pod: %v, want connection refused", err)
	}
	now := p.container(pod.Name, "unready", func(s v1.ContainerStatus) bool { return !s.Ready })
	if now.State.Running == nil || now.ContainerID != before.ContainerID || now.RestartCount != 0 {
		t.Errorf("%+v", now)
	}
	// One can still look around in it.
	if out := p.exec(t, p.namespace, pod.Name, "ps"); !strings.Contains(out, "nginx") {
		t.Errorf("ps shows %s", out)
	}
	p.unmarked()
	stop()
	if now := p.ready(); now.Status.ContainerStatuses[0].ContainerID != before.ContainerID || now.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("%+v", now.Status.ContainerStatuses)
	}
	p.awaitFetch(t, p.url)
	p.unmarked()
}

func TestContainerKill(t *testing.T) {
	t.Parallel()
	p := shared(t).victim(t)
	pod := p.ready()
	stop := p.disturb(cloud.Disturbance{Pod: &cloud.PodChaos{Action: cloud.ContainerKill}})
	s := p.container(pod.Name, "in CrashLoopBackOff", func(s v1.ContainerStatus) bool {
		return s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
	})
	if last := s.LastTerminationState.Terminated; last == nil || last.ExitCode != 137 || last.Reason != "Error" {
		t.Errorf("%+v", s.LastTerminationState)
	}
	stop()
	p.unmarked()
	if now := p.ready(); now.Name != pod.Name { // When the back-off is over.
		t.Errorf("%s has taken the place of %s", now.Name, pod.Name)
	}
}

func TestPodKill(t *testing.T) {
	t.Parallel()
	p := shared(t).victim(t)
	seen := map[string]bool{}
	stop := p.disturb(cloud.Disturbance{Pod: &cloud.PodChaos{Action: cloud.PodKill}})
	awaitTrue(t, "three pods after each other", func() bool {
		list, err := p.client.CoreV1().Pods(p.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
		must(t, err)
		for _, pod := range list.Items {
			if pod.Status.Phase == v1.PodRunning {
				seen[string(pod.UID)] = true
			}
		}
		return len(seen) >= 3
	})
	stop()
	p.ready()
	p.unmarked()
}

func TestStressChaos(t *testing.T) {
	t.Parallel()
	p := shared(t).victim(t)
	pod := p.ready()
	metric := func(name string) float64 {
		b, err := p.client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", pod.Spec.NodeName, "proxy/metrics/cadvisor").DoRaw(t.Context())
		must(t, err)
		return sample(string(b), name, p.namespace, "web")
	}
	idle := metric("container_memory_working_set_bytes")
	stop := p.disturb(cloud.Disturbance{Stress: &cloud.StressChaos{CPU: 1, Memory: 32 << 20}})
	if held := metric("container_memory_working_set_bytes") - idle; held < 32<<20 {
		t.Errorf("%v more bytes are held", held)
	}
	used := metric("container_cpu_usage_seconds_total")
	awaitTrue(t, "the container is throttled", func() bool {
		return metric("container_cpu_cfs_throttled_periods_total") > 3 && metric("container_cpu_usage_seconds_total") > used+0.1
	})
	stop()
	if held := metric("container_memory_working_set_bytes") - idle; held >= 32<<20 {
		t.Errorf("%v more bytes are held after the end", held)
	}
	// More than the limit kills, and kills again.
	stop = p.disturb(cloud.Disturbance{Stress: &cloud.StressChaos{Memory: 128 << 20}})
	s := p.container(pod.Name, "killed twice", func(s v1.ContainerStatus) bool { return s.RestartCount > 0 && s.State.Running == nil })
	if last := s.LastTerminationState.Terminated; last == nil || last.Reason != "OOMKilled" {
		t.Errorf("%+v", s)
	}
	stop()
	p.unmarked()
}

func TestIOChaos(t *testing.T) {
	t.Parallel()
	p := shared(t).victim(t)
	pod := p.ready()
	write := func(pod, path string) error {
		out, err := p.tryExec(t.Context(), p.namespace, pod, "sh", "-c", "echo text > "+path)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
	must(t, write(pod.Name, "/data/file"))
	stop := p.disturb(cloud.Disturbance{IO: &cloud.IOChaos{Path: "/data", Methods: []string{"write", "fsync"}, Errno: "EIO"}})
	broken := func(pod string) {
		t.Helper()
		if err := write(pod, "/data/file"); err == nil || !strings.Contains(strings.ToLower(err.Error()), "input/output error") {
			t.Errorf("writing to a broken disk: %v", err)
		}
	}
	broken(pod.Name)
	must(t, write(pod.Name, "/tmp/file"))
	p.exec(t, p.namespace, pod.Name, "cat", "/data/file")
	must(t, p.client.CoreV1().Pods(p.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}))
	next := p.ready()
	broken(next.Name)
	stop()
	must(t, write(next.Name, "/data/file"))
	p.unmarked()
}

func TestKernelChaos(t *testing.T) {
	t.Parallel()
	p := shared(t).victim(t)
	pod := p.ready()
	dial := func() (string, error) {
		return p.tryExec(t.Context(), p.namespace, pod.Name, "wget", "-O-", "http://"+pod.Status.PodIP)
	}
	if out, err := dial(); err != nil {
		t.Fatal(err, out)
	}
	stop := p.disturb(cloud.Disturbance{Kernel: &cloud.KernelChaos{Call: "connect", Errno: "ENOMEM"}})
	if out, err := dial(); err == nil || !strings.Contains(strings.ToLower(out), "cannot allocate memory") {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := p.request(); err != nil { // It still accepts.
		t.Error(err)
	}
	stop()
	if out, err := dial(); err != nil {
		t.Error(err, out)
	}
	p.unmarked()
}

// A disturbance that is bound to a node does not follow a pod that leaves it.
func TestDisturbedNode(t *testing.T) {
	t.Parallel()
	p := shared(t).victim(t)
	pod := p.ready()
	p.disturb(cloud.Disturbance{
		Selector: cloud.Selector{Namespace: p.namespace, Node: pod.Spec.NodeName}, Pod: &cloud.PodChaos{Action: cloud.PodFailure},
	})
	p.awaitPod(t, p.namespace, pod.Name, "unready", func(p *v1.Pod) bool { return !isReady(p) })
	move := fmt.Sprintf(`{"spec":{"template":{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"NotIn","values":[%q]}]}]}}}}}}}`, pod.Spec.NodeName)
	_, err := p.client.AppsV1().Deployments(p.namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(move), metav1.PatchOptions{})
	must(t, err)
	if now := p.ready(); now.Spec.NodeName == pod.Spec.NodeName {
		t.Errorf("it is still on %s", now.Spec.NodeName)
	}
	p.awaitFetch(t, p.url)
}

// A reset ends disturbances, and a snapshot does not.
func TestResetEndsDisturbances(t *testing.T) {
	c := fresh(t, embedded.Options{})
	must(t, c.WaitReady(t.Context()))
	p := c.victim(t)
	snap, pod := c.settledSnapshot(t), p.ready()
	stop := p.disturb(cloud.Disturbance{Pod: &cloud.PodChaos{Action: cloud.PodFailure}})
	if _, err := c.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.fetch(t.Context(), "http://"+pod.Status.PodIP); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after a snapshot: %v, want connection refused", err)
	}
	p.disturb(cloud.Disturbance{Network: &cloud.NetworkChaos{Partition: true}})
	must(t, c.Reset(t.Context(), snap))
	p.ready()
	p.awaitFetch(t, p.url)
	stop() // There is nothing left to stop.
	// It works again after a reset, and does not keep the cloud from being closed.
	p.disturb(cloud.Disturbance{Stress: &cloud.StressChaos{CPU: 1}})
	p.disturb(cloud.Disturbance{Pod: &cloud.PodChaos{Action: cloud.PodKill}})
	must(t, c.Close())
	if _, err := c.Disturb(t.Context(), cloud.Disturbance{Selector: cloud.Selector{Namespace: p.namespace}, Stress: &cloud.StressChaos{CPU: 1}}); err == nil {
		t.Error("a closed cloud can be disturbed")
	}
	if left := ourGoroutines(); slices.ContainsFunc(left, func(s string) bool { return strings.Contains(s, "embedded/chaos.") }) {
		t.Errorf("goroutines are left: %s", left)
	}
}
