package workload

import (
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	slots      = 60        // the seconds that sliding windows can look back
	maxLatency = time.Hour // longer ones count as this
	unit       = time.Microsecond
)

// Windows are the times over which indicators are published.
var Windows = []struct {
	Name   string
	Length time.Duration // 0 is since the start
}{{"5s", 5 * time.Second}, {"10s", 10 * time.Second}, {"1m", slots * time.Second}, {"whole", 0}}

// SLI is what the users of an operation got in a window.
type SLI struct {
	Operation string  `json:"operation,omitempty"` // empty for all together
	Requests  int64   `json:"requests"`            // answered, failed and dropped ones
	Failed    int64   `json:"failed"`              // dropped ones included
	Dropped   int64   `json:"dropped"`
	Rate      float64 `json:"rate"`    // requests/s
	Success   float64 `json:"success"` // the part that did not fail; 0 if there were no requests

	// Latency of the requests that succeeded, from when they were wanted.
	Mean time.Duration `json:"mean"`
	P50  time.Duration `json:"p50"`
	P95  time.Duration `json:"p95"`
	P99  time.Duration `json:"p99"`
	Max  time.Duration `json:"max"`
}

// Window is the indicators of a time.
type Window struct {
	Name    string        `json:"name"`
	Covered time.Duration `json:"covered"` // what is known of it
	// Wanted is how many requests a second users sent, or the load wanted to send. It is the lesser of this window
	// and the one that began a second earlier, so that a server that answers within a second has answered at least
	// as many.
	Wanted     float64 `json:"wanted,omitempty"`
	Total      SLI     `json:"total"`
	Operations []SLI   `json:"operations"` // in the order of the mix
}

// Failure is one way in which requests failed: how often, and an example.
type Failure struct {
	Class     Class  `json:"class"`
	Count     int64  `json:"count"`
	Operation string `json:"operation"` // of the example, which is the last one
	Sample    string `json:"sample"`
}

// Snapshot is the state of a load at a time.
type Snapshot struct {
	Time     time.Time     `json:"time"`
	Elapsed  time.Duration `json:"elapsed"`
	Wanted   int64         `json:"wanted"` // requests so far, those under way included
	InFlight int64         `json:"in_flight"`
	Received int64         `json:"received"` // bytes of bodies
	Lag      Lag           `json:"lag"`
	Windows  []Window      `json:"windows"`
	Failures []Failure     `json:"failures,omitempty"` // most frequent first
}

// Lag is how much later than wanted the generator itself began with requests. If it is not small, the
// machine is too busy and latencies are too large.
type Lag struct {
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
	Max time.Duration `json:"max"`
	// Recent is the 99th percentile of the last seconds alone.
	Recent time.Duration `json:"recent"`
}

// lagWindow is what Recent is about.
const lagWindow = 5 * time.Second

// Window returns a window by name, or an empty one.
func (s *Snapshot) Window(name string) Window {
	for _, w := range s.Windows {
		if w.Name == name {
			return w
		}
	}
	return Window{}
}

// Operation returns the indicators of an operation, or empty ones.
func (w *Window) Operation(name string) SLI {
	for _, s := range w.Operations {
		if s.Operation == name {
			return s
		}
	}
	return SLI{}
}

// tally counts the requests of an operation in a time.
type tally struct {
	requests, failed, dropped int64
	latency                   *hdrhistogram.Histogram // nil if none succeeded
}

func newHistogram(figures int) *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(maxLatency/unit), figures)
}

func (t *tally) add(o *tally) {
	t.requests += o.requests
	t.failed += o.failed
	t.dropped += o.dropped
	if o.latency != nil && o.latency.TotalCount() > 0 {
		if t.latency == nil {
			t.latency = newHistogram(int(o.latency.SignificantFigures()))
		}
		t.latency.Merge(o.latency)
	}
}

func (t *tally) sli(operation string, covered time.Duration) SLI {
	s := SLI{Operation: operation, Requests: t.requests, Failed: t.failed, Dropped: t.dropped}
	if covered > 0 {
		s.Rate = float64(t.requests) / covered.Seconds()
	}
	if t.requests > 0 {
		s.Success = float64(t.requests-t.failed) / float64(t.requests)
	}
	if h := t.latency; h != nil && h.TotalCount() > 0 {
		s.Mean = time.Duration(h.Mean() * float64(unit))
		s.P50, s.P95, s.P99 = quantile(h, 50), quantile(h, 95), quantile(h, 99)
		s.Max = time.Duration(h.Max()) * unit
	}
	return s
}

func quantile(h *hdrhistogram.Histogram, percent float64) time.Duration {
	return time.Duration(h.ValueAtPercentile(percent)) * unit
}

// second is the tally of one second.
type second struct {
	number int64 // since the start
	tally
}

// series is what is known of an operation.
type series struct {
	name    string
	whole   tally
	seconds [slots]second // a ring
}

