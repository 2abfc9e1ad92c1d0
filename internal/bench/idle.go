package main

import (
	"context"
	"time"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
)

// calm is how long a cluster is left alone before it counts as idle.
const calm = 3 * time.Second

// usage is what a process needs while it does nothing.
type usage struct {
	memory measure.Memory
	cpu    float64 // percent of a core
}

// benchIdle watches the lab and the stock control plane side by side, empty and with an application.
func benchIdle(ctx context.Context, r *run) error {
	lab, err := r.startLab(ctx)
	if err != nil {
		return err
	}
	defer lab.close()
	stock, err := r.startStock(ctx)
	if err != nil {
		return err
	}
	defer stock.close()
	clusters := []*cluster{lab, stock}
	for _, c := range clusters {
		if _, err := c.waitReady(ctx); err != nil {
			return err
		}
	}
	empty, err := watchIdle(ctx, r.idle, clusters)
	if err != nil {
		return err
	}
	for _, c := range clusters {
		if err := makeNamespace(ctx, c.client, appNamespace); err != nil {
			return err
		}
		if _, err := deploy(ctx, c.client, appNamespace, application("web", appReplicas)); err != nil {
			return err
		}
	}
	full, err := watchIdle(ctx, r.idle, clusters)
	if err != nil {
		return err
	}
	row := func(what, unit string, u []usage, target measure.Target, value func(usage) float64) {
		r.report(measure.Row{
			What: what, Value: measure.Of(unit, value(u[0])), Stock: measure.Of(unit, value(u[1])),
			Target: target,
		})
	}
	resident := func(u usage) float64 { return megabytes(u.memory.Resident) }
	private := func(u usage) float64 { return megabytes(u.memory.Private) }
	cpu := func(u usage) float64 { return u.cpu }
	row("idle, 3 nodes: resident memory", "MB", empty, measure.AtMost(220), resident)
	row("idle, 3 nodes: private memory", "MB", empty, measure.AtMost(120), private)
	row("idle, 3 nodes: CPU, of a core", "%", empty, measure.AtMost(2), cpu)
	row("idle with 30 pods: resident memory", "MB", full, measure.Target{}, resident)
	row("idle with 30 pods: private memory", "MB", full, measure.Target{}, private)
	row("idle with 30 pods: CPU, of a core", "%", full, measure.Target{}, cpu)
	return nil
}

// watchIdle lets clusters calm down and then measures each for a while.
func watchIdle(ctx context.Context, d time.Duration, clusters []*cluster) ([]usage, error) {
	if err := sleep(ctx, calm); err != nil {
		return nil, err
	}
	before := make([]time.Duration, len(clusters))
	start := time.Now()
	for i, c := range clusters {
		var err error
		if before[i], err = measure.CPUOf(c.pid()); err != nil {
			return nil, err
		}
	}
	if err := sleep(ctx, d); err != nil {
		return nil, err
	}
	list := make([]usage, len(clusters))
	for i, c := range clusters {
		after, err := measure.CPUOf(c.pid())
		if err != nil {
			return nil, err
		}
		list[i].cpu = 100 * (after - before[i]).Seconds() / time.Since(start).Seconds()
		if list[i].memory, err = measure.MemoryOf(c.pid()); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func megabytes(n int64) float64 { return float64(n) / 1e6 }

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
