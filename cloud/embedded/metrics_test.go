package embedded_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	metrics "k8s.io/metrics/pkg/client/clientset/versioned"
)

// A container that wants a whole core and may have a fifth of one shows as throttled, and as using
// what it may, wherever one can look.
func TestThrottlingShows(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, `
apiVersion: v1
kind: Pod
metadata: {name: busy, labels: {app: busy}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: busy
    image: `+agnhostImage+`
    args: [stress, --cpus=1, --mem-total=32Mi, --mem-alloc-size=32Mi]
    resources: {requests: {cpu: 200m}, limits: {cpu: 200m, memory: 64Mi}}
`)
	pod := c.readyPods(t, ns, "app=busy", 1)[0]
	proxy := func(path string) ([]byte, error) {
		return c.client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes", pod.Spec.NodeName, "proxy", path).DoRaw(t.Context())
	}

	// cAdvisor's metrics, as Prometheus would read them.
	await(t, func() (none struct{}, err error) {
		b, err := proxy("metrics/cadvisor")
		if err != nil {
			return none, err
		}
		value := func(name string) float64 { return sample(string(b), name, ns, "busy") }
		periods, throttled := value("container_cpu_cfs_periods_total"), value("container_cpu_cfs_throttled_periods_total")
		waited, used := value("container_cpu_cfs_throttled_seconds_total"), value("container_cpu_usage_seconds_total")
		// In each period of 100 ms it may run for 20, and for a slice more that it pays back.
		if used > periods*0.02+0.1 {
			t.Fatalf("%v s of work in %v periods", used, periods)
		}
		if !(throttled >= 5 && throttled <= periods && waited > 0.1) {
			return none, fmt.Errorf("throttled in %v of %v periods, for %v s", throttled, periods, waited)
		}
		if q, p := value("container_spec_cpu_quota"), value("container_spec_cpu_period"); q != 20_000 || p != 100_000 {
			t.Errorf("quota %v of %v", q, p)
		}
		if m, l := value("container_memory_working_set_bytes"), value("container_spec_memory_limit_bytes"); m < 32<<20 || m > 64<<20 || l != 64<<20 {
			t.Errorf("memory %v of %v", m, l)
		}
		return none, nil
	})

	// The kubelet's own summary, and metrics.k8s.io, which kubectl top reads.
	// A busy machine may give it less, but it never gets more.
	near := func(cores float64) bool { return cores > 0.1 && cores < 0.22 }
	await(t, func() (none struct{}, err error) {
		b, err := proxy("stats/summary")
		if err != nil {
			return none, err
		}
		var s statsapi.Summary
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Pods {
			if p.PodRef.Namespace == ns && near(float64(*p.CPU.UsageNanoCores)/1e9) {
				return none, nil
			}
		}
		return none, errors.New("the summary does not show about 0.2 cores")
	})
	m, err := metrics.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	await(t, func() (none struct{}, err error) {
		p, err := m.MetricsV1beta1().PodMetricses(ns).Get(t.Context(), "busy", metav1.GetOptions{})
		if err != nil {
			return none, err
		}
		use := p.Containers[0].Usage
		if !near(use.Cpu().AsApproximateFloat64()) || use.Memory().Value() < 32<<20 {
			return none, fmt.Errorf("metrics.k8s.io shows %s of CPU and %s of memory", use.Cpu(), use.Memory())
		}
		return none, nil
	})
	nodes, err := m.MetricsV1beta1().NodeMetricses().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 3 {
		t.Errorf("figures of %d nodes, %v", len(nodes.Items), err)
	}
}

// sample finds the value of a container's metric in Prometheus' text format; NaN if there is none.
func sample(text, metric, namespace, container string) float64 {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, metric+"{") && strings.Contains(line, fmt.Sprintf("namespace=%q", namespace)) && strings.Contains(line, fmt.Sprintf("container=%q", container)) {
			_, value, _ := strings.Cut(line, "} ")
			if v, err := strconv.ParseFloat(strings.Fields(value)[0], 64); err == nil {
				return v
			}
		}
	}
	return math.NaN()
}
