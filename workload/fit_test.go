package workload

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// observed counts what a load sends, as a trace would.
func observed(a *Arrivals, seed uint64, interval time.Duration, n int) *Counts {
	c := &Counts{Interval: interval, Requests: make([]float64, n)}
	src := a.source(seed)
	for next, ok := src.next(); ok && next.At < c.Span(); next, ok = src.next() {
		c.Requests[next.At/interval]++
	}
	return c
}

// What a load is made of is found again in what it sends.
func TestFitFindsWhatIsThere(t *testing.T) {
	for _, tt := range []struct {
		name   string
		a      Arrivals
		noise  float64
		surges bool
	}{
		{"constant", Arrivals{Rate: Constant(40)}, 0, false},
		{"constant with noise", Arrivals{Rate: Constant(40), Noise: 0.2}, 0.2, false},
		{"daily", Arrivals{Rate: Rate{{Daily: &Daily{Mean: 40, Amplitude: 0.5, Period: 4 * time.Minute, Peak: time.Minute}}}}, 0, false},
		{"daily with noise", Arrivals{Rate: Rate{{Daily: &Daily{Mean: 40, Amplitude: 0.5, Period: 4 * time.Minute, Peak: time.Minute}}}, Noise: 0.15}, 0.15, false},
		{"daily with surges", Arrivals{Rate: Rate{{Daily: &Daily{Mean: 40, Amplitude: 0.3, Period: 4 * time.Minute, Peak: time.Minute}}}, Surges: &Surges{Factor: 6, Every: 2 * time.Minute, Lasting: 5 * time.Second}}, 0, true},
	} {
		f, err := FitCounts(observed(&tt.a, 5, 5*time.Second, 240))
		if err != nil {
			t.Fatal(err)
		}
		if want := tt.a.Rate[0].Daily; want != nil {
			got := f.Rate[0].Daily
			if got == nil || math.Abs(got.Mean-want.Mean) > 3 || math.Abs(got.Amplitude-want.Amplitude) > 0.08 ||
				(got.Period-want.Period).Abs() > 10*time.Second || (got.Peak-want.Peak).Abs() > 15*time.Second {
				t.Errorf("%s: %+v, want %+v", tt.name, got, want)
			}
			if f.Explained < 0.5 {
				t.Errorf("%s: %v", tt.name, f)
			}
		} else if f.Rate[0].Constant == nil || math.Abs(*f.Rate[0].Constant-40) > 3 {
			t.Errorf("%s: %+v", tt.name, f.Rate)
		}
		if math.Abs(f.Noise-tt.noise) > 0.06 {
			t.Errorf("%s: noise %g, want %g", tt.name, f.Noise, tt.noise)
		}
		if (f.Surges != nil) != tt.surges {
			t.Errorf("%s: surges %+v", tt.name, f.Surges)
		} else if s := f.Surges; s != nil && (s.Factor < 3 || s.Factor > 7 || s.Every < 100*time.Second || s.Every > 140*time.Second || s.Lasting < 5*time.Second || s.Lasting > 11*time.Second) {
			t.Errorf("%s: surges %+v", tt.name, s)
		}
		if p := f.problems(); len(p) > 0 {
			t.Errorf("%s: %v", tt.name, p)
		}
	}
}

// A day can be minutes, and the users of a web site as many as a cluster on a laptop serves.
func TestFitScale(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("time,count\n")
	for i := range 288 { // two days, every ten minutes
		hours := float64(i) / 6
		fmt.Fprintf(&rows, "%s,%d\n", time.Unix(0, 0).UTC().Add(time.Duration(i)*10*time.Minute).Format(time.RFC3339), int(600*1000*(1+0.6*math.Cos(2*math.Pi*(hours-20)/24))))
	}
	c, err := ReadCounts(strings.NewReader(rows.String()))
	if err != nil {
		t.Fatal(err)
	}
	f, err := FitCounts(c)
	if err != nil {
		t.Fatal(err)
	}
	if d := f.Rate[0].Daily; d == nil || (d.Period-24*time.Hour).Abs() > 10*time.Minute || (d.Peak-20*time.Hour).Abs() > 15*time.Minute || f.Error > 0.01 {
		t.Fatalf("%+v, %v", d, f)
	}
	f.Scale(144, 50)
	if d := f.Rate[0].Daily; d.Mean != 50 || (d.Period-10*time.Minute).Abs() > 4*time.Second || (d.Peak-500*time.Second).Abs() > 8*time.Second || math.Abs(d.Amplitude-0.6) > 0.01 {
		t.Errorf("%+v", d)
	}
}

