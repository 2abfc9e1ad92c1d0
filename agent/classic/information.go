package classic

import (
	"math"
	"slices"
)

// information estimates the mutual information of two series, in bits, by the distances to nearest neighbours
// (Kraskov, Stögbauer and Grassberger, 2004, their first estimate):
//
//	ψ(k) + ψ(n) - mean of ψ(x+1) + ψ(y+1)
//
// where x and y are how many of the n points are nearer in one dimension than the k-th neighbour is in both. It is
// not negative, and 0 if one series is constant or there are too few points.
func information(a, b []float64) float64 {
	n := len(a)
	if n <= neighbours || deviation(a) == 0 || deviation(b) == 0 {
		return 0
	}
	a, b = standard(a), standard(b)
	digamma := make([]float64, n+2) // of whole numbers
	digamma[1] = -0.5772156649015329
	for i := 2; i < len(digamma); i++ {
		digamma[i] = digamma[i-1] + 1/float64(i-1)
	}
	sum := 0.0
	distances := make([]float64, 0, n)
	for i := range n {
		distances = distances[:0]
		for j := range n {
			if j != i {
				distances = append(distances, max(math.Abs(a[i]-a[j]), math.Abs(b[i]-b[j])))
			}
		}
		slices.Sort(distances)
		x, y := 0, 0
		for j := range n {
			if j != i && math.Abs(a[i]-a[j]) < distances[neighbours-1] {
				x++
			}
			if j != i && math.Abs(b[i]-b[j]) < distances[neighbours-1] {
				y++
			}
		}
		sum += digamma[x+1] + digamma[y+1]
	}
	return max(0, digamma[neighbours]+digamma[n]-sum/float64(n)) / math.Ln2
}

// standard is a series in deviations from its mean.
func standard(v []float64) []float64 {
	m, d := mean(v), deviation(v)
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = (x - m) / d
	}
	return out
}
