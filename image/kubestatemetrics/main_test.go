package kubestatemetrics

import (
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/image/incluster/inclustertest"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// The regular expressions of the deny list keep a clock that stops a while after the last match.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

func TestMetrics(t *testing.T) {
	w := kittest.New(t)
	api := inclustertest.Start(t, w, "10.244.0.1")
	m := w.Machine("kube-state-metrics", "10.244.0.2")
	api.Pod(m)
	replicas := int32(3)
	api.Set("apps/v1", "deployments", &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "cart", Namespace: "shop"},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
		Status:     appsv1.DeploymentStatus{AvailableReplicas: 1},
	})
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "cart-1", Namespace: "shop", UID: "u1", Labels: map[string]string{"app": "cart", "secret": "x"}},
		Spec:       v1.PodSpec{NodeName: "node-1", Containers: []v1.Container{{Name: "cart"}}},
		Status: v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{
			Name: "cart", RestartCount: 7, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		}}},
	}
	api.Set("v1", "pods", pod)
	run := m.Start(Main, "/kube-state-metrics", "--resources=pods,deployments", "--metric-labels-allowlist=pods=[app]", "--metric-denylist=kube_pod_tolerations")
	run.Await("Started metrics server")

	client := m.Client()
	get := func(url string) string {
		t.Helper()
		res, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return string(b)
	}
	has := func(want string, expected bool) {
		t.Helper()
		var body string
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if body = get("http://localhost:8080/metrics"); strings.Contains(body, want+"\n") == expected {
				return
			}
		}
		t.Fatalf("%s: found is not %v in\n%s", want, expected, body)
	}
	has(`kube_deployment_spec_replicas{namespace="shop",deployment="cart"} 3`, true)
	has(`kube_deployment_status_replicas_available{namespace="shop",deployment="cart"} 1`, true)
	has(`kube_pod_status_phase{namespace="shop",pod="cart-1",uid="u1",phase="Running"} 1`, true)
	has(`kube_pod_container_status_restarts_total{namespace="shop",pod="cart-1",uid="u1",container="cart"} 7`, true)
	has(`kube_pod_container_status_waiting_reason{namespace="shop",pod="cart-1",uid="u1",container="cart",reason="CrashLoopBackOff"} 1`, true)
	has(`kube_pod_labels{namespace="shop",pod="cart-1",uid="u1",label_app="cart"} 1`, true)

	pod.Status.Phase = v1.PodFailed
	api.Set("v1", "pods", pod)
	has(`kube_pod_status_phase{namespace="shop",pod="cart-1",uid="u1",phase="Failed"} 1`, true)
	api.Delete("v1", "pods", pod)
	has(`kube_pod_status_phase{namespace="shop",pod="cart-1",uid="u1",phase="Failed"} 1`, false)

	if body := get("http://localhost:8081/metrics"); !strings.Contains(body, `kube_state_metrics_list_total{resource="*v1.Pod",result="success"} 1`) {
		t.Errorf("telemetry: %s", body)
	}
	run.Signal(syscall.SIGTERM)
	if code := run.Wait(); code != 0 {
		t.Errorf("exit code %d: %s", code, run.Stderr)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		name, flag, want string
		code             int
	}{
		{"unknown flag", "--frobnicate", "unknown flag: --frobnicate", 2},
		{"not in a pod", "--port=1", "unable to load in-cluster configuration", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := kittest.New(t).Machine("m", "10.244.0.2").Start(Main, "/kube-state-metrics", c.flag)
			if code := run.Wait(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if text := run.Stderr.String(); !strings.Contains(text, c.want) {
				t.Errorf("stderr %q does not tell %q", text, c.want)
			}
		})
	}
}
