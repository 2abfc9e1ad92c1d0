package grade

import (
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/problem"
)

var turn = time.Date(2026, time.March, 9, 12, 0, 0, 0, time.UTC)

// fine is a service with which nothing is wrong.
func fine() Operated {
	return Operated{
		Service: "catalogue", Found: true, Wanted: 3, Ready: 3, Images: []string{"catalogue:0.3.4"},
		Env: map[string][]string{"flag": {"true"}}, Oldest: turn.Add(time.Second), CPU: 0.2, Memory: 0.1, Used: 120,
		P99: 90 * time.Millisecond, Scaler: &Scaler{Min: 1, Max: 5, Target: 80, Active: true},
		Bounded: true, Probed: true,
	}
}

// Each condition holds of a service that is fine, and tells what is wrong with one that is not.
func TestUnmet(t *testing.T) {
	for name, tt := range map[string]struct {
		want  problem.Want
		spoil func(*Operated)
		text  string
	}{
		"gone":                       {problem.Want{Ready: true}, func(o *Operated) { o.Found = false }, "is not there"},
		"not ready":                  {problem.Want{Ready: true}, func(o *Operated) { o.Ready = 2 }, "2 of 3 pods ready"},
		"no pods":                    {problem.Want{Ready: true}, func(o *Operated) { o.Wanted, o.Ready = 0, 0 }, "0 of 0 pods ready"},
		"replicas":                   {problem.Want{Replicas: 3}, func(o *Operated) { o.Wanted, o.Ready = 4, 4 }, "4 replicas, not 3"},
		"two images":                 {problem.Want{Image: "catalogue:0.3.4"}, func(o *Operated) { o.Images = append(o.Images, "catalogue:0.3.5") }, "0.3.5, not catalogue:0.3.4"},
		"a variable":                 {problem.Want{Env: map[string]string{"flag": "true"}}, func(o *Operated) { o.Env["flag"] = []string{"true", ""} }, "flag=true in all pods"},
		"an old pod":                 {problem.Want{Restarted: true}, func(o *Operated) { o.Oldest = turn.Add(-time.Minute) }, "was not restarted"},
		"other pods":                 {problem.Want{Restarted: true}, func(o *Operated) { o.Remade = true }, "have become others"},
		"CPU":                        {problem.Want{CPU: 0.3}, func(o *Operated) { o.CPU = 0.31 }, "31 % of its CPU limit"},
		"no limit":                   {problem.Want{CPU: 0.3}, func(o *Operated) { o.CPU = -1 }, "an unknown part of its CPU limit"},
		"memory":                     {problem.Want{Memory: 0.5}, func(o *Operated) { o.Memory = 0.6 }, "60 % of its memory limit"},
		"slow":                       {problem.Want{P99: 200 * time.Millisecond}, func(o *Operated) { o.P99 = time.Second }, "takes 1s"},
		"no requests":                {problem.Want{P99: 200 * time.Millisecond}, func(o *Operated) { o.P99 = 0 }, "an unknown time"},
		"no scaler":                  {problem.Want{Autoscaled: true}, func(o *Operated) { o.Scaler = nil }, "no autoscaler that works"},
		"a scaler that cannot scale": {problem.Want{Autoscaled: true}, func(o *Operated) { o.Scaler.Max = 1 }, "no autoscaler"},
		"a container without limits": {problem.Want{Bounded: true}, func(o *Operated) { o.Bounded = false }, "without requests and limits"},
		"a container without probe":  {problem.Want{Probed: true}, func(o *Operated) { o.Probed = false }, "without a readiness probe"},
		"a scaler that is blind":     {problem.Want{Autoscaled: true}, func(o *Operated) { o.Scaler.Active = false }, "no autoscaler"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.want.Service = "catalogue"
			g := &problem.Goal{Want: []problem.Want{tt.want}}
			o := fine()
			if list := Unmet(g, turn, Look{}, Look{Operated: []Operated{o}}); len(list) > 0 {
				t.Errorf("of what is fine: %q", list)
			}
			tt.spoil(&o)
			if list := Unmet(g, turn, Look{}, Look{Operated: []Operated{o}}); len(list) != 1 || !strings.Contains(list[0], tt.text) {
				t.Errorf("%q, want %q", list, tt.text)
			}
		})
	}
}

func TestTogether(t *testing.T) {
	g := &problem.Goal{Want: []problem.Want{{Together: []string{"catalogue", "front-end"}, P99: 200 * time.Millisecond}}}
	front := fine()
	front.Service = "front-end"
	if list := Unmet(g, turn, Look{}, Look{Operated: []Operated{fine(), front}}); len(list) > 0 {
		t.Errorf("180 ms: %q", list)
	}
	front.P99 = 110 * time.Millisecond
	if list := Unmet(g, turn, Look{}, Look{Operated: []Operated{fine(), front}}); len(list) != 1 {
		t.Errorf("200 ms: %q", list)
	}
	if list := Unmet(g, turn, Look{}, Look{Operated: []Operated{fine()}}); len(list) != 1 {
		t.Errorf("one of two: %q", list)
	}
}

