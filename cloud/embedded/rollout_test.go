package embedded_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// front is a service as a careful operator writes it: ready before it gets traffic, and serving
// until nobody sends it any more. It is to be filled with a version and how many seconds that takes.
const front = `
apiVersion: v1
kind: Service
metadata: {name: front}
spec: {selector: {app: front}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front}
spec:
  replicas: 3
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front, version: %q}}
    spec:
      terminationGracePeriodSeconds: 30
      containers:
      - name: front
        image: nginx:1.29
        ports: [{name: http, containerPort: 80}]
        readinessProbe: {httpGet: {port: http}, periodSeconds: 1}
        lifecycle: {preStop: {sleep: {seconds: %d}}}
        volumeMounts: [{name: site, mountPath: /usr/share/nginx/html}]
      volumes:
      - name: site
        downwardAPI: {items: [{path: index.html, fieldRef: {fieldPath: "metadata.labels['version']"}}]}
`

func TestRollingUpdateUnderLoad(t *testing.T) {
	const drain = 10 // seconds until the last client has heard of it, on a busy machine too
	t.Parallel()
	c := shared(t)
	ns := c.namespace(t)
	c.apply(t, ns, fmt.Sprintf(front, "one", drain))
	c.readyPods(t, ns, "app=front", 3)
	url := fmt.Sprintf("http://front.%s.svc.cluster.local/", ns)
	c.awaitFetch(t, url)

	l := startLoad(c, url)
	awaitTrue(t, "version one answers", func() bool { return l.count("one") > 50 })
	c.apply(t, ns, fmt.Sprintf(front, "two", drain))
	c.rolledOut(t, ns, "front", "app=front", 3)
	seen := l.count("two")
	awaitTrue(t, "version two answers", func() bool { return l.count("two") > seen+50 })
	answers, failures := l.stop()
	if len(failures) > 0 {
		t.Errorf("%d of %d requests failed, the first with: %s", len(failures), answers["one"]+answers["two"]+len(failures), failures[0])
	}
	if got, err := c.fetch(t.Context(), url); err != nil || got != "two" {
		t.Errorf("in the end: %q, %v", got, err)
	}
}

// load is a constant stream of requests.
type load struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	answers  map[string]int
	failures []string
}

// startLoad sends requests over connections that are kept, as a proxy does, and over new ones.
func startLoad(c *cluster, url string) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{cancel: cancel, answers: map[string]int{}}
	for i := range 4 {
		l.wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{DialContext: c.Dial, DisableKeepAlives: i%2 == 0}}
			defer client.CloseIdleConnections()
			pace := time.NewTicker(2 * time.Millisecond)
			defer pace.Stop()
			for ctx.Err() == nil {
				l.request(ctx, client, url)
				<-pace.C
			}
		})
	}
	return l
}

func (l *load) request(ctx context.Context, client *http.Client, url string) {
	// A request that has begun is not cut short by the end of the load.
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	var body []byte
	res, err := client.Do(req)
	if err == nil {
		body, err = io.ReadAll(res.Body)
		res.Body.Close()
		if err == nil && res.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", res.Status, body)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failures = append(l.failures, err.Error())
	} else {
		l.answers[strings.TrimSpace(string(body))]++
	}
}

func (l *load) count(answer string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answers[answer]
}

func (l *load) stop() (answers map[string]int, failures []string) {
	l.cancel()
	l.wg.Wait()
	return l.answers, l.failures
}
