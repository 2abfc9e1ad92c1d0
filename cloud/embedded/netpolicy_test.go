package embedded_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNetworkPolicy(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	for _, name := range []string{"server", "friend", "stranger"} {
		c.apply(t, ns, fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {app: %[1]s}}, spec: {containers: [{name: main, image: '%s', args: [netexec]}]}}", name, agnhostImage))
	}
	c.apply(t, ns, "{apiVersion: v1, kind: Service, metadata: {name: server}, spec: {selector: {app: server}, ports: [{port: 80, targetPort: 8080}]}}")
	for _, name := range []string{"server", "friend", "stranger"} {
		c.readyPods(t, ns, "app="+name, 1)
	}
	connect := func(from string) (string, error) {
		return c.tryExec(t.Context(), ns, from, "/agnhost", "connect", "--timeout=1s", "server:80")
	}
	reaches := func(from string) {
		t.Helper()
		await(t, func() (string, error) {
			out, err := connect(from)
			if err != nil {
				err = fmt.Errorf("%s does not reach the server: %w: %s", from, err, out)
			}
			return out, err
		})
	}
	blocked := func(from string) {
		t.Helper()
		await(t, func() (none struct{}, err error) {
			out, err := connect(from)
			if err == nil || !strings.Contains(out, "TIMEOUT") {
				return none, fmt.Errorf("%s gets through, or fails otherwise than in silence: %v: %s", from, err, out)
			}
			return none, nil
		})
	}
	reaches("friend")
	reaches("stranger")

	c.apply(t, ns, "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny}, spec: {podSelector: {matchLabels: {app: server}}, policyTypes: [Ingress]}}")
	blocked("friend")
	blocked("stranger")

	c.apply(t, ns, `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: allow-friend}
spec:
  podSelector: {matchLabels: {app: server}}
  ingress:
  - from: [{podSelector: {matchLabels: {app: friend}}}]
    ports: [{port: 8080}]
`)
	reaches("friend")
	blocked("stranger")

	// A policy of the sender's counts too.
	c.apply(t, ns, `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: silence-friend}
spec:
  podSelector: {matchLabels: {app: friend}}
  policyTypes: [Egress]
  egress: [{ports: [{port: 53, protocol: UDP}]}]
`)
	blocked("friend")
	if err := c.client.NetworkingV1().NetworkPolicies(ns).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	reaches("friend")
	reaches("stranger")
}
