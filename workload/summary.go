package workload

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Summary writes what the load was and what its users got, in the form of wrk2's report.
func (g *Generator) Summary(w io.Writer) {
	s := g.Snapshot()
	whole := s.Window("whole")
	fmt.Fprintf(w, "Running %s test @ %s\n", span(s.Elapsed), g.base)
	fmt.Fprintf(w, "  %s, mix %s, seed %d\n", g.spec.describe(), g.spec.Mix.Name, g.spec.Seed)

	h := g.recorder.merged()
	fmt.Fprintf(w, "  Latency    Avg %s, Stdev %s, Max %s\n",
		span(time.Duration(h.Mean()*float64(unit))), span(time.Duration(h.StdDev()*float64(unit))), span(time.Duration(h.Max())*unit))
	fmt.Fprintln(w, "  Latency Distribution (HdrHistogram - Recorded Latency)")
	for _, p := range []float64{50, 75, 90, 99, 99.9, 99.99, 99.999, 100} {
		fmt.Fprintf(w, " %7.3f%%  %8s\n", p, span(quantile(h, p)))
	}
	fmt.Fprintln(w, "  By operation")
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\trequests\tfailed\trate/s\tsuccess\tp50\tp95\tp99\tmax\t operation")
	for _, i := range whole.Operations {
		success := "-"
		if i.Requests > 0 {
			success = fmt.Sprintf("%.2f%%", 100*i.Success)
		}
		fmt.Fprintf(t, "\t%d\t%d\t%.2f\t%s\t%s\t%s\t%s\t%s\t %s\n", i.Requests, i.Failed, i.Rate, success,
			span(i.P50), span(i.P95), span(i.P99), span(i.Max), i.Operation)
	}
	t.Flush()
	fmt.Fprintf(w, "  %d requests in %s, %s read\n", whole.Total.Requests, span(s.Elapsed), size(float64(s.Received)))
	if len(s.Failures) > 0 {
		fmt.Fprintf(w, "  %d failed\n", whole.Total.Failed)
		for _, f := range s.Failures {
			fmt.Fprintf(w, "    %-8s %d, such as %s: %s\n", f.Class, f.Count, f.Operation, f.Sample)
		}
	}
	seconds := max(s.Elapsed.Seconds(), unit.Seconds())
	fmt.Fprintf(w, "Requests/sec: %10.2f\n", float64(whole.Total.Requests)/seconds)
	fmt.Fprintf(w, "Transfer/sec: %10s\n", size(float64(s.Received)/seconds))
}

// merged is the latency of all operations.
func (r *recorder) merged() *hdrhistogram.Histogram {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := newHistogram(3)
	for _, s := range r.series {
		if s.whole.latency != nil {
			h.Merge(s.whole.latency)
		}
	}
	return h
}

func (s *Spec) describe() string {
	var parts []string
	switch {
	case s.Users != nil:
		parts = append(parts, fmt.Sprintf("%d users", s.Users.Count))
	case s.Arrivals.Replay != nil:
		parts = append(parts, fmt.Sprintf("replay of %d requests", len(s.Arrivals.Replay.arrivals)))
	default:
		parts = append(parts, fmt.Sprintf("%s arrivals", s.Arrivals.process()))
		if r := s.Arrivals.Rate; len(r) == 1 && r[0].Constant != nil {
			parts = append(parts, fmt.Sprintf("%g requests/s", *r[0].Constant))
		}
	}
	if s.Connections > 0 {
		parts = append(parts, fmt.Sprintf("%d connections", s.Connections))
	}
	return strings.Join(parts, ", ")
}

// span is a duration in three or four figures, as wrk2 writes it.
func span(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < time.Millisecond:
		return fmt.Sprintf("%.2fus", float64(d)/float64(time.Microsecond))
	case d < time.Second:
		return fmt.Sprintf("%.2fms", float64(d)/float64(time.Millisecond))
	case d < time.Minute:
		return fmt.Sprintf("%.2fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// size is a number of bytes, as wrk2 writes it.
func size(n float64) string {
	for _, u := range []string{"B", "KB", "MB", "GB"} {
		if n < 1024 || u == "GB" {
			return fmt.Sprintf("%.2f%s", n, u)
		}
		n /= 1024
	}
	return ""
}
