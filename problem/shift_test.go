package problem_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/problem/problemtest"
)

func shifts(t testing.TB) []*problem.Problem {
	t.Helper()
	l := problemtest.Library(t)
	list, err := l.Suite("shift")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 3 {
		t.Fatalf("there are %d shifts", len(list))
	}
	return list
}

// Whatever the seed and the length: incidents come in order, some overlap and some are alone, those that come together do
// not disturb each other, and there is a stretch without any in which the false alarm is. None comes twice in a shift of
// the usual length, and a longer one has as many in each of its parts.
func TestRoster(t *testing.T) {
	all := shifts(t)
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		length := time.Duration(rapid.IntRange(2, 24*60).Draw(t, "minutes")) * time.Minute
		p := rapid.SampledFrom(all).Draw(t, "shift").Lasting(length)
		r := p.Roster(seed)
		if d := cmp.Diff(times(r), times(p.Roster(seed))); d != "" {
			t.Fatalf("it is drawn otherwise the second time: %s", d)
		}
		parts := max(1, time.Duration(length.Seconds()/p.Shift().Length.Seconds()+0.5))
		if n := len(r.FalseAlarms); n != int(parts)*p.Shift().FalseAlarms {
			t.Fatalf("%d false alarms in %v", n, length)
		}
		for i := range parts {
			from, to := length*i/parts-time.Second, length*(i+1)/parts-time.Second
			var part problem.Roster
			for _, in := range r.Incidents {
				if in.At > from && in.At <= to {
					part.Incidents = append(part.Incidents, problem.Planned{Problem: in.Problem, At: in.At - from})
				}
			}
			for _, at := range r.FalseAlarms {
				if at > from && at <= to {
					part.FalseAlarms = append(part.FalseAlarms, at-from)
				}
			}
			checkPart(t, p, part, length/parts)
		}
	})
}

// A day of users passes over a shift: as many as ever at its ends, a quarter of them in its middle, whatever its length,
// and whoever is on call is told how fast. What comes in it is what comes in any.
func TestOverADay(t *testing.T) {
	for _, p := range shifts(t) {
		_, most := p.Load().Bounds()
		for _, length := range []time.Duration{2 * time.Minute, 24 * time.Minute, 5 * time.Hour} {
			day, err := p.Lasting(length).OverADay()
			if err != nil {
				t.Fatal(err)
			}
			l := day.Load()
			low, high := l.Bounds()
			d := l.Rate[0].Daily
			if !day.Day() || d == nil || d.Period != length || d.Peak != 0 || math.Abs(high-most) > 0.01*most ||
				low > 0.3*high || low < 1 {
				t.Errorf("%s over %v: %v to %v, %+v, of %v", p.ID, length, low, high, d, most)
			}
			if diff := cmp.Diff(times(p.Lasting(length).Roster(3)), times(day.Roster(3))); diff != "" {
				t.Error(diff)
			}
		}
		day, _ := p.OverADay()
		if again := day.Lasting(24 * time.Minute); !again.Day() || again.Load().Rate[0].Daily.Period != 24*time.Minute ||
			!strings.Contains(again.Asked(), "lasts 24 minutes. Users come as on a whole day meanwhile, an hour of it in 1 minute:") {
			t.Errorf("told %q", again.Asked())
		}
		if p.Day() || strings.Contains(p.Asked(), "whole day") || p.Load() != &p.Document.Load {
			t.Errorf("%s has a day unasked", p.ID)
		}
	}
	l := problemtest.Library(t)
	detection, err := l.Find("revoke_auth_mongodb-detection-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := detection.OverADay(); err == nil {
		t.Error("a detection has a day")
	}
	document := `id: my-shift-1
title: on call
app: hotel-reservation
load: LOAD
tasks: [shift]
shift: {length: 24m, day: true, incidents: 2, of: [revoke_auth_mongodb-mitigation-1, wrong_bin_usage-mitigation-1]}
`
	for load, want := range map[string]string{
		"{rate: 40}": "",
		"{rate: 2}":  "shift.day: in the night",
		"{users: {count: 40, think: {min: 1s, max: 1s}}}": "shift.day: a day is made of a rate",
	} {
		list, err := l.Parse("mine.yaml", []byte(strings.Replace(document, "LOAD", load, 1)))
		if want == "" && (err != nil || !list[0].Day() || list[0].Load().Rate[0].Daily == nil) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", load, err)
		}
	}
}

