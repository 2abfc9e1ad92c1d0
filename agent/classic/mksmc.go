package classic

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// MKSMC. Of the paper only the title could be had: an anomaly score in numbers of deviations (K-sigma) for several
// variables at once, with Monte Carlo. All below is chosen here:
//
//   - The variables are all signals of a service: its metrics, and what is counted in its traces and logs.
//   - The K-sigma score of several variables is the mean of theirs.
//   - The model of a healthy system is a normal distribution for each variable. By Monte Carlo, healthy moments are
//     drawn from it and scored like real ones; a score that hardly any of them has is an anomaly.
//   - A service is anomalous if its median score of the last half minute is. Any such service is an
//     anomaly of the system.
const (
	// kSigma is the K. A score is an anomaly if it is as rare among healthy moments as K deviations are in one normal
	// variable. Three is what rules of this kind commonly take.
	kSigma = 3.0
	// draws are the healthy moments that are drawn: enough that some dozens are rarer than kSigma.
	draws = 10_000
	// seed makes the draws, and the noise of RMLAD, the same in every run.
	seed = 1
)

// mksmc returns the services that are anomalous, the most anomalous first.
func mksmc(healthy, now *telemetry) []string {
	random := rand.New(rand.NewPCG(seed, 0))
	type suspect struct {
		service string
		excess  float64 // of the score over the threshold
	}
	var suspects []suspect
	for group := range byService(pairs(healthy.signals(), now.signals())) {
		normals := make([]normal, len(group))
		for i, p := range group {
			normals[i] = learn(p.signal, p.healthy)
		}
		var scores []float64
		for t := range group[0].ticks {
			scores = append(scores, score(len(group), func(i int) float64 {
				return normals[i].sigmas(group[i].ticks[t])
			}))
		}
		threshold := monteCarlo(random, len(group))
		if s := median(scores); s > threshold {
			suspects = append(suspects, suspect{group[0].service, s / threshold})
		}
	}
	slices.SortStableFunc(suspects, func(a, b suspect) int { return -cmp.Compare(a.excess, b.excess) })
	var names []string
	for _, s := range suspects {
		names = append(names, s.service)
	}
	return names
}

// score is the K-sigma score of so many variables.
func score(n int, sigmas func(i int) float64) float64 {
	sum := 0.0
	for i := range n {
		sum += sigmas(i)
	}
	return sum / float64(n)
}

// monteCarlo returns the score that only a rare healthy moment of so many variables has. In units of
// their deviations all are the same standard normal distribution.
func monteCarlo(random *rand.Rand, variables int) float64 {
	scores := make([]float64, draws)
	for d := range scores {
		scores[d] = score(variables, func(int) float64 { return normal{0, 1}.sigmas(random.NormFloat64()) })
	}
	slices.Sort(scores)
	rare := math.Erfc(kSigma / math.Sqrt2)
	return scores[int((1-rare)*draws)]
}
