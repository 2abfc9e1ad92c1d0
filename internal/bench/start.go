package main

import (
	"context"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
)

// benchStart measures starts one after the other, the lab's and stock ones in turns.
func benchStart(ctx context.Context, r *run) error {
	lab, ready, stock := measure.Of("s"), measure.Of("s"), measure.Of("s")
	labCPU, stockCPU := measure.Of("s"), measure.Of("s")
	for range r.rounds {
		c, err := r.startLab(ctx)
		if err != nil {
			return err
		}
		all, err := c.waitReady(ctx)
		c.close()
		if err != nil {
			return err
		}
		lab.Add(c.up.Seconds())
		labCPU.Add(c.upCPU.Seconds())
		ready.Add(all.Seconds())
		if c, err = r.startStock(ctx); err != nil {
			return err
		}
		c.close()
		stock.Add(c.up.Seconds())
		stockCPU.Add(c.upCPU.Seconds())
	}
	r.report(measure.Row{
		What: "start: API ready, controllers synced, 3 nodes Ready", Value: lab, Stock: stock,
		Target: measure.RatioAtMost(0.3),
	})
	r.report(measure.Row{What: "start: CPU time to there", Value: labCPU, Stock: stockCPU})
	r.report(measure.Row{What: "start: cluster DNS and metrics-server up, too", Value: ready})
	return nil
}
