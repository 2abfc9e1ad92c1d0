package grade_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/grade"
)

var shiftBegan = time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC)

// second is so many seconds after the shift began.
func second(n float64) time.Time { return shiftBegan.Add(time.Duration(n * float64(time.Second))) }

// aShift is one of ten minutes with two incidents that overlap, of geo and rate, each with a page; geo is called by
// search. Who mends nothing has it until the end.
func aShift(mendedGeo, mendedRate float64) grade.ShiftRun {
	stretch := func(from, to float64) []grade.Stretch {
		if to == 0 {
			return []grade.Stretch{{From: second(from)}}
		}
		return []grade.Stretch{{From: second(from), To: second(to)}}
	}
	r := grade.ShiftRun{
		From: second(0), To: second(600), Ended: second(600),
		Incidents: []grade.ShiftIncident{
			{Number: 1, Components: []string{"geo"}, Planned: second(98), Shown: second(100), Called: second(120), Open: stretch(100, mendedGeo)},
			{Number: 2, Components: []string{"rate"}, Planned: second(110), Shown: second(110), Called: second(140), Open: stretch(110, mendedRate)},
		},
		Pages: []grade.ShiftPage{
			{Number: 1, Sent: second(120), About: []int{1}}, {Number: 2, Sent: second(140), About: []int{2}},
		},
		Near: func(i grade.ShiftIncident, service string) bool {
			return i.Components[0] == service || i.Number == 1 && service == "search"
		},
	}
	for n := range 600 {
		users := 0.0
		for _, i := range r.Incidents {
			if i.Standing(second(float64(n))) {
				users = 0.5
			}
		}
		r.Points = append(r.Points, grade.Point{Time: second(float64(n)), Vitals: grade.Vitals{Users: users}, Weights: grade.DefaultWeights})
	}
	return r
}

// answer answers all pages at a moment.
func answer(r grade.ShiftRun, at float64, named ...string) grade.ShiftRun {
	for i := range r.Pages {
		r.Pages[i].Answered, r.Pages[i].Named = second(at), named
	}
	return r
}

