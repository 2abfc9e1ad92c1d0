package embedded_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The autoscaler follows the modelled CPU time of pods, which it reads from metrics.k8s.io.
func TestAutoscaler(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: busy}
spec: {selector: {app: busy}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: busy}
spec:
  selector: {matchLabels: {app: busy}}
  template:
    metadata: {labels: {app: busy}}
    spec:
      containers:
      - name: busy
        image: registry.k8s.io/e2e-test-images/resource-consumer:1.13
        ports: [{containerPort: 8080}]
        readinessProbe: {tcpSocket: {port: 8080}}
        resources: {requests: {cpu: 100m}, limits: {cpu: "1"}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: busy}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: busy}
  minReplicas: 1
  maxReplicas: 4
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
`)
	status := func(check func(*autoscalingv2.HorizontalPodAutoscaler) bool) *autoscalingv2.HorizontalPodAutoscaler {
		t.Helper()
		return await(t, func() (*autoscalingv2.HorizontalPodAutoscaler, error) {
			h, err := c.client.AutoscalingV2().HorizontalPodAutoscalers(ns).Get(t.Context(), "busy", metav1.GetOptions{})
			if err == nil && !check(h) {
				err = fmt.Errorf("the autoscaler is at %+v", h.Status)
			}
			return h, err
		})
	}
	utilization := func(h *autoscalingv2.HorizontalPodAutoscaler) int32 {
		if len(h.Status.CurrentMetrics) == 0 || h.Status.CurrentMetrics[0].Resource == nil || h.Status.CurrentMetrics[0].Resource.Current.AverageUtilization == nil {
			return -1
		}
		return *h.Status.CurrentMetrics[0].Resource.Current.AverageUtilization
	}
	c.readyPods(t, ns, "app=busy", 1)
	if h := status(func(h *autoscalingv2.HorizontalPodAutoscaler) bool { return utilization(h) >= 0 }); h.Status.CurrentReplicas != 1 {
		t.Errorf("an idle service has %d replicas", h.Status.CurrentReplicas)
	}
	service := fmt.Sprintf("http://busy.%s.svc.cluster.local", ns)
	c.awaitFetch(t, service+"/")
	// 800 % of what the pod asked for.
	form := url.Values{"millicores": {"800"}, "durationSec": {"600"}}
	res, err := c.httpClient().Post(service+"/ConsumeCPU", "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	status(func(h *autoscalingv2.HorizontalPodAutoscaler) bool {
		return h.Status.DesiredReplicas == 4 && h.Status.CurrentReplicas == 4
	})
	c.readyPods(t, ns, "app=busy", 4)
	c.awaitEvent(t, ns, "busy", "SuccessfulRescale", "New size: 4; reason: cpu resource utilization (percentage of request) above target")
}
