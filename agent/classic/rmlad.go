package classic

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// RMLAD. Public are the abstract (a log anomaly detector gives scores over time, and a robust correlation with data
// augmentation finds the metric that changes along with them), and two programs of others that follow the paper.
// From these: lines become templates by Drain (drain.go); the score is the sum of two, each of weight 0.5, of which
// one is how unexpected the sequence of templates is; a metric is a candidate if it is three deviations off; the
// series are augmented with normal noise; the correlation is mutual information, estimated by nearest neighbours; the
// service of the best metric is the answer. Chosen here:
//
//   - What follows a template is learnt as a Markov chain for each service. The programs train networks
//     (LSTM), for which a minute of logs is too little.
//   - The second score is how far the number of lines of each template is out of its healthy range, by
//     logarithms. One of the programs has the parameters of lines instead; in a minute hardly one is seen twice.
//   - Each score is in deviations from the healthy ones. If the scores are as usual, nothing is wrong.
//   - The best of three lags counts: metrics are sampled more rarely than logs are written.
//   - Of metrics that correlate equally well, the one that changed most comes first.
const (
	sequenceWeight = 0.5 // of the first score, the rest is the second's; from a program that follows the paper
	changed        = 3.0 // deviations that make a metric a candidate; from the same
	neighbours     = 3   // of the estimate of mutual information; what the library of the other program has if not told
	unusual        = 3.0 // deviations of the sum of both scores that make the logs unusual; chosen here
	// leastBits and leastCount are how much the scores differ by in any case: a tenth of a bit for each line, one new
	// line. Chosen here.
	leastBits, leastCount = 0.1, 0.7
	// copies are how many times as much data augmentation makes, and blur is the deviation of the noise, as a part of
	// the series'. Chosen here: with less noise every value is one of a kind, and all metrics look informative.
	copies, blur = 8, 0.5
	// sameBits are what the estimate cannot tell apart. Chosen here.
	sameBits = 0.1
)

// rmlad returns the services of the metrics that go with the anomaly of the logs, the best first.
func rmlad(healthy, now *telemetry) []string {
	before, after := logScores(healthy, now)
	if median(after) <= unusual*math.Hypot(sequenceWeight, 1-sequenceWeight) {
		return nil
	}
	type candidate struct {
		service             string
		information, change float64
	}
	var list []candidate
	for _, p := range pairs(healthy.signals(), now.signals()) {
		change := learn(p.signal, p.healthy).sigmas(mean(p.now))
		if !isMetric(p.name) || change < changed {
			continue
		}
		scores, metric := slices.Concat(before, after), slices.Concat(p.healthy, p.now)
		best := 0.0
		for _, lag := range []int{-1, 0, 1} {
			best = max(best, lagged(scores, metric, lag))
		}
		list = append(list, candidate{p.service, math.Round(best / sameBits), change})
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(-cmp.Compare(a.information, b.information), -cmp.Compare(a.change, b.change))
	})
	var services []string
	for _, c := range list {
		if !slices.Contains(services, c.service) {
			services = append(services, c.service)
		}
	}
	return services
}

// lagged is the mutual information of two series with b so many points later than a.
func lagged(a, b []float64, lag int) float64 {
	if lag < 0 {
		return lagged(b, a, -lag)
	}
	n := min(len(a), len(b)-lag)
	if n < 2 {
		return 0
	}
	random := rand.New(rand.NewPCG(seed, 0)) // The same noise for all: equal metrics stay equal.
	return information(augment(random, a[:n]), augment(random, b[lag:lag+n]))
}

// augment repeats a series with noise in it.
func augment(random *rand.Rand, v []float64) []float64 {
	d := blur * deviation(v)
	var out []float64
	for range copies {
		for _, x := range v {
			out = append(out, x+d*random.NormFloat64())
		}
	}
	return out
}

