package grade

import "github.com/aiopslab/aiopslab/workload"

// Served is how well users are served, from 0 to 1:
//
//	the part of their requests that succeed × min(1, L / P95)
//
// P95 is the time within which 95 % of those are answered, and L the longest for it that no verdict complains about:
// three times the baseline's, and 300 ms. It is known only if there were requests.
func Served(baseline, now workload.Window) (part float64, known bool) {
	n := now.Total
	if n.Requests == 0 {
		return 0, false
	}
	limit := latencyFactor*baseline.Total.P95 + latencySlack
	if n.P95 <= limit {
		return n.Success, true
	}
	return n.Success * float64(limit) / float64(n.P95), true
}
