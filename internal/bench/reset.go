package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/cloud/embedded"
	"github.com/aiopslab/aiopslab/internal/bench/measure"
)

// benchReset wrecks an environment and resets it. What differs from the snapshot is counted twice:
// at once, and when the controllers have had the time to do harm. The stock way to get an application
// back is to delete its namespace and to deploy it again; what is wrong elsewhere stays.
func benchReset(ctx context.Context, r *run) error {
	c, client, err := r.embed(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := makeNamespace(ctx, client, appNamespace); err != nil {
		return err
	}
	if _, err := deploy(ctx, client, appNamespace, application("web", appReplicas)); err != nil {
		return err
	}
	if err := sleep(ctx, calm); err != nil {
		return err
	}
	s, err := c.Snapshot(ctx)
	if err != nil {
		return err
	}
	snapshot := s.(*embedded.Snapshot)
	took, differ, later := measure.Of("s"), measure.Of(""), measure.Of("")
	for range r.rounds {
		if err := vandalise(ctx, client); err != nil {
			return err
		}
		start := time.Now()
		if err := c.Reset(ctx, snapshot); err != nil {
			return err
		}
		took.Add(time.Since(start).Seconds())
		for i, q := range []*measure.Quantity{&differ, &later} {
			if err := sleep(ctx, time.Duration(i)*calm); err != nil {
				return err
			}
			keys, err := c.Diff(ctx, snapshot)
			if err != nil {
				return err
			}
			q.Add(float64(len(keys)))
		}
		if n, err := readyPods(ctx, client, appNamespace); err != nil || n != appReplicas {
			return fmt.Errorf("%d of %d pods are Ready after a reset: %w", n, appReplicas, err)
		}
	}
	stock, err := r.stockReset(ctx)
	if err != nil {
		return err
	}
	r.report(measure.Row{What: "reset of a 30-pod application", Value: took, Stock: stock, Target: measure.AtMost(0.5)})
	r.report(measure.Row{What: "reset: keys that differ at once", Value: differ, Target: measure.AtMost(0)})
	r.report(measure.Row{
		What: fmt.Sprintf("reset: keys that differ %.0f s later", calm.Seconds()), Value: later,
		Target: measure.AtMost(0),
	})
	return nil
}

// vandalise does what an agent might.
func vandalise(ctx context.Context, c kubernetes.Interface) error {
	if err := remove(ctx, c, appNamespace, "web"); err != nil {
		return err
	}
	for _, role := range []string{"view", "edit"} {
		if err := c.RbacV1().ClusterRoles().Delete(ctx, role, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	if err := c.CoreV1().ConfigMaps(metav1.NamespaceSystem).Delete(ctx, "coredns", metav1.DeleteOptions{}); err != nil {
		return err
	}
	if err := makeNamespace(ctx, c, "mess"); err != nil {
		return err
	}
	_, err := deploy(ctx, c, "mess", application("mess", appReplicas))
	return err
}

// stockReset deletes and redeploys the application on a stock control plane, once: it takes seconds
// by design.
func (r *run) stockReset(ctx context.Context) (q measure.Quantity, err error) {
	c, err := r.startStock(ctx)
	if err != nil {
		return q, err
	}
	defer c.close()
	redeploy := func() error {
		if err := makeNamespace(ctx, c.client, appNamespace); err != nil {
			return err
		}
		_, err := deploy(ctx, c.client, appNamespace, application("web", appReplicas))
		return err
	}
	if err := redeploy(); err != nil {
		return q, err
	}
	start := time.Now()
	if err := c.client.CoreV1().Namespaces().Delete(ctx, appNamespace, metav1.DeleteOptions{}); err != nil {
		return q, err
	}
	err = until(ctx, "the end of the namespace", func() bool {
		list, err := c.client.CoreV1().Namespaces().List(ctx,
			metav1.ListOptions{FieldSelector: "metadata.name=" + appNamespace})
		return err == nil && len(list.Items) == 0
	})
	if err == nil {
		err = redeploy()
	}
	return measure.Of("s", time.Since(start).Seconds()), err
}
