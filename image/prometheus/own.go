package prometheus

import (
	"math"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
)

const (
	// chunkSamples is how many samples a chunk of the head has, and sampleSize how many bytes one takes in a block.
	chunkSamples, sampleSize = 120, 1.6
	// tidyEvery is how often the database looks whether there is something to compact.
	tidyEvery = time.Minute
	// blockSteps is how many blocks are made one.
	blockSteps = 3
)

// shelf is how a database that has run for long keeps its samples: the last ones in the head, those before in blocks.
// The database itself is younger than what it is asked about, and has no blocks.
type shelf struct {
	began, origin int64   // ms; the first sample, and the start of the program
	block, long   int64   // ms; how long a block is, and one of several
	every         int64   // ms between samples of a series
	presents      int     // how many of the series are there still
	starts, ends  []int64 // of all series of the past, sorted
}

// newShelf returns how the series of a memory are kept.
func newShelf(m *memory, o *options, every time.Duration) *shelf {
	s := &shelf{
		began: m.begin, origin: millis(m.origin), block: time.Duration(o.minBlock).Milliseconds(),
		every: every.Milliseconds(),
	}
	s.long = s.block
	if x := s.block * blockSteps; x <= time.Duration(o.maxBlock).Milliseconds() {
		s.long = x
	}
	for _, list := range m.series {
		for _, w := range list {
			for _, x := range w.spans() {
				s.starts, s.ends = append(s.starts, x.from), append(s.ends, x.to)
				if x.gone == nil {
					s.presents++
				}
			}
		}
	}
	slices.Sort(s.starts)
	slices.Sort(s.ends)
	return s
}

// headMin is the time of the oldest sample in the head: it is made a block when it is one and a half of them long.
func (s *shelf) headMin(t int64) int64 {
	return max(s.began, (t-s.block/2)/s.block*s.block)
}

// more is how many series more the head had at a time than there are now: those of pods that were gone by then stay
// until the head is made a block.
func (s *shelf) more(t int64) float64 {
	began, _ := slices.BinarySearch(s.starts, t+1)
	ended, _ := slices.BinarySearch(s.ends, s.headMin(t))
	return float64(began - ended - s.presents)
}

// chunks is how many chunks so many series have in the head.
func (s *shelf) chunks(series float64, t int64) float64 {
	return math.Round(series * (1 + float64(t-s.headMin(t))/float64(chunkSamples*s.every)))
}

// removed is how many series are not in the head any more: as many every day as in the one that is known.
func (s *shelf) removed(t int64) float64 {
	n, _ := slices.BinarySearch(s.ends, s.headMin(t))
	return math.Floor(float64(n) * max(1, float64(t-s.origin)/float64(max(1, t-s.began))))
}

// removedChunks is how many chunks are not in the head any more.
func (s *shelf) removedChunks(t int64, series float64) float64 {
	return math.Floor(series * max(0, float64(s.headMin(t)-s.origin)) / float64(s.every*chunkSamples))
}

// blocks is how many blocks there are.
func (s *shelf) blocks(t int64) float64 {
	head := s.headMin(t)
	return float64((head-head/s.long*s.long)/s.block + (head/s.long*s.long-s.began+s.long-1)/s.long)
}

// since is how often something happens in a time that is counted from 1970, since the program was started.
func (s *shelf) since(t, every int64) float64 { return max(0, float64(t/every-s.origin/every)) }

// figures are what the database tells of itself at a time that would differ had it run for long. They are given how
// many series there are now.
var figures = map[string]func(s *shelf, t int64, series float64) float64{
	"prometheus_tsdb_head_series": func(s *shelf, t int64, series float64) float64 { return series + s.more(t) },
	"prometheus_tsdb_head_chunks": func(s *shelf, t int64, series float64) float64 {
		return s.chunks(series+s.more(t), t)
	},
	"prometheus_tsdb_head_min_time":    func(s *shelf, t int64, _ float64) float64 { return float64(s.headMin(t)) },
	"prometheus_tsdb_lowest_timestamp": func(s *shelf, _ int64, _ float64) float64 { return float64(s.began) },
	"prometheus_tsdb_blocks_loaded":    func(s *shelf, t int64, _ float64) float64 { return s.blocks(t) },
	"prometheus_tsdb_storage_blocks_bytes": func(s *shelf, t int64, series float64) float64 {
		return math.Floor(series * float64((s.headMin(t)-s.began)/s.every) * sampleSize)
	},
	"prometheus_tsdb_compactions_triggered_total": func(s *shelf, t int64, _ float64) float64 {
		return s.since(t, tidyEvery.Milliseconds())
	},
	"prometheus_tsdb_compactions_total": func(s *shelf, t int64, _ float64) float64 {
		n := s.since(s.headMin(t), s.block)
		if s.long > s.block {
			n += s.since(s.headMin(t), s.long)
		}
		return n
	},
	"prometheus_tsdb_head_truncations_total": func(s *shelf, t int64, _ float64) float64 {
		return s.since(s.headMin(t), s.block)
	},
	"prometheus_tsdb_time_retentions_total": func(s *shelf, t int64, _ float64) float64 {
		return max(0, float64((s.began-s.origin)/s.long))
	},
	"prometheus_tsdb_head_series_removed_total": func(s *shelf, t int64, _ float64) float64 { return s.removed(t) },
	"prometheus_tsdb_head_series_created_total": func(s *shelf, t int64, series float64) float64 {
		return series + s.more(t) + s.removed(t)
	},
	"prometheus_tsdb_head_chunks_removed_total": func(s *shelf, t int64, series float64) float64 {
		return s.removedChunks(t, series)
	},
	"prometheus_tsdb_head_chunks_created_total": func(s *shelf, t int64, series float64) float64 {
		return s.chunks(series+s.more(t), t) + s.removedChunks(t, series)
	},
	"prometheus_tsdb_reloads_total": func(s *shelf, t int64, _ float64) float64 {
		return 1 + s.since(t, tidyEvery.Milliseconds())
	},
}

// Gather implements prometheus.Gatherer: it gathers what the program tells of itself, as if its database had run for
// long.
func (s *server) Gather() ([]*dto.MetricFamily, error) {
	families, err := s.exposed.Gather()
	m := s.data.past.Load()
	if m == nil {
		return families, err
	}
	now, series := millis(time.Now()), float64(s.db.Head().NumSeries())
	for _, f := range families {
		figure := figures[f.GetName()]
		if figure == nil || len(f.Metric) != 1 {
			continue
		}
		v := figure(m.shelf, now, series)
		switch x := f.Metric[0]; {
		case x.Gauge != nil:
			x.Gauge.Value = &v
		case x.Counter != nil:
			x.Counter.Value = &v
		}
	}
	return families, err
}
