package embedded_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/drain"

	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/cloud/embedded/controlplane"
)

const spread = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      tolerations:
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 0}
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 0}
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}
      containers:
      - name: web
        image: ` + agnhostImage + `
        args: [netexec]
        readinessProbe: {httpGet: {port: 8080, path: /hostname}, periodSeconds: 1}
`

// A node that loses its power is noticed, and its pods are replaced elsewhere.
func TestNodeLoss(t *testing.T) {
	// Nodes renew their leases every 10 s.
	c := fresh(t, embedded.Options{Timing: controlplane.Timing{NodeMonitorPeriod: 200 * time.Millisecond, NodeMonitorGrace: 15 * time.Second}})
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := c.namespace(t)
	c.apply(t, ns, fmt.Sprintf(spread, 3))
	lost := c.readyPods(t, ns, "app=web", 3)[0]
	node := lost.Spec.NodeName
	c.Node(node).Fail()

	n := await(t, func() (*v1.Node, error) {
		n, err := c.client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		if err == nil && (condition(n, v1.NodeReady).Status != v1.ConditionUnknown || len(n.Spec.Taints) < 2) {
			err = fmt.Errorf("%s is %+v with %v", node, condition(n, v1.NodeReady), n.Spec.Taints)
		}
		return n, err
	})
	if r := condition(n, v1.NodeReady); r.Reason != "NodeStatusUnknown" || r.Message != "Kubelet stopped posting node status." {
		t.Errorf("the node is unready because of %s: %s", r.Reason, r.Message)
	}
	c.awaitEvent(t, "default", node, "NodeNotReady", fmt.Sprintf("Node %s status is now: NodeNotReady", node))
	c.awaitEvent(t, ns, lost.Name, "TaintManagerEviction", "Marking for deletion Pod "+ns+"/"+lost.Name)

	// The API keeps the lost pod, because no kubelet confirms that it is gone. On a busy machine another may be lost with
	// it, which came there when its own node was late with its lease.
	await(t, func() (none struct{}, err error) {
		list, err := c.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return none, err
		}
		ready, stuck := 0, false
		for _, p := range list.Items {
			switch {
			case p.Spec.NodeName != node && isReady(&p):
				ready++
			case p.Name == lost.Name:
				stuck = p.DeletionTimestamp != nil && !isReady(&p)
			}
		}
		if ready != 3 || !stuck {
			return none, fmt.Errorf("%d pods are ready elsewhere; %s is stuck on %s: %t", ready, lost.Name, node, stuck)
		}
		return none, nil
	})
	// No request goes to it. The service's name may be lost with the node, if cluster DNS was on it.
	web, err := c.client.CoreV1().Services(ns).Get(t.Context(), "web", metav1.GetOptions{})
	must(t, err)
	for range 20 {
		if name := c.awaitFetch(t, "http://"+web.Spec.ClusterIP+"/hostname"); name == lost.Name {
			t.Fatal("the lost pod answers")
		}
	}
}

func condition(n *v1.Node, kind v1.NodeConditionType) v1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return v1.NodeCondition{}
}

// kubectl drain evicts pods only as their disruption budget allows.
func TestDrain(t *testing.T) {
	c := fresh(t, embedded.Options{})
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	ns := c.namespace(t)
	c.apply(t, ns, fmt.Sprintf(spread, 2))
	evicted := c.readyPods(t, ns, "app=web", 2)[0]
	node, err := c.client.CoreV1().Nodes().Get(t.Context(), evicted.Spec.NodeName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	awaitTrue(t, "the budget allows no disruption", func() bool {
		b, err := c.client.PolicyV1().PodDisruptionBudgets(ns).Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && b.Status.CurrentHealthy == 2 && b.Status.DisruptionsAllowed == 0
	})

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out := &lines{}
	d := &drain.Helper{
		Ctx: ctx, Client: c.client, GracePeriodSeconds: -1, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true,
		Timeout: patience, EvictErrorRetryDelay: time.Second, Out: out, ErrOut: out,
	}
	if err := drain.RunCordonOrUncordon(d, node, true); err != nil {
		t.Fatal(err)
	}
	drained := make(chan error, 1)
	go func() { drained <- drain.RunNodeDrain(d, node.Name) }()

	refusal := fmt.Sprintf(`error when evicting pods/%q -n %q (will retry after 1s): Cannot evict pod as it would violate the pod's disruption budget.`, evicted.Name, ns)
	await(t, func() (none struct{}, err error) {
		if !strings.Contains(out.String(), refusal) {
			err = fmt.Errorf("drain does not say %q but %q", refusal, out)
		}
		return none, err
	})
	if p, err := c.client.CoreV1().Pods(ns).Get(t.Context(), evicted.Name, metav1.GetOptions{}); err != nil || p.DeletionTimestamp != nil {
		t.Fatalf("the pod was evicted against its budget: %v", err)
	}

	// A third pod makes room, and the node is left without ever going below two.
	watch, err := c.client.CoreV1().Pods(ns).Watch(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	c.apply(t, ns, fmt.Sprintf(spread, 3))
	ready := map[string]bool{}
	least, enough := 3, false
	for done := false; !done; {
		select {
		case e := <-watch.ResultChan():
			p := e.Object.(*v1.Pod)
			ready[p.Name] = isReady(p) && p.DeletionTimestamp == nil
			n := 0
			for _, r := range ready {
				if r {
					n++
				}
			}
			if enough = enough || n >= 2; enough { // The first events tell of the two that are there.
				least = min(least, n)
			}
		case err := <-drained:
			if err != nil {
				t.Fatalf("drain: %v\n%s", err, out)
			}
			done = true
		}
	}
	if least < 2 {
		t.Errorf("only %d pods were ready at some time, the budget is 2", least)
	}
	for _, p := range c.readyPods(t, ns, "app=web", 3) {
		if p.Spec.NodeName == node.Name {
			t.Errorf("%s is on the drained node", p.Name)
		}
	}
	c.awaitEvent(t, "default", node.Name, "NodeNotSchedulable", "Node "+node.Name+" status is now: NodeNotSchedulable")
}