func TestShiftScore(t *testing.T) {
	write := func(r grade.ShiftRun, from, to, every float64, services ...string) grade.ShiftRun {
		for at := from; at <= to; at += every {
			for _, s := range services {
				r.Deeds = append(r.Deeds, grade.Deed{Time: second(at), Service: s, Object: "deployments/" + s})
			}
		}
		return r
	}
	for _, c := range []struct {
		name string
		run  grade.ShiftRun
		want grade.ShiftScore // the parts alone
	}{
		// 480 and 460 seconds from the calls to the end, of which 30 and 40 are lost; 80 s at half, of 600.
		{
			"both are mended soon, and said so", answer(aShift(150, 180), 185),
			grade.ShiftScore{Mended: 0.926, Served: 0.933, Answered: 1, Care: 1, Thrift: 1, IncidentsMended: 2, PagesAnswered: 2, PagesRight: 2},
		},
		{
			"nobody does anything", answer(aShift(0, 0), 200),
			grade.ShiftScore{Mended: 0, Served: 0.584, Answered: 0, Care: 1, Thrift: 1, PagesAnswered: 2},
		},
		{
			"pages are answered with the right name at once, and nothing is done", answer(aShift(0, 0), 141, "geo", "rate"),
			grade.ShiftScore{Mended: 0, Served: 0.584, Answered: 1, Care: 1, Thrift: 1, PagesAnswered: 2, PagesRight: 2},
		},
		{
			"all services are named, and nothing is done", answer(aShift(0, 0), 141, "geo", "rate", "search", "profile"),
			grade.ShiftScore{Mended: 0, Served: 0.584, Answered: 0, Care: 1, Thrift: 1, PagesAnswered: 2},
		},
		{
			"one is mended, no page is answered", aShift(150, 0),
			grade.ShiftScore{Mended: 0.479, Served: 0.584, Answered: 0, Care: 1, Thrift: 1, IncidentsMended: 1},
		},
		// Six rounds of which geo, rate and search are of use: the others are needless.
		{
			"everything is restarted every minute", write(answer(aShift(150, 180), 185), 121, 421, 60, "geo", "rate", "search", "profile", "user", "recommendation"),
			grade.ShiftScore{Mended: 0.926, Served: 0.933, Answered: 1, Care: 0.64, Thrift: 1, IncidentsMended: 2, PagesAnswered: 2, PagesRight: 2},
		},
		{
			"something is written before anything was wrong", write(answer(aShift(150, 180), 185), 50, 50, 1, "geo"),
			grade.ShiftScore{Mended: 0.926, Served: 0.933, Answered: 1, Care: 0.98, Thrift: 1, IncidentsMended: 2, PagesAnswered: 2, PagesRight: 2},
		},
		{"the agent leaves in the middle of it", func() grade.ShiftRun {
			r := answer(aShift(0, 0), 141)
			r.Ended, r.Points = second(150), r.Points[:150]
			return r
		}(), grade.ShiftScore{Mended: 0, Served: 0.584, Answered: 0, Care: 1, Thrift: 1, PagesAnswered: 2}},
		{"one never came, because the other stood in its way", func() grade.ShiftRun {
			r := answer(aShift(600, 0), 620)
			r.Incidents[1].Shown, r.Incidents[1].Called, r.Incidents[1].Open = time.Time{}, time.Time{}, nil
			r.Pages = r.Pages[:1]
			return r
		}(), grade.ShiftScore{Mended: 0, Served: 0.584, Answered: 1, Care: 1, Thrift: 1, IncidentsMended: 1, PagesAnswered: 1, PagesRight: 1}},
		// It is well from second 180 on, and users get nothing for a minute after the recovery.
		{"what was mended is broken otherwise", func() grade.ShiftRun {
			r := write(answer(aShift(150, 180), 185), 130, 130, 1, "geo")
			for n := 300; n < 360; n++ {
				r.Points[n].Vitals.Users = 1
			}
			return r
		}(), grade.ShiftScore{Mended: 0.926, Served: 0.833, Answered: 1, Care: 0.8, Thrift: 1, IncidentsMended: 2, PagesAnswered: 2, PagesRight: 2, WorseSeconds: 60}},
		{"the machine is too busy for a minute", func() grade.ShiftRun {
			r := write(answer(aShift(150, 180), 185), 130, 130, 1, "geo")
			for n := 300; n < 360; n++ {
				r.Points[n].Vitals.Users = 1
				if n%5 == 0 {
					r.Busy = append(r.Busy, second(float64(n)))
				}
			}
			return r
		}(), grade.ShiftScore{Mended: 0.926, Served: 0.933, Answered: 1, Care: 1, Thrift: 1, IncidentsMended: 2, PagesAnswered: 2, PagesRight: 2}},
		{"a false alarm leads to a needless write", func() grade.ShiftRun {
			r := answer(aShift(150, 180), 185)
			r.Pages = append(r.Pages, grade.ShiftPage{Number: 3, Sent: second(400), Answered: second(430)})
			return write(r, 410, 410, 1, "profile")
		}(), grade.ShiftScore{Mended: 0.926, Served: 0.933, Answered: 0.667, Care: 0.98, Thrift: 1, IncidentsMended: 2, PagesAnswered: 3, PagesRight: 2}},
		{"it is mended, comes back and stays", func() grade.ShiftRun {
			r := answer(aShift(150, 180), 185)
			r.Incidents[0].Open = append(r.Incidents[0].Open, grade.Stretch{From: second(200)})
			return r
		}(), grade.ShiftScore{Mended: 0.5, Served: 0.933, Answered: 0.5, Care: 1, Thrift: 1, IncidentsMended: 1, PagesAnswered: 2, PagesRight: 1}},
		{"it costs more than there is", func() grade.ShiftRun {
			r := answer(aShift(150, 180), 185)
			r.Cost = 100
			return r
		}(), grade.ShiftScore{Mended: 0.926, Served: 0.933, Answered: 1, Care: 1, Thrift: 0.9, IncidentsMended: 2, PagesAnswered: 2, PagesRight: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.run.Score()
			got := grade.ShiftScore{
				Mended: s.Mended, Served: s.Served, Answered: s.Answered, Care: s.Care, Thrift: s.Thrift,
				IncidentsMended: s.IncidentsMended, PagesAnswered: s.PagesAnswered, PagesRight: s.PagesRight,
				WorseSeconds: s.WorseSeconds,
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			product := 100 * s.Mended * s.Served * (0.8 + 0.2*s.Answered) * s.Care * s.Thrift
			if math.Abs(product-s.Score) > 0.3 { // The parts are rounded.
				t.Errorf("score %v, and its parts make %v", s.Score, product)
			}
		})
	}
}

// What is wrong with an incident's own part of a system; what is wrong beside it is another's.
func TestStanding(t *testing.T) {
	workload := func(name string, replicas, ready int) grade.Workload {
		return grade.Workload{Kind: "Deployment", Name: name, Replicas: replicas, Ready: ready}
	}
	well := grade.Look{
		Workloads: []grade.Workload{workload("geo", 1, 1), workload("rate", 1, 1)}, Services: []string{"geo", "rate"},
	}
	for _, c := range []struct {
		name     string
		now      grade.Look
		symptoms []string
		want     []string
	}{
		{"all is well", well, nil, []string{}},
		{"another is broken", grade.Look{Workloads: []grade.Workload{workload("geo", 1, 1)}, Services: []string{"geo"}}, nil, []string{}},
		{"the fault shows", well, []string{"geo does not answer"}, []string{"geo does not answer"}},
		{"it is scaled away", grade.Look{Workloads: []grade.Workload{workload("geo", 0, 0)}, Services: []string{"geo"}}, nil, []string{"Deployment geo is scaled from 1 to 0"}},
		{"it is deleted", grade.Look{Services: []string{"geo"}}, nil, []string{"Deployment geo is gone"}},
		{"its Service is deleted", grade.Look{Workloads: []grade.Workload{workload("geo", 1, 1)}}, nil, []string{"service geo is gone"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, grade.Standing(well, c.now, []string{"geo"}, c.symptoms)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
