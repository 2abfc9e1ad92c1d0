package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/aiopslab/aiopslab/agent/hierarchy/queue"
	"github.com/aiopslab/aiopslab/internal/bench/measure"
)

const (
	groupMembers  = 8
	groupMessages = 1000 // of each member
)

// benchGroup has the members of a group send each other messages through the queue, each taken and acknowledged
// before the next is sent, and measures how fast that goes and what the queue takes of memory.
func benchGroup(ctx context.Context, r *run) error {
	dir, err := os.MkdirTemp(r.dir, "queue-")
	if err != nil {
		return err
	}
	before := heap()
	q, err := queue.Open(ctx, queue.Config{Dir: dir})
	if err != nil {
		return err
	}
	rate := measure.Of("/s")
	for n := range r.rounds {
		start := time.Now()
		if err := talk(ctx, q, n); err != nil {
			_ = q.Close() // The error that counts is the first.
			return err
		}
		rate.Add(groupMembers * groupMessages / time.Since(start).Seconds())
	}
	memory := heap() - before
	r.report(measure.Row{
		What:  fmt.Sprintf("messages through the queue of a group, %d members", groupMembers),
		Value: rate, Target: measure.AtLeast(2000),
	})
	r.report(measure.Row{
		What: "memory of the queue of a group", Value: measure.Of("MB", memory/1e6), Target: measure.AtMost(40),
	})
	return q.Close()
}

// talk has each member send itself messages and take them out.
func talk(ctx context.Context, q *queue.Queue, round int) error {
	body := []byte(strings.Repeat("it is well again on my side. ", 10))
	g, ctx := errgroup.WithContext(ctx)
	for m := range groupMembers {
		name := fmt.Sprintf("service-%d", m)
		g.Go(func() error {
			in, err := q.Inbox(ctx, name)
			for n := 0; err == nil && n < groupMessages; n++ {
				if err = q.Send(ctx, name, fmt.Sprintf("%d-%s-%d", round, name, n), body); err != nil {
					break
				}
				var d *queue.Delivery
				if d, err = in.Next(ctx); err == nil {
					err = d.Ack()
				}
			}
			return err
		})
	}
	return g.Wait()
}

// heap is how many bytes are in use, and reserved for stacks.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapInuse + m.StackInuse)
}