// logScores are how unusual the logs are in each tick of both intervals, in deviations of the healthy ones.
func logScores(healthy, now *telemetry) (before, after []float64) {
	keys := &drain{}
	usual, present := healthy.logKeys(keys), now.logKeys(keys)
	expected := learnChains(usual)
	var sequence, count [2][]float64
	for i, lines := range usual {
		sequence[0] = append(sequence[0], expected.surprise(lines, true))
		others := slices.Delete(slices.Clone(usual), i, i+1)
		count[0] = append(count[0], outside(lines.counts(), others))
	}
	for _, lines := range present {
		sequence[1] = append(sequence[1], expected.surprise(lines, false))
		count[1] = append(count[1], outside(lines.counts(), usual))
	}
	// What is less of a surprise than usual is not unusual: a tick without a line says nothing about their order.
	deviations := func(scores [2][]float64, least float64, i, t int) float64 {
		return max(0, scores[i][t]-median(scores[0])) / max(spread(scores[0]), least)
	}
	total := func(i int) (list []float64) {
		for t := range sequence[i] {
			list = append(list, sequenceWeight*deviations(sequence, leastBits, i, t)+
				(1-sequenceWeight)*deviations(count, leastCount, i, t))
		}
		return list
	}
	return total(0), total(1)
}

// logTick are the templates of the lines of each service in a tick, in their order. Each begins with the last one
// of the tick before, or none.
type logTick map[string][]int

// none is before the first line.
const none = -1

func (t *telemetry) logKeys(keys *drain) []logTick {
	list := make([]logTick, t.ticks())
	for i := range list {
		list[i] = logTick{}
	}
	last := map[string]int{}
	for _, l := range t.lines {
		i := t.tickOf(l.at, len(list))
		if i < 0 {
			continue
		}
		if list[i][l.service] == nil {
			before, ok := last[l.service]
			if !ok {
				before = none
			}
			list[i][l.service] = []int{before}
		}
		last[l.service] = keys.key(l.service, l.text)
		list[i][l.service] = append(list[i][l.service], last[l.service])
	}
	return list
}

func (l logTick) counts() map[int]float64 {
	counts := map[int]float64{}
	for _, keys := range l {
		for _, k := range keys[1:] {
			counts[k]++
		}
	}
	return counts
}

// chains are how often a template followed another, and how often any did.
type chains struct {
	follows map[[2]int]float64
	after   map[int]float64
	keys    map[int]bool
}

func learnChains(ticks []logTick) chains {
	c := chains{map[[2]int]float64{}, map[int]float64{}, map[int]bool{}}
	for _, t := range ticks {
		for _, keys := range t {
			for i, k := range keys[1:] {
				c.follows[[2]int{keys[i], k}]++
				c.after[keys[i]]++
				c.keys[k] = true
			}
		}
	}
	return c
}

// surprise is how many bits a line takes that is told what came before, in the mean of a tick. A line that the
// chains were learnt from is taken out of them.
func (c chains) surprise(lines logTick, learnt bool) float64 {
	own := 0.0
	if learnt {
		own = 1
	}
	bits, n := 0.0, 0.0
	for _, service := range slices.Sorted(maps.Keys(lines)) {
		keys := lines[service]
		for i, k := range keys[1:] {
			seen := c.follows[[2]int{keys[i], k}] - own + 1
			bits -= math.Log2(seen / (c.after[keys[i]] - own + float64(len(c.keys)) + 1))
			n++
		}
	}
	return bits / max(1, n)
}

// outside is how far counts are out of the range of others. Logarithms, because ten times as many
// lines are not ten times as unusual.
func outside(counts map[int]float64, others []logTick) float64 {
	low, high := map[int]float64{}, map[int]float64{}
	for i, o := range others {
		c := o.counts()
		for k := range high {
			low[k] = min(low[k], c[k])
		}
		for k, n := range c {
			if _, ok := high[k]; !ok && i == 0 {
				low[k] = n
			}
			high[k] = max(high[k], n)
		}
	}
	keys := maps.Clone(high)
	maps.Copy(keys, counts)
	sum := 0.0
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		sum += max(0, math.Log1p(counts[k])-math.Log1p(high[k]), math.Log1p(low[k])-math.Log1p(counts[k]))
	}
	return sum
}
