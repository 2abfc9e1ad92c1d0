package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/aiopslab/aiopslab/cloud/kube"
)

// TestKubeconfig: who has nothing but a kubeconfig gets into the cluster's network, to the pods that are ready, and is
// told why if nobody answers.
func TestKubeconfig(t *testing.T) {
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: `+agnhostImage+`, args: [netexec, --http-port=8080], readinessProbe: {httpGet: {path: /hostname, port: 8080}, periodSeconds: 1}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}, {name: wrong, port: 81, targetPort: 8081}]}
`)
	pods := c.readyPods(t, ns, "app=web", 2)
	b, err := c.Kubeconfig("test")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := kube.Open(t.Context(), kube.Options{Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if !strings.HasPrefix(k.Version.GitVersion, "v1.") || k.Context == "" {
		t.Errorf("the context %q is of a cluster %q", k.Context, k.Version.GitVersion)
	}
	seen := map[string]bool{}
	await(t, func() (string, error) {
		name, err := hostname(t.Context(), k, "web."+ns+".svc.cluster.local")
		if seen[name] = true; err == nil && len(seen) < 2 {
			err = fmt.Errorf("of two pods only %v answers", seen)
		}
		return name, err
	})
	if name, err := hostname(t.Context(), k, net.JoinHostPort(pods[1].Status.PodIP, "8080")); name != pods[1].Name {
		t.Errorf("at the address of %s: %q, %v", pods[1].Name, name, err)
	}
	if _, err := hostname(t.Context(), k, "web."+ns+":81"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a port at which nobody listens: %v", err)
	}
}

// hostname asks a pod for its name, over a connection of its own.
func hostname(ctx context.Context, k *kube.Cloud, host string) (string, error) {
	transport := &http.Transport{DialContext: k.Dial, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/hostname", nil)
	if err != nil {
		return "", err
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}