func TestReadCounts(t *testing.T) {
	rows := func(header string, row func(i int) string) string {
		text := header + "\n"
		for i := range 20 {
			text += row(i) + "\n"
		}
		return text
	}
	for _, tt := range []struct{ name, text, want string }{
		{"counts", rows("time,count", func(i int) string { return fmt.Sprintf("%d,%d", 60*i, 120) }), "1m0s 20 120"},
		{"rates, other columns, another order", rows("host,RPS,Timestamp", func(i int) string { return fmt.Sprintf("a,2,%ds", 60*i) }), "1m0s 20 120"},
		{"single requests", rows("time,operation", func(i int) string { return strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%d,search\n", i), 10), "\n") }), "20"},
		{"a gap", rows("time,count", func(i int) string { return fmt.Sprintf("%d,1", 60*i+600*(i/10)) }), "row 11 comes 11m0s after the one above"},
		{"one time", rows("time,count", func(i int) string { return "5,1" }), "fill the gap in"},
		{"a word", rows("time,count", func(i int) string { return fmt.Sprintf("%d,many", i) }), `line 2: "many" is no number of requests`},
		{"less than none", rows("time,count", func(i int) string { return fmt.Sprintf("%d,-1", i) }), "is no number of requests"},
		{"backwards", rows("time,count", func(i int) string { return fmt.Sprintf("%d,1", -i) }), "line 3: time -1 is before the one above"},
		{"short", "time,count\n1,2\n2,3\n", "2 intervals are too few"},
		{"few", "time\n1\n2\n", "2 requests are too few"},
		{"no time", "when,count\n1,2\n", `has no column "time"`},
		{"nothing", "", "0 requests are too few"},
	} {
		c, err := ReadCounts(strings.NewReader(tt.text))
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(c.Interval, " ", len(c.Requests), " ", c.Requests[0])
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Whatever the counts are, the fit is a load that can be sent, or there is an error.
func TestFitIsALoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &Counts{Interval: time.Duration(rapid.Int64Range(1e6, 1e13).Draw(t, "interval")), Requests: rapid.SliceOfN(rapid.Float64Range(0, 1e6), 0, 60).Draw(t, "requests")}
		f, err := FitCounts(c)
		if err != nil {
			return
		}
		f.Scale(rapid.Float64Range(0, 1e4).Draw(t, "speed"), rapid.Float64Range(0, 100).Draw(t, "mean"))
		if p := f.problems(); len(p) > 0 {
			t.Fatalf("%+v: %v", f, p)
		}
		for _, v := range []float64{f.Error, f.Explained, f.Left} {
			if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
				t.Fatalf("%+v", f)
			}
		}
	})
}

// A speed that stretches a trace beyond any load gives the longest load there is, not a time that overflows.
func TestScaleHasAnEnd(t *testing.T) {
	f := &Fit{Arrivals: Arrivals{
		Rate:   Rate{{Daily: &Daily{Mean: 1, Period: time.Hour, Peak: time.Minute}}},
		Surges: &Surges{Factor: 2, Every: time.Hour, Lasting: time.Minute},
	}}
	f.Scale(1e-12, 0)
	if p := f.problems(); len(p) > 0 {
		t.Error(p)
	}
	if d := f.Rate[0].Daily; d.Period <= time.Hour || d.Peak > d.Period {
		t.Errorf("%+v", d)
	}
}

func FuzzReadCounts(f *testing.F) {
	f.Add("time,count\n0,1\n1,2\n")
	f.Add(`{"time": 1}`)
	f.Fuzz(func(_ *testing.T, text string) {
		if c, err := ReadCounts(strings.NewReader(text)); err == nil {
			_, _ = FitCounts(c)
		}
	})
}
