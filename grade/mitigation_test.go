package grade

import (
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/workload"
)

func healthy(at time.Duration) Look {
	sli := workload.SLI{Requests: 250, Rate: 50, Success: 1, P95: 20 * time.Millisecond}
	search := sli
	search.Operation = "search"
	return Look{
		Time:      time.Unix(1000, 0).Add(at),
		Load:      workload.Window{Covered: 5 * time.Second, Total: sli, Operations: []workload.SLI{search}},
		Workloads: []Workload{{Kind: "deployment", Name: "geo", Replicas: 1, Ready: 1}, {Kind: "deployment", Name: "rate", Replicas: 2, Ready: 2}},
		Services:  []string{"geo", "rate"},
	}
}

func TestComplaints(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(*Look)
		want  string // "" is none
	}{
		{"the same", func(*Look) {}, ""},
		{"more replicas than before", func(l *Look) { l.Workloads[0] = Workload{Kind: "deployment", Name: "geo", Replicas: 3, Ready: 3} }, ""},
		{"a workload more", func(l *Look) {
			l.Workloads = append(l.Workloads, Workload{Kind: "deployment", Name: "debug", Replicas: 1, Ready: 0})
		}, ""},
		{"one failed request", func(l *Look) { l.Load.Total.Success = 0.99 }, ""},
		{"a noisy machine", func(l *Look) { l.Load.Total.P95 = 300 * time.Millisecond }, ""},
		{"gone", func(l *Look) { l.Workloads = l.Workloads[:1] }, "deployment rate is gone"},
		{"scaled away", func(l *Look) { l.Workloads[1] = Workload{Kind: "deployment", Name: "rate", Replicas: 0, Ready: 0} }, "deployment rate is scaled from 2 to 0"},
		{"not ready", func(l *Look) { l.Workloads[1].Ready = 1 }, "deployment rate: 1 of 2 ready"},
		{"service gone", func(l *Look) { l.Services = l.Services[:1] }, "service rate is gone"},
		{"symptom", func(l *Look) { l.Symptoms = []string{"geo refuses connections"} }, "geo refuses connections"},
		{"failures", func(l *Look) { l.Load.Total.Success = 0.9 }, "90.0 % of requests succeed"},
		{"slow", func(l *Look) { l.Load.Total.P95 = 2 * time.Second }, "95 % of requests within 2s"},
		{"no load", func(l *Look) { l.Load.Total.Rate = 10 }, "10.0 requests/s, 50.0 in the baseline"},
		{"load that has just begun", func(l *Look) { l.Load.Total.Rate, l.Load.Covered = 10, time.Second }, ""},
		{"one operation", func(l *Look) { l.Load.Operations[0].Success = 0.5 }, "50.0 % of search requests succeed"},
		{"too few to tell", func(l *Look) { l.Load.Operations[0] = workload.SLI{Operation: "search", Requests: 2} }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := healthy(0)
			tt.spoil(&l)
			got := strings.Join(Complaints(healthy(0), l), "; ")
			if got == tt.want || tt.want != "" && strings.Contains(got, tt.want) {
				return
			}
			t.Errorf("got %q, want %q", got, tt.want)
		})
	}
}

// What the application scales by itself may have no pods, or some that are not ready. It must be there.
func TestElastic(t *testing.T) {
	baseline := healthy(0)
	baseline.Workloads[1].Elastic = true
	for name, tt := range map[string]struct {
		now  []Workload
		want string
	}{
		"scaled to nothing": {append(baseline.Workloads[:1:1], Workload{Kind: "deployment", Name: "rate", Elastic: true}), ""},
		"starting":          {append(baseline.Workloads[:1:1], Workload{Kind: "deployment", Name: "rate", Replicas: 2, Elastic: true}), ""},
		"gone":              {baseline.Workloads[:1], "deployment rate is gone"},
	} {
		l := healthy(0)
		l.Workloads = tt.now
		if got := strings.Join(Complaints(baseline, l), "; "); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestMitigation(t *testing.T) {
	sick := func(at time.Duration) Look {
		l := healthy(at)
		l.Symptoms = []string{"geo refuses connections"}
		return l
	}
	for _, tt := range []struct {
		name  string
		looks []Look
		want  bool
	}{
		{"never looked", nil, false},
		{"well, but only once", []Look{healthy(0)}, false},
		{"well for long", []Look{healthy(0), healthy(Hold / 2), healthy(Hold)}, true},
		{"well after a while", []Look{sick(0), healthy(time.Second), healthy(time.Second + Hold)}, true},
		{"well for too short", []Look{sick(0), healthy(time.Second), healthy(Hold)}, false},
		{"a relapse", []Look{healthy(0), sick(Hold / 2), healthy(Hold)}, false},
		{"sick in the end", []Look{healthy(0), healthy(Hold), sick(Hold + time.Second)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Mitigation(healthy(0), tt.looks, Holding{})
			if r.Success() != tt.want {
				t.Errorf("got %v", r)
			}
			if c, _ := r["complaints"].([]string); !tt.want && len(c) == 0 {
				t.Error("a failure without a reason")
			}
		})
	}
}
