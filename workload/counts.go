package workload

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Counts are how many requests there were in each of a row of equal intervals.
type Counts struct {
	Interval time.Duration
	Requests []float64
}

// Span is how long it is in all.
func (c *Counts) Span() time.Duration { return c.Interval * time.Duration(len(c.Requests)) }

// Total is how many requests there were.
func (c *Counts) Total() (n float64) {
	for _, r := range c.Requests {
		n += r
	}
	return n
}

const (
	// mostIntervals is how many intervals a trace of single requests is counted in, and fewRequests how many an
	// interval should have at least: of fewer, nothing but chance can be seen.
	mostIntervals = 1000
	fewRequests   = 10
	// leastIntervals is how many a curve can be told from.
	leastIntervals = 8
	// maxTrace is how long a trace may be, in bytes.
	maxTrace = 256 << 20
)

// countColumns are the names of a column that counts, and whether it does so by the second.
var countColumns = map[string]bool{"count": false, "requests": false, "rate": true, "rps": true}

// ReadCounts reads a trace of single requests, as [ReadTrace] does, or of counts: CSV with a column time and one of
// count or requests (in the interval that begins then), rate or rps (by the second). Times are as there, and evenly
// spaced.
//
//	time,count
//	2026-01-02T00:00:00Z,1204
//	2026-01-02T00:10:00Z,1130
func ReadCounts(r io.Reader) (*Counts, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxTrace+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxTrace {
		return nil, fmt.Errorf("the trace is longer than %d bytes; give a part of it, or counts", maxTrace)
	}
	in := csv.NewReader(bytes.NewReader(data))
	if header, err := in.Read(); err == nil {
		at, count := -1, -1
		for i, name := range header {
			name = strings.ToLower(strings.TrimSpace(name))
			if _, ok := countColumns[name]; ok && count < 0 {
				count = i
			} else if name == "time" || name == "timestamp" {
				at = i
			}
		}
		if at >= 0 && count >= 0 {
			return readCounts(in, at, count, countColumns[strings.ToLower(strings.TrimSpace(header[count]))])
		}
	}
	arrivals, err := ReadTrace(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return count(arrivals)
}

// readCounts reads the rows of a table of counts.
func readCounts(in *csv.Reader, at, count int, perSecond bool) (*Counts, error) {
	var t trace
	c := &Counts{}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := in.FieldPos(at)
		if err := t.add(strings.TrimSpace(row[at]), ""); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(row[count]), 64)
		if err != nil || !(n >= 0) || math.IsInf(n, 0) {
			return nil, fmt.Errorf("line %d: %q is no number of requests", line, row[count])
		}
		c.Requests = append(c.Requests, n)
	}
	if len(c.Requests) < leastIntervals {
		return nil, tooShort(len(c.Requests))
	}
	var gaps []time.Duration
	for i := range t.arrivals[1:] {
		gaps = append(gaps, t.arrivals[i+1].At-t.arrivals[i].At)
	}
	c.Interval = slices.Sorted(slices.Values(gaps))[len(gaps)/2]
	for i, g := range gaps {
		if c.Interval <= 0 || math.Abs(float64(g-c.Interval)) > 0.01*float64(c.Interval) {
			return nil, fmt.Errorf("row %d comes %v after the one above, where others are %v apart; fill the gap in",
				i+2, g, c.Interval)
		}
	}
	if perSecond {
		for i := range c.Requests {
			c.Requests[i] *= c.Interval.Seconds()
		}
	}
	return c, nil
}

// count counts single requests.
func count(arrivals []Arrival) (*Counts, error) {
	if len(arrivals) < leastIntervals*fewRequests {
		return nil, fmt.Errorf("%d requests are too few to tell a curve from; want %d at least", len(arrivals),
			leastIntervals*fewRequests)
	}
	span := arrivals[len(arrivals)-1].At
	if span <= 0 {
		return nil, errors.New("all requests are at one time")
	}
	n := min(mostIntervals, max(leastIntervals, len(arrivals)/fewRequests))
	c := &Counts{Interval: span/time.Duration(n) + 1, Requests: make([]float64, n)}
	for _, a := range arrivals {
		c.Requests[a.At/c.Interval]++
	}
	return c, nil
}

func tooShort(n int) error {
	return fmt.Errorf("%d intervals are too few to tell a curve from; want %d at least", n, leastIntervals)
}
