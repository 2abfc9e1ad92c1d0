package grade

import (
	"math"
	"time"

	"github.com/aiopslab/aiopslab/workload"
)

// Vitals are what the severity of a system is made of, at one moment. Each is from 0, as when the system was well, to
// 1; a part that nobody could see is [Unseen].
type Vitals struct {
	// Users is the part of what users want that they do not get, beyond what was usual when the system was well. It is
	// the rate at which their error budget burns.
	Users float64
	// Workloads is 1 - 2^-n, where n is how many workloads are not there, partly ready ones counted in part: 0.5 for
	// one.
	Workloads float64
	// Alerts is 1 - 2^-n, where n is how many alerts fire that a well system does not have; those that are not critical
	// count half.
	Alerts float64
}

// Unseen stands for a part of [Vitals] that nobody could see.
const Unseen = -1

// Weights say what each part of [Vitals] counts. Only their proportion matters.
type Weights struct {
	Users     float64 `json:"users"`
	Workloads float64 `json:"workloads"`
	Alerts    float64 `json:"alerts"`
}

// DefaultWeights let what users get outweigh the rest together. Alerts count least: they come late and go late.
var DefaultWeights = Weights{Users: 0.6, Workloads: 0.25, Alerts: 0.15}

// Severity is how bad a system is, from 0 (well) to 1, which is called mu:
//
//	mu = (wU·Users + wW·Workloads + wA·Alerts) / (wU + wW + wA)
//
// over the parts that could be seen. It is not known if none could be that has a weight.
func (w Weights) Severity(v Vitals) (mu float64, known bool) {
	var sum, all float64
	for _, p := range [][2]float64{{w.Users, v.Users}, {w.Workloads, v.Workloads}, {w.Alerts, v.Alerts}} {
		if p[1] >= 0 {
			sum, all = sum+p[0]*p[1], all+p[0]
		}
	}
	if all <= 0 {
		return 0, false
	}
	return sum / all, true
}

// Unserved is the part of what users want that they do not get, beyond the baseline's:
//
//	1 - Served · min(1, answered / (0.7 · sent))
//
// See [Served]. That fewer requests are answered than sent counts from the 30 % on that no verdict complains about: it
// is how users who still wait show. It is Unseen if there were no requests.
func Unserved(baseline, now workload.Window) float64 {
	u, known := unserved(baseline, now)
	if !known {
		return Unseen
	}
	usual, _ := unserved(baseline, baseline) // 0 if there were no users to learn from
	return min(max(u-usual, 0), 1)
}

func unserved(baseline, now workload.Window) (part float64, known bool) {
	wants := now.Wanted > 0 && now.Covered >= rateCovered
	if now.Total.Requests == 0 && wants {
		return 1, true // They wait.
	}
	served, known := Served(baseline, now)
	if enough := now.Wanted * (1 - rateTolerance); wants && now.Total.Rate < enough {
		served *= now.Total.Rate / enough
	}
	return 1 - served, known
}

// Unready is the part of [Vitals] that is about workloads: those of the baseline, except for elastic ones, against what
// is there now.
func Unready(baseline, now []Workload) float64 {
	look, n := Look{Workloads: now}, 0.0
	for _, b := range baseline {
		if b.Elastic || b.Replicas == 0 {
			continue
		}
		ready := 0
		if w := look.workload(b); w != nil {
			ready = w.Ready
		}
		n += 1 - min(1, float64(ready)/float64(b.Replicas))
	}
	return saturate(n)
}

// Alarm is the part of [Vitals] that is about alerts: those that fire, by the severity in their label.
func Alarm(severities []string) float64 {
	n := 0.0
	for _, s := range severities {
		if s == "critical" {
			n++
		} else {
			n += 0.5
		}
	}
	return saturate(n)
}

// saturate maps 0, 1, 2, ... to 0, 1/2, 3/4, ...: one more always counts, and the first most.
func saturate(n float64) float64 { return 1 - math.Exp2(-n) }

// Course is how the vitals of a system went for a while, as a record has it: a column for each part.
type Course struct {
	From    time.Time `json:"from"`
	Weights Weights   `json:"weights"`
	// At are the times of the samples, in seconds since From.
	At        []float64 `json:"at"`
	Users     []float64 `json:"users"`
	Workloads []float64 `json:"workloads"`
	Alerts    []float64 `json:"alerts"`
}

// Add appends a sample. Values are rounded to a thousandth.
func (c *Course) Add(at time.Time, v Vitals) {
	if len(c.At) == 0 {
		c.From = at
	}
	c.At = append(c.At, thousandth(at.Sub(c.From).Seconds()))
	c.Users = append(c.Users, thousandth(v.Users))
	c.Workloads = append(c.Workloads, thousandth(v.Workloads))
	c.Alerts = append(c.Alerts, thousandth(v.Alerts))
}

func thousandth(x float64) float64 { return math.Round(1000*x) / 1000 }

// Point is a sample of a [Course].
type Point struct {
	Time     time.Time
	Vitals   Vitals
	Severity float64
	Weights  Weights
}

// Points are the samples whose severity is known. What a damaged record lacks is left out.
func (c *Course) Points() []Point {
	var list []Point
	for i := range min(len(c.At), len(c.Users), len(c.Workloads), len(c.Alerts)) {
		v := Vitals{c.Users[i], c.Workloads[i], c.Alerts[i]}
		if mu, known := c.Weights.Severity(v); known {
			list = append(list, Point{c.From.Add(time.Duration(c.At[i] * float64(time.Second))), v, mu, c.Weights})
		}
	}
	return list
}
