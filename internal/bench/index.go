package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/aiopslab/aiopslab/internal/bench/measure"
	"github.com/aiopslab/aiopslab/internal/bench/records"
	"github.com/aiopslab/aiopslab/record/index"
)

const indexRuns = 10_000

// benchIndex makes the index of many runs from their records, and opens it.
func benchIndex(ctx context.Context, r *run) error {
	dir, cache := filepath.Join(r.dir, "runs"), filepath.Join(r.dir, "indexes")
	if err := records.Fill(dir, indexRuns); err != nil {
		return err
	}
	o := index.Options{Cache: cache}
	start := time.Now()
	x, err := index.Open(dir, o)
	if err != nil {
		return err
	}
	r.report(measure.Row{
		What:  fmt.Sprintf("index of %d runs made of records", len(x.Runs)),
		Value: measure.Of("s", time.Since(start).Seconds()),
	})
	// The newest records are read once more: they may have been changed since.
	if err := until(ctx, "the index to know all records", func() bool {
		x, err = index.Open(dir, o)
		return err != nil || x.Read == 0
	}); err != nil {
		return err
	}
	took := measure.Of("ms")
	for range r.rounds {
		start := time.Now()
		if x, err = index.Open(dir, o); err != nil {
			return err
		}
		took.Add(float64(time.Since(start).Milliseconds()))
	}
	r.report(measure.Row{
		What: fmt.Sprintf("index of %d runs opened", len(x.Runs)), Value: took, Target: measure.AtMost(300),
	})
	return nil
}