// A report is right if its numbers are near what was measured, and its words are those of the document.
func TestMisreported(t *testing.T) {
	g := &problem.Goal{Report: []problem.Item{
		{Key: "cpu", Is: problem.CPUItem, Of: "catalogue"},
		{Key: "p99", Is: problem.P99Item, Of: "catalogue"},
		{Key: "slo", Value: "broken"},
	}}
	looks := []Look{{Operated: []Operated{fine()}}}
	right := map[string]any{"cpu": 140.0, "p99": "85 ms", "slo": " Broken"}
	if list := Misreported(g, looks, right); len(list) > 0 || Unreported(g, right) {
		t.Errorf("%q", list)
	}
	if list := Misreported(g, looks, []any{right}); len(list) > 0 {
		t.Errorf("in a list: %q", list)
	}
	for name, wrong := range map[string]any{
		"nothing": nil, "a word": "broken", "no cpu": map[string]any{"p99": 85.0, "slo": "broken"},
		"seconds":  map[string]any{"cpu": 140.0, "p99": 0.085 - 100, "slo": "broken"},
		"too much": map[string]any{"cpu": 1400.0, "p99": 85.0, "slo": "broken"},
		"met":      map[string]any{"cpu": 140.0, "p99": 85.0, "slo": "met"},
	} {
		if list := Misreported(g, looks, wrong); len(list) != 1 {
			t.Errorf("%s: %q", name, list)
		}
		lacks := name == "nothing" || name == "a word" || name == "no cpu"
		if Unreported(g, wrong) != lacks {
			t.Errorf("%s: something is missing is %t, want %t", name, !lacks, lacks)
		}
	}
	if list := Misreported(g, nil, right); len(list) != 2 {
		t.Errorf("without a measurement nothing is right: %q", list)
	}
}

// As long as more users come, it is not known whether what was asked for is reached.
func TestAchievedInTheEnd(t *testing.T) {
	g := &problem.Goal{Want: []problem.Want{{Service: "catalogue", Replicas: 3}}, Rises: 30 * time.Second}
	look := func(second int) Look {
		return Look{Time: turn.Add(time.Duration(second) * time.Second), Operated: []Operated{fine()}}
	}
	for last, want := range map[int]bool{20: false, 39: false, 40: true, 90: true} {
		var looks []Look
		for s := range last + 1 {
			looks = append(looks, look(s))
		}
		if got := Achieved(g, turn, Look{}, looks, GoalHold); got != want {
			t.Errorf("after %d seconds: %v", last, got)
		}
	}
}

// What is asked for must hold for a while, and users must be served meanwhile.
func TestAchieved(t *testing.T) {
	g := &problem.Goal{Want: []problem.Want{{Service: "catalogue", Replicas: 3}}}
	baseline := Look{Workloads: []Workload{{Kind: "Deployment", Name: "catalogue", Replicas: 1, Ready: 1}}}
	at := func(second int, o Operated, replicas int) Look {
		return Look{
			Time: turn.Add(time.Duration(second) * time.Second), Operated: []Operated{o},
			Workloads: []Workload{{Kind: "Deployment", Name: "catalogue", Replicas: replicas, Ready: replicas}},
		}
	}
	short := fine()
	short.Wanted, short.Ready = 2, 2
	for name, tt := range map[string]struct {
		looks []Look
		want  bool
	}{
		"held":            {[]Look{at(0, short, 2), at(1, fine(), 3), at(11, fine(), 3)}, true},
		"too short":       {[]Look{at(0, short, 2), at(1, fine(), 3), at(10, fine(), 3)}, false},
		"lost":            {[]Look{at(0, fine(), 3), at(11, short, 2)}, false},
		"a workload gone": {[]Look{at(0, fine(), 0), at(11, fine(), 0)}, false},
		"never":           {nil, false},
	} {
		if rising := (&problem.Goal{Want: g.Want, Rises: 30 * time.Second}); Achieved(rising, turn, baseline, tt.looks, GoalHold) {
			t.Errorf("%s: achieved although more users are still to come", name)
		}
		if got := Achieved(g, turn, baseline, tt.looks, GoalHold); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
		if res := Operation(g, turn, baseline, tt.looks, GoalHold, nil); res.Success() != tt.want {
			t.Errorf("%s: %v", name, res)
		}
	}
}
