package embedded_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestTrafficDistribution: clients stay in their zone if a service asks for it.
func TestTrafficDistribution(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: `+agnhostImage+`, args: [netexec, --http-port=8080], readinessProbe: {httpGet: {path: /hostname, port: 8080}, periodSeconds: 1}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, trafficDistribution: PreferClose, ports: [{port: 80, targetPort: 8080}]}
`)
	pods := c.readyPods(t, ns, "app=web", 3) // One in each zone.
	for _, p := range pods {
		await(t, func() (string, error) {
			out, err := c.tryExec(t.Context(), ns, p.Name, "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do curl -sS http://web/hostname; echo; done | sort -u")
			if err == nil && strings.TrimSpace(out) != p.Name {
				err = fmt.Errorf("a client in the zone of %s reaches %q", p.Name, out)
			}
			return out, err
		})
	}
}
