package agnhost

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
)

// cpuSlice is how much CPU time a burning core asks for at once.
const cpuSlice = 100 * time.Millisecond

// newStress returns the sub-command that uses memory and processors. It states what it would use;
// the container's limits do the rest.
func (p *program) newStress() *cobra.Command {
	var total, step string
	var pauseTime time.Duration
	var cpus int
	c := command("stress", "Lightweight compute resource stress utility", func(ctx context.Context) error {
		all, err := resource.ParseQuantity(total)
		if err != nil {
			return p.klog.fatalf("invalid --mem-total %q: %v", total, err)
		}
		each, err := resource.ParseQuantity(step)
		if err != nil || each.Value() <= 0 {
			return p.klog.fatalf("invalid --mem-alloc-size %q: %v", step, err)
		}
		p.klog.infof("Allocating %q memory, in %q chunks, with a %v sleep between allocations", all.String(), each.String(), pauseTime)
		parts := []part{once(func(ctx context.Context) error {
			for held := each.Value(); held <= all.Value(); held += each.Value() {
				if err := p.env.Memory.Add(each.Value()); err != nil {
					return err
				}
				if err := sleep(ctx, pauseTime); err != nil {
					return err
				}
			}
			p.klog.infof("Allocated %q memory", all.String())
			return nil
		})}
		for range cpus {
			p.klog.infof("Spawning a thread to consume CPU")
			parts = append(parts, p.burn)
		}
		return together(ctx, parts...)
	})
	c.Flags().StringVar(&total, "mem-total", "0", "total memory to be consumed. Memory will be consumed via multiple allocations.")
	c.Flags().StringVar(&step, "mem-alloc-size", "4Ki", "amount of memory to be consumed in each allocation")
	c.Flags().DurationVar(&pauseTime, "mem-alloc-sleep", time.Millisecond, "duration to sleep between allocations")
	c.Flags().IntVar(&cpus, "cpus", 0, "total number of CPUs to utilize")
	return c
}

// burn keeps one core busy.
func (p *program) burn(ctx context.Context) error {
	for {
		if err := p.env.CPU.Use(ctx, cpuSlice); err != nil {
			return err
		}
	}
}
