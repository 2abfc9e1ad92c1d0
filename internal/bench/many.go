package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
)

const (
	manyEnvironments = 64
	// environmentShare is what an environment with 30 pods needs of the machine's memory, roughly.
	environmentShare = 200 << 20
)

// benchMany starts environments, a few at a time, deploys an application in each, and looks at all
// of them together.
func benchMany(ctx context.Context, r *run) error {
	n := r.envs
	if n == 0 {
		n = manyEnvironments
		if m := measure.ThisMachine(); m.Available > 0 {
			n = min(n, int(m.Available/environmentShare))
		}
	}
	clusters := make([]*cluster, n)
	defer func() {
		var g errgroup.Group
		for _, c := range clusters {
			if c != nil {
				g.Go(func() error { c.close(); return nil })
			}
		}
		_ = g.Wait()
	}()
	start := time.Now()
	var g errgroup.Group
	g.SetLimit(2 * runtime.NumCPU())
	for i := range clusters {
		g.Go(func() (err error) {
			if clusters[i], err = r.startLab(ctx); err != nil {
				return fmt.Errorf("environment %d of %d: %w", i+1, n, err)
			}
			client := clusters[i].client
			if _, err := clusters[i].waitReady(ctx); err != nil {
				return err
			}
			if err := makeNamespace(ctx, client, appNamespace); err != nil {
				return err
			}
			_, err = deploy(ctx, client, appNamespace, application("web", appReplicas))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	took := time.Since(start)
	list, err := watchIdle(ctx, r.idle, clusters)
	if err != nil {
		return err
	}
	var up int
	var memory int64
	share, cpu := measure.Of("MB"), measure.Of("%")
	for i, c := range clusters {
		if pods, err := readyPods(ctx, c.client, appNamespace); err == nil && pods == appReplicas &&
			isUp(ctx, c.client) {
			up++
		}
		memory += list[i].memory.Share
		share.Add(megabytes(list[i].memory.Share))
		cpu.Add(list[i].cpu)
	}
	r.report(measure.Row{
		What: "side by side: environments with 30 pods up", Value: measure.Of("", float64(up)),
		Target: measure.AtLeast(manyEnvironments),
	})
	r.report(measure.Row{
		What:  fmt.Sprintf("side by side: %d of them from nothing to all pods Ready", n),
		Value: measure.Of("s", took.Seconds()),
	})
	r.report(measure.Row{What: "side by side: memory of all", Value: measure.Of("GB", float64(memory)/1e9)})
	r.report(measure.Row{What: "side by side: memory of each, its share of common pages included", Value: share})
	r.report(measure.Row{What: "side by side: idle CPU of each, of a core", Value: cpu})
	return nil
}
