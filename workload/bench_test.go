package workload

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"
)

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// echo answers HTTP requests on a connection with as little work as can be.
func echo(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
			return
		}
	}
}

// BenchmarkGenerator tells what a request costs, the least possible server included, and how late
// the generator is at 2000 requests/s.
func BenchmarkGenerator(b *testing.B) {
	m := MixOf(b, "hotel-mixed")
	for i := range m.Operations { // The server says nothing of hotels.
		m.Operations[i].Expect, m.Operations[i].Then = Expect{}, nil
	}
	target := Target{BaseURL: "http://app", DialContext: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go echo(server)
		return client, nil
	}}
	const rate = 2000
	s := Spec{
		Mix: m, Arrivals: &Arrivals{Rate: Constant(rate)},
		Duration: time.Duration(b.N) * time.Second / rate,
	}
	g, err := New(s, target)
	if err != nil {
		b.Fatal(err)
	}
	before := cpuTime()
	b.ReportAllocs()
	b.ResetTimer()
	if err := g.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	snap := g.Snapshot()
	n := float64(max(snap.Wanted, 1))
	b.ReportMetric(float64((cpuTime()-before).Microseconds())/n, "cpu-us/request")
	b.ReportMetric(float64(snap.Lag.P50.Microseconds()), "lag-p50-us")
	b.ReportMetric(float64(snap.Lag.P99.Microseconds()), "lag-p99-us")
	b.ReportMetric(n/snap.Elapsed.Seconds(), "requests/s")
	total := snap.Window("whole").Total
	b.ReportMetric(float64(total.Dropped), "dropped") // By a machine that is too busy.
	if total.Failed > total.Dropped {
		b.Errorf("requests failed: %+v", snap.Failures)
	}
}

func BenchmarkRequest(b *testing.B) {
	for _, mix := range mixes(b) {
		b.Run(mix, func(b *testing.B) {
			m := MixOf(b, mix)
			c, err := m.chooser()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := uint64(0); b.Loop(); i++ {
				if _, err := c.pick(1, i, "").visit(chance{seed: 1}, i, 0, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkArrivals(b *testing.B) {
	for name, r := range map[string]Rate{
		"constant": Constant(1000),
		"daily":    {{Daily: &Daily{Mean: 1000, Amplitude: 0.8}}},
	} {
		b.Run(name, func(b *testing.B) {
			s := (&Arrivals{Rate: r}).source(1)
			for b.Loop() {
				s.next()
			}
		})
	}
}

func BenchmarkRecord(b *testing.B) {
	m := MixOf(b, "hotel-mixed")
	r := newRecorder(m)
	r.begin()
	for i := 0; b.Loop(); i++ {
		r.record(outcome{operation: i % 4, latency: time.Duration(i%1000) * time.Millisecond})
	}
}
