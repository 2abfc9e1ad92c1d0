package prometheus

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	// stripes is how many locks guard the series. The default suits millions of series and costs
	// megabytes.
	stripes = 512
	// sampleCost is the CPU time to store a sample.
	sampleCost = 4 * time.Microsecond
	// seriesSize is the memory a series in the head holds.
	seriesSize = 4 << 10
)

// openStorage opens an empty database in the container's scratch directory.
func openStorage(env *kit.Env, o *options, log *slog.Logger, reg prometheus.Registerer) (*tsdb.DB, error) {
	if err := os.RemoveAll(env.Scratch); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(env.Scratch, 0o700); err != nil {
		return nil, err
	}
	opts := tsdb.DefaultOptions()
	opts.RetentionDuration = time.Duration(o.retention).Milliseconds()
	opts.MaxBytes = o.retentionSize
	opts.MinBlockDuration = time.Duration(o.minBlock).Milliseconds()
	opts.MaxBlockDuration = time.Duration(o.maxBlock).Milliseconds()
	opts.StripeSize = stripes
	opts.HeadChunksWriteBufferSize = chunks.MinWriteBufferSize
	opts.NoLockfile = true
	opts.WALSegmentSize = -1 // The files end with the container: there is nothing to recover.
	return tsdb.Open(env.Scratch, log, reg, opts, tsdb.NewDBStats())
}

// metered states what storing samples costs.
type metered struct {
	storage.Appendable
	env *kit.Env
}

func (m metered) Appender(ctx context.Context) storage.Appender {
	return &meteredAppender{Appender: m.Appendable.Appender(ctx), ctx: ctx, cpu: m.env.CPU}
}

type meteredAppender struct {
	storage.Appender
	ctx     context.Context
	cpu     kit.CPU
	samples int
}

func (a *meteredAppender) Append(ref storage.SeriesRef, l labels.Labels, t int64,
	v float64,
) (storage.SeriesRef, error) {
	a.samples++
	return a.Appender.Append(ref, l, t, v)
}

func (a *meteredAppender) Commit() error {
	err := a.Appender.Commit()
	_ = a.cpu.Use(a.ctx, time.Duration(a.samples)*sampleCost) // The samples are stored whoever waits.
	return err
}

// meterMemory states what the series hold until the context ends.
func meterMemory(ctx context.Context, env *kit.Env, db *tsdb.DB, every time.Duration) {
	held := int64(0)
	defer func() { _ = env.Memory.Add(-held) }()
	for {
		now := int64(db.Head().NumSeries()) * seriesSize
		if env.Memory.Add(now-held) != nil {
			return // The container is being killed.
		}
		held = now
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return
		}
	}
}