// checkPart checks what comes in one part of a shift.
func checkPart(t *rapid.T, p *problem.Problem, r problem.Roster, length time.Duration) {
	n := len(r.Incidents)
	if want := min(max(int(length/(100*time.Second)), 2), p.Shift().Incidents); n != want || len(r.FalseAlarms) != p.Shift().FalseAlarms {
		t.Fatalf("%d incidents, want %d; %d false alarms", n, want, len(r.FalseAlarms))
	}
	seen := map[string]bool{}
	pairs := 0
	var stretches []time.Duration
	for i, in := range r.Incidents {
		if seen[in.Problem.ID] {
			t.Fatalf("%s comes twice", in.Problem.ID)
		}
		seen[in.Problem.ID] = true
		if in.At <= 0 || in.At > length*85/100+30*time.Second {
			t.Fatalf("%s comes after %v of %v", in.Problem.ID, in.At, length)
		}
		if i == 0 {
			continue
		}
		before := r.Incidents[i-1]
		switch gap := in.At - before.At; {
		case gap < 0:
			t.Fatalf("%v comes after %v", before.At, in.At)
		case gap <= 25*time.Second && !problem.Disturb(in.Problem, before.Problem):
			pairs++
		default:
			stretches = append(stretches, gap)
		}
	}
	if pairs == 0 || n >= 3 && len(stretches) == 0 {
		t.Fatalf("%d of %d come with another: %v", pairs, n, times(r))
	}
	for _, a := range r.FalseAlarms {
		if a <= r.Incidents[0].At || a >= length {
			t.Fatalf("a false alarm at %v of %v", a, times(r))
		}
	}
}

func times(r problem.Roster) (list []string) {
	for _, i := range r.Incidents {
		list = append(list, i.At.String()+" "+i.Problem.ID)
	}
	return list
}

func TestDisturb(t *testing.T) {
	l := problemtest.Library(t)
	for _, c := range []struct {
		a, b string
		want bool
		why  string
	}{
		{"revoke_auth_mongodb-mitigation-1", "user_unregistered_mongodb-mitigation-1", true, "the same database"},
		{"revoke_auth_mongodb-mitigation-1", "revoke_auth_mongodb-mitigation-2", false, "other databases, other clients"},
		{"misconfig_app_hotel_res-mitigation-1", "revoke_auth_mongodb-mitigation-1", true, "geo is the client"},
		{"wrong_bin_usage-mitigation-1", "k8s_target_port-misconfig_hotel_res-mitigation-1", true, "profile calls its cache"},
		{"wrong_bin_usage-mitigation-1", "misconfig_app_hotel_res-mitigation-1", false, "neither calls the other"},
		{"redeploy_without_PV-mitigation-1", "wrong_bin_usage-mitigation-1", true, "it is about the whole application"},
	} {
		a, err := l.Find(c.a)
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Find(c.b)
		if err != nil {
			t.Fatal(err)
		}
		if got := problem.Disturb(a, b); got != c.want || problem.Disturb(b, a) != got {
			t.Errorf("%s and %s: %v, want %v: %s", c.a, c.b, got, c.want, c.why)
		}
	}
}

func TestShiftMistakes(t *testing.T) {
	l := problemtest.Library(t)
	const good = `id: mine-1
title: a shift
app: hotel-reservation
load: {rate: 20}
tasks: [shift]
shift: {length: 10m, incidents: 2, of: [revoke_auth_mongodb-mitigation-1, wrong_bin_usage-mitigation-1]}
`
	if _, err := l.Parse("mine.yaml", []byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"tasks: [shift]", "tasks: [shift, detection]", "shift: it is for documents with the task shift alone"},
		{"length: 10m", "length: 10s", "shift.length 10s: it is from 1m0s to 24h0m0s"},
		{"incidents: 2", "incidents: 0", "shift.incidents: there is one at least"},
		{"wrong_bin_usage-mitigation-1", "wrong_bin_usage-detection-1", "is no mitigation of hotel-reservation"},
		{"wrong_bin_usage-mitigation-1", "wrong_bin_usages-mitigation-1", `did you mean "wrong_bin_usage-mitigation-1"?`},
		{"wrong_bin_usage-mitigation-1", "redeploy_without_PV-mitigation-1", "nothing else can happen beside it"},
		{"wrong_bin_usage-mitigation-1", "revoke_auth_mongodb-mitigation-1", "is there twice"},
		{", wrong_bin_usage-mitigation-1", "", "shift.of: name two mitigations at least"},
		{"shift: {", "goal: {", "shift is missing"},
	} {
		_, err := l.Parse("mine.yaml", []byte(strings.Replace(good, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.new, err, c.want)
		}
	}
}