// at returns the tally of a second, emptied if it is a new one.
func (s *series) at(number int64) *tally {
	e := &s.seconds[number%slots]
	if e.number != number {
		e.number = number
		e.requests, e.failed, e.dropped = 0, 0, 0
		if e.latency != nil {
			e.latency.Reset()
		}
	}
	return &e.tally
}

// recorder collects the outcomes of requests.
type recorder struct {
	mu       sync.Mutex
	start    time.Time // zero until the load starts
	stop     time.Time // zero until it has ended
	series   []*series
	lag      series // of requests that were begun, with their lag for latency
	wanted   series // requests, when they were wanted
	received int64
	failures map[Class]*Failure
}

func newRecorder(mix *Mix) *recorder {
	r := &recorder{failures: map[Class]*Failure{}}
	for _, o := range mix.Operations {
		r.series = append(r.series, &series{name: o.Name})
	}
	return r
}

// outcome is what became of a request.
type outcome struct {
	operation int
	latency   time.Duration
	received  int64
	failure   Class // "" is success
	sample    string
}

func (r *recorder) record(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.series[o.operation]
	for _, t := range []*tally{&s.whole, s.at(int64(time.Since(r.start) / time.Second))} {
		t.requests++
		switch {
		case o.failure == "":
			if t.latency == nil {
				figures := 2
				if t == &s.whole {
					figures = 3
				}
				t.latency = newHistogram(figures)
			}
			t.latency.RecordValue(int64(min(max(o.latency, 0), maxLatency) / unit))
		case o.failure == Dropped:
			t.dropped++
			fallthrough
		default:
			t.failed++
		}
	}
	r.received += o.received
	if o.failure != "" {
		f := r.failures[o.failure]
		if f == nil {
			f = &Failure{Class: o.failure}
			r.failures[o.failure] = f
		}
		f.Count++
		f.Operation, f.Sample = s.name, o.sample
	}
}

func (r *recorder) want() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted.whole.requests++
	r.wanted.at(int64(time.Since(r.start)/time.Second)).requests++
}

func (r *recorder) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start = time.Now()
}

func (r *recorder) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop = time.Now()
}

func (r *recorder) lagged(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range []*tally{&r.lag.whole, r.lag.at(int64(time.Since(r.start) / time.Second))} {
		if t.latency == nil {
			t.latency = newHistogram(2)
		}
		t.latency.RecordValue(int64(min(max(d, 0), maxLatency) / unit))
	}
}

// snapshot fills in what the recorder knows.
func (r *recorder) snapshot() *Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	s := &Snapshot{Time: now, Received: r.received}
	if !r.start.IsZero() {
		s.Elapsed = now.Sub(r.start)
		if !r.stop.IsZero() {
			s.Elapsed = r.stop.Sub(r.start)
		}
	}
	s.Lag = r.lagAt(s.Elapsed)
	for _, w := range Windows {
		s.Windows = append(s.Windows, r.window(w.Name, w.Length, s.Elapsed))
	}
	for _, f := range r.failures {
		s.Failures = append(s.Failures, *f)
	}
	slices.SortFunc(s.Failures, func(a, b Failure) int {
		if a.Count != b.Count {
			return int(b.Count - a.Count)
		}
		return slices.Index(Classes, a.Class) - slices.Index(Classes, b.Class)
	})
	return s
}

func (r *recorder) currentLag() Lag {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lagAt(time.Since(r.start))
}

// lagAt is the lag of a load that has gone on for some time.
func (r *recorder) lagAt(elapsed time.Duration) (l Lag) {
	if h := r.lag.whole.latency; h != nil {
		l = Lag{P50: quantile(h, 50), P99: quantile(h, 99), Max: time.Duration(h.Max()) * unit}
	}
	this := int64(elapsed / time.Second)
	if recent := r.lag.between(this-int64(lagWindow/time.Second)+1, this); recent.latency != nil {
		l.Recent = quantile(recent.latency, 99)
	}
	return l
}

// between adds up the seconds from first to last.
func (s *series) between(first, last int64) (t tally) {
	for i := range s.seconds {
		if e := &s.seconds[i]; e.number >= max(first, 0) && e.number <= last {
			t.add(&e.tally)
		}
	}
	return t
}

// window adds up the seconds of a window. It reaches from the beginning of a second to now.
func (r *recorder) window(name string, length, elapsed time.Duration) Window {
	w := Window{Name: name, Covered: elapsed}
	this := int64(elapsed / time.Second)
	first := this - int64(length/time.Second) + 1
	if length > 0 && first > 0 {
		w.Covered = elapsed - time.Duration(first)*time.Second
	}
	var total tally
	for _, s := range r.series {
		t := s.whole
		if length > 0 {
			t = s.between(first, this)
		}
		total.add(&t)
		w.Operations = append(w.Operations, t.sli(s.name, w.Covered))
	}
	w.Total = total.sli("", w.Covered)
	if length > 0 && first > 0 && w.Covered > 0 {
		now, before := r.wanted.between(first, this), r.wanted.between(first-1, this-1)
		w.Wanted = min(float64(now.requests)/w.Covered.Seconds(), float64(before.requests)/length.Seconds())
	}
	return w
}
