package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/guard"
	"github.com/aiopslab/aiopslab/internal/bench/measure"
)

const (
	guardCalls  = 200 // of a round
	guardWarmup = 20
)

// benchGuard makes API calls through the guard, by the agent's own door and by the cluster's network,
// and the same calls to the API server's own port, in turns.
func benchGuard(ctx context.Context, r *run) error {
	c, client, err := r.embed(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	g, err := guard.Start(ctx, guard.Options{
		Upstream: c.RESTConfig(), Direct: c.DirectConfig(), Revision: c.Revision,
		Journal: func(guard.Entry) {},
	})
	if err != nil {
		return err
	}
	defer g.Close()
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	if _, err := maps.Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bench"}},
		metav1.CreateOptions{}); err != nil {
		return err
	}
	doors := []struct {
		what       string
		kubeconfig func(string) ([]byte, error)
		gate       *cloud.Gate
	}{
		{"", c.Kubeconfig, nil},
		{"through the guard", g.Kubeconfig, nil},
		{"over the network's gate", c.Kubeconfig, &cloud.Gate{API: g.Network(), Kubelet: g.Kubelet}},
	}
	for _, call := range []struct {
		what string
		do   func(kubernetes.Interface, int) error
	}{
		{"get", func(c kubernetes.Interface, _ int) error {
			_, err := c.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(ctx, "bench", metav1.GetOptions{})
			return err
		}},
		{"list of 3 nodes", func(c kubernetes.Interface, _ int) error {
			_, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			return err
		}},
		{"update", func(c kubernetes.Interface, i int) error {
			m := &v1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "bench"},
				Data:       map[string]string{"i": strconv.Itoa(i)},
			}
			_, err := c.CoreV1().ConfigMaps(metav1.NamespaceDefault).Update(ctx, m, metav1.UpdateOptions{})
			return err
		}},
	} {
		latency := make([]measure.Quantity, len(doors))
		for i := range doors {
			latency[i] = measure.Of("µs")
		}
		for range r.rounds {
			for i, d := range doors {
				c.SetGate(d.gate)
				q, err := apiCalls(d.kubeconfig, call.do)
				c.SetGate(nil)
				if err != nil {
					return fmt.Errorf("%s %s: %w", call.what, d.what, err)
				}
				latency[i].Add(q.Median())
			}
		}
		for i, d := range doors[1:] {
			row := measure.Row{
				What: "API call, " + call.what + ", " + d.what + ": p50", Value: latency[i+1],
				Stock: latency[0],
			}
			if call.what == "update" && i == 0 {
				row.Target = measure.RatioAtMost(maxJournal)
			}
			r.report(row)
		}
	}
	return benchUndo(ctx, r, g)
}

const (
	maxJournal = 1.5 // times a write without the guard and its journal
	maxUndo    = 1   // seconds
)

// benchUndo takes the writes of a full transaction back.
func benchUndo(ctx context.Context, r *run, g *guard.Guard) error {
	b, err := g.Kubeconfig(metav1.NamespaceDefault)
	if err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(b)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	took := measure.Of("s")
	for range r.rounds {
		if _, err := g.Begin(ctx); err != nil {
			return err
		}
		for i := range guard.Window / 2 {
			m := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "undo-" + strconv.Itoa(i)}}
			if _, err := maps.Create(ctx, m, metav1.CreateOptions{}); err != nil {
				return err
			}
			m.Data = map[string]string{"i": strconv.Itoa(i)}
			if _, err := maps.Update(ctx, m, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		start := time.Now()
		t, err := g.Abort(ctx)
		if err != nil {
			return err
		}
		took.Add(time.Since(start).Seconds())
		if len(t.Undone) != guard.Window || len(t.Differences) > 0 {
			return fmt.Errorf("%d writes were taken back, and differ: %v", len(t.Undone), t.Differences)
		}
	}
	r.report(measure.Row{
		What: fmt.Sprintf("undo of %d writes", guard.Window), Value: took, Target: measure.AtMost(maxUndo),
	})
	return nil
}

// apiCalls makes one call after the other and returns their latencies.
func apiCalls(kubeconfig func(string) ([]byte, error),
	do func(kubernetes.Interface, int) error,
) (q measure.Quantity, err error) {
	q = measure.Of("µs")
	b, err := kubeconfig("bench")
	if err != nil {
		return q, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(b)
	if err != nil {
		return q, err
	}
	config.QPS = -1
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return q, err
	}
	defer h.CloseIdleConnections()
	client, err := kubernetes.NewForConfigAndClient(config, h)
	if err != nil {
		return q, err
	}
	for i := range guardWarmup + guardCalls {
		start := time.Now()
		if err := do(client, i); err != nil {
			return q, err
		}
		if i >= guardWarmup {
			q.Add(float64(time.Since(start).Nanoseconds()) / 1e3)
		}
	}
	return q, nil
}
