package main

import (
	"context"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
)

// benchPods deploys and removes the same application again and again. The first time, when
// everything is cold, does not count.
func benchPods(ctx context.Context, r *run) error {
	lab, err := r.startLab(ctx)
	if err != nil {
		return err
	}
	defer lab.close()
	if _, err := lab.waitReady(ctx); err != nil {
		return err
	}
	stock, err := r.startStock(ctx)
	if err != nil {
		return err
	}
	defer stock.close()
	value, baseline := measure.Of("s"), measure.Of("s")
	for _, c := range []*cluster{lab, stock} {
		if err := makeNamespace(ctx, c.client, appNamespace); err != nil {
			return err
		}
	}
	for round := range r.rounds + 1 {
		for c, q := range map[*cluster]*measure.Quantity{lab: &value, stock: &baseline} {
			d, err := deploy(ctx, c.client, appNamespace, application("web", appReplicas))
			if err != nil {
				return err
			}
			if err := remove(ctx, c.client, appNamespace, "web"); err != nil {
				return err
			}
			if round > 0 {
				q.Add(d.Seconds())
			}
		}
	}
	r.report(measure.Row{What: "30-pod Deployment created to all Ready, warm", Value: value, Stock: baseline, Target: measure.AtMost(0.5)})
	return nil
}
