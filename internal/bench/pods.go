package main

import (
	"context"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
)

// benchPods deploys and removes the same application again and again. The first time, when
// everything is cold, does not count. The stock control plane's nodes are hollow: its pods do not run.
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
	sides := []struct {
		*cluster
		took, cpu measure.Quantity
	}{
		{cluster: lab, took: measure.Of("s"), cpu: measure.Of("s")},
		{cluster: stock, took: measure.Of("s"), cpu: measure.Of("s")},
	}
	for _, s := range sides {
		if err := makeNamespace(ctx, s.client, appNamespace); err != nil {
			return err
		}
	}
	for round := range r.rounds + 1 {
		for i := range sides {
			s := &sides[i]
			before, err := measure.CPUOf(s.pid())
			if err != nil {
				return err
			}
			took, err := deploy(ctx, s.client, appNamespace, application("web", appReplicas))
			if err != nil {
				return err
			}
			after, err := measure.CPUOf(s.pid())
			if err != nil {
				return err
			}
			if err := remove(ctx, s.client, appNamespace, "web"); err != nil {
				return err
			}
			if round > 0 {
				s.took.Add(took.Seconds())
				s.cpu.Add((after - before).Seconds())
			}
		}
	}
	r.report(measure.Row{
		What: "30-pod Deployment created to all Ready, warm", Value: sides[0].took,
		Stock: sides[1].took, Target: measure.AtMost(0.5),
	})
	r.report(measure.Row{What: "30-pod Deployment: CPU time", Value: sides[0].cpu, Stock: sides[1].cpu})
	return nil
}
