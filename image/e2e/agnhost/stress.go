package agnhost

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
)

// cpuSlice is how much CPU time a busy core asks for at once.
const cpuSlice = 100 * time.Millisecond

// quantity is a flag for an amount such as 64Mi.
type quantity struct{ resource.Quantity }

func (q *quantity) Type() string { return "quantity" }

func (q *quantity) Set(s string) (err error) {
	q.Quantity, err = resource.ParseQuantity(s)
	return err
}

// newStress returns the sub-command that uses memory and CPU: it states what it uses, and the
// container's limits do the rest.
func (p *program) newStress() *cobra.Command {
	var total quantity
	step := quantity{resource.MustParse("4Ki")}
	var interval time.Duration
	var cpus int
	c := command("stress", "Use memory and CPU", func(ctx context.Context) error {
		if step.Value() <= 0 {
			return fmt.Errorf("--mem-alloc-size: it must be more than nothing")
		}
		parts := []part{once(func(ctx context.Context) error {
			return p.hold(ctx, total.Value(), step.Value(), interval)
		})}
		for range cpus {
			parts = append(parts, p.burn)
		}
		return together(ctx, parts...)
	})
	c.Flags().Var(&total, "mem-total", "memory to hold in the end")
	c.Flags().Var(&step, "mem-alloc-size", "memory to take at a time")
	c.Flags().DurationVar(&interval, "mem-alloc-sleep", time.Millisecond, "time from one piece of memory to the next")
	c.Flags().IntVar(&cpus, "cpus", 0, "cores to keep busy")
	return c
}

// hold takes memory piece by piece, as long as a whole piece fits, and keeps it.
func (p *program) hold(ctx context.Context, total, step int64, interval time.Duration) error {
	for range total / step {
		if err := p.env.Memory.Add(step); err != nil {
			return err
		}
		if err := sleep(ctx, interval); err != nil {
			return err
		}
	}
	p.log.Printf("holding %d bytes", total/step*step)
	return nil
}

// burn keeps one core busy.
func (p *program) burn(ctx context.Context) error {
	for {
		if err := p.env.CPU.Use(ctx, cpuSlice); err != nil {
			return err
		}
	}
}
