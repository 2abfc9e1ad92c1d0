package page

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/report/dataset"
)

// What is kept of telemetry in memory at most; a run has less.
const (
	maxLogs    = 400_000
	maxSpans   = 400_000
	maxSamples = 2_000_000
	// How much of it a moment shows, and how far from the moment it may be.
	shownLogs   = 120
	shownTraces = 6
	nearby      = 10 * time.Second
	// fallRows is how many spans of a trace are drawn.
	fallRows = 60
)

// telemetry is what a run has kept, in the order of time.
type telemetry struct {
	*dataset.Telemetry
	logs   []dataset.Log
	spans  []dataset.Span
	series *series
}

// readTelemetry are those that were read last.
type readTelemetry struct {
	mu   sync.Mutex
	file string
	last *telemetry
	err  error
}

// of reads the telemetry of a record, or returns it as it was read before: it does not change.
func (r *readTelemetry) of(record string) (*telemetry, error) {
	r.mu.Lock()
	defer r.mu.Unlock() // One at a time: it may be large.
	if r.file == record && r.err == nil {
		return r.last, nil
	}
	r.file = record
	r.last, r.err = openTelemetry(record)
	return r.last, r.err
}

func openTelemetry(record string) (*telemetry, error) {
	src, err := dataset.Open(record)
	if err != nil {
		return nil, err
	}
	t := &telemetry{Telemetry: src, series: newSeries()}
	err = errors.Join(
		src.Logs(func(l dataset.Log) {
			if len(t.logs) < maxLogs {
				t.logs = append(t.logs, l)
			}
		}),
		src.Spans(func(s dataset.Span) {
			if len(t.spans) < maxSpans {
				t.spans = append(t.spans, s)
			}
		}),
		src.Samples(t.series.add))
	slices.SortStableFunc(t.logs, func(a, b dataset.Log) int { return a.Time.Compare(b.Time) })
	return t, err
}

// shownLog is a line of a log, as a page has it.
type shownLog struct {
	Clock, Pod, Message string
	Bad                 bool
}

// logsAt are the lines around a time, the nearest if there are many.
func (t *telemetry) logsAt(at time.Time) (list []shownLog) {
	first, _ := slices.BinarySearchFunc(t.logs, at.Add(-nearby), func(l dataset.Log, at time.Time) int {
		return l.Time.Compare(at)
	})
	last, _ := slices.BinarySearchFunc(t.logs, at.Add(nearby), func(l dataset.Log, at time.Time) int {
		return l.Time.Compare(at)
	})
	now, _ := slices.BinarySearchFunc(t.logs, at, func(l dataset.Log, at time.Time) int { return l.Time.Compare(at) })
	first, last = max(first, now-shownLogs/2), min(last, now+shownLogs/2)
	for _, l := range t.logs[first:max(first, last)] {
		level := observe.LevelOf(l.Message)
		list = append(list, shownLog{
			clock(l.Time), visible(l.Pod), clip(l.Message), level == "error" || level == "fatal",
		})
	}
	return list
}

// shownTrace is a request through the services.
type shownTrace struct {
	ID, Link, Name string
	Took           float64
	Failed         bool
	spans          []dataset.Span
}

// tracesAt are requests around a time: those that failed first, then the longest.
func (t *telemetry) tracesAt(at time.Time) []*shownTrace {
	byID := map[string]*shownTrace{}
	for _, s := range t.spans {
		if s.Parent == "" && s.Start.After(at.Add(-nearby)) && s.Start.Before(at.Add(nearby)) {
			name := visible(s.Service + " " + s.Operation)
			byID[s.Trace] = &shownTrace{ID: s.Trace, Name: name, Took: s.Duration.Seconds()}
		}
	}
	for _, s := range t.spans {
		if one := byID[s.Trace]; one != nil {
			one.spans = append(one.spans, s)
			one.Failed = one.Failed || s.Failed
		}
	}
	var list []*shownTrace
	for _, id := range sortedKeys(byID) {
		list = append(list, byID[id])
	}
	slices.SortStableFunc(list, func(a, b *shownTrace) int {
		if a.Failed != b.Failed {
			return map[bool]int{true: -1, false: 1}[a.Failed]
		}
		return -cmp.Compare(a.Took, b.Took)
	})
	return list[:min(len(list), shownTraces)]
}

// waterfall draws a trace: a bar for each span, below the one that made it.
func waterfall(t *shownTrace) *drawing {
	const (
		row, left, width = 18.0, 210.0, 560.0
	)
	children := map[string][]dataset.Span{}
	known := map[string]bool{}
	for _, s := range t.spans {
		known[s.ID] = true
	}
	for _, s := range t.spans {
		parent := s.Parent
		if !known[parent] {
			parent = ""
		}
		children[parent] = append(children[parent], s)
	}
	var rows []dataset.Span
	var depth []int
	var walk func(id string, level int)
	walk = func(id string, level int) {
		list := children[id]
		delete(children, id) // A span that is its own parent is drawn once.
		slices.SortFunc(list, func(a, b dataset.Span) int { return a.Start.Compare(b.Start) })
		for _, s := range list {
			if len(rows) < fallRows {
				rows, depth = append(rows, s), append(depth, level)
			}
			if s.ID != "" {
				walk(s.ID, level+1)
			}
		}
	}
	walk("", 0)
	var from, to time.Time
	for i, s := range rows {
		if i == 0 || s.Start.Before(from) {
			from = s.Start
		}
		if end := s.Start.Add(s.Duration); end.After(to) {
			to = end
		}
	}
	long := max(to.Sub(from).Seconds(), 1e-6)
	words := fmt.Sprintf("%s: %s in %s", t.Name, plural(len(rows), "span"), seconds(long))
	d := newDrawing(left+width+8, row*float64(len(rows))+24, words)
	d.class = "waterfall"
	for i := range 5 {
		x := left + width*float64(i)/4
		d.line("grid", x, 0, x, row*float64(len(rows))+4)
		at := "0"
		if i > 0 {
			at = seconds(long * float64(i) / 4)
		}
		d.text("", []string{"start", "middle", "middle", "middle", "end"}[i], x, row*float64(len(rows))+18, at)
	}
	for i, s := range rows {
		y := row * float64(i)
		name := strings.Repeat("\u00a0\u00a0", min(depth[i], 8)) + s.Service
		class := "span"
		if s.Failed {
			class, name = "span bad", name+" !"
		}
		fmt.Fprintf(d, "<g><title>%s</title>", escape(fmt.Sprintf("%s %s, %s", s.Service, s.Operation, s.Duration)))
		d.text("", "start", 0, y+13, name)
		x := left + width*s.Start.Sub(from).Seconds()/long
		d.rect(class, x, y+4, max(1.5, width*s.Duration.Seconds()/long), row-7, 2)
		d.WriteString("</g>")
	}
	return d
}
