package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	wireRequests = 2000 // of a round
	wireWarmup   = 200
	smallBody    = 128
	largeBody    = 64 << 10
)

// wireHandler answers with as many bytes as asked for.
var wireHandler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.URL.Query().Get("bytes"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(n))
	_, _ = io.WriteString(w, strings.Repeat("x", n))
})

// benchWire sends requests from one pod to another, and the same requests to the same handler over
// loopback TCP, in turns.
func benchWire(ctx context.Context, r *run) error {
	envs := make(chan *kit.Env, 1)
	c, client, err := r.embed(ctx,
		program("bench/server", func(ctx context.Context, env *kit.Env) error {
			l, err := env.Net.Listen("tcp", ":8080")
			if err != nil {
				return err
			}
			return serve(ctx, l)
		}),
		program("bench/client", func(ctx context.Context, env *kit.Env) error {
			envs <- env
			<-ctx.Done()
			return nil
		}))
	if err != nil {
		return err
	}
	defer c.Close()
	address, err := runPod(ctx, client, "server", "bench/server")
	if err != nil {
		return err
	}
	if _, err := runPod(ctx, client, "client", "bench/client"); err != nil {
		return err
	}
	env := <-envs

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	go func() { _ = serve(serving, l) }()
	tcp := http.DefaultTransport.(*http.Transport).Clone()
	tcp.Proxy = nil

	for _, t := range []struct {
		what     string
		bytes    int
		newConns bool
		target   measure.Target
	}{
		{"128 B", smallBody, false, measure.RatioAtMost(2)},
		{"64 KiB", largeBody, false, measure.RatioAtMost(2)},
		{"128 B, a new connection each", smallBody, true, measure.Target{}},
	} {
		paths := []struct {
			transport *http.Transport
			host      string
			p50, p99  measure.Quantity
		}{
			{
				transport: env.HTTPTransport(), host: net.JoinHostPort(address, "8080"), p50: measure.Of("µs"),
				p99: measure.Of("µs"),
			},
			{transport: tcp.Clone(), host: l.Addr().String(), p50: measure.Of("µs"), p99: measure.Of("µs")},
		}
		for range r.rounds {
			for i := range paths {
				p := &paths[i]
				p.transport.DisableKeepAlives = t.newConns
				latency, err := requests(ctx, p.transport, fmt.Sprintf("http://%s/?bytes=%d", p.host, t.bytes))
				p.transport.CloseIdleConnections()
				if err != nil {
					return err
				}
				p.p50.Add(latency.Median())
				p.p99.Add(latency.Percentile(99))
			}
		}
		r.report(measure.Row{
			What: "pod-to-pod request, " + t.what + ": p50", Value: paths[0].p50, Stock: paths[1].p50,
			Target: t.target,
		})
		r.report(measure.Row{What: "pod-to-pod request, " + t.what + ": p99", Value: paths[0].p99, Stock: paths[1].p99})
	}
	return nil
}

// requests sends one request after the other and returns their latencies.
func requests(ctx context.Context, t *http.Transport, url string) (measure.Quantity, error) {
	q := measure.Of("µs")
	client := &http.Client{Transport: t}
	for i := range wireWarmup + wireRequests {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return q, err
		}
		start := time.Now()
		res, err := client.Do(req)
		if err != nil {
			return q, err
		}
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			return q, fmt.Errorf("%s: %s: %w", url, res.Status, err)
		}
		if i >= wireWarmup {
			q.Add(float64(time.Since(start).Nanoseconds()) / 1e3)
		}
	}
	return q, nil
}

func serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{Handler: wireHandler}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	return kit.IgnoreClosed(s.Serve(l))
}

// program is an image with one program.
func program(name string, p kit.Program) kit.Image {
	return kit.Image{Names: []string{name}, Entrypoint: []string{"/main"}, Programs: map[string]kit.Program{"/main": p}}
}

// runPod creates a pod and returns its address once it is Ready.
func runPod(ctx context.Context, c kubernetes.Interface, name, image string) (address string, err error) {
	pods := c.CoreV1().Pods(metav1.NamespaceDefault)
	if err := until(ctx, "the service account", func() bool {
		return namespaceUsable(ctx, c, metav1.NamespaceDefault)
	}); err != nil {
		return "", err
	}
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: name, Image: image}}},
	}
	if _, err := pods.Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	err = until(ctx, "pod "+name, func() bool {
		p, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil || !podReady(p) {
			return false
		}
		address = p.Status.PodIP
		return true
	})
	return address, err
}
