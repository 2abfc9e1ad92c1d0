package aci

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

var archivedMetrics = define("get_metrics", Read,
	"Summarise the metrics of the services in the time up to the end: what each was in the last minute, what it was "+
		"before, by how much it goes up and down, and which stand out.",
	"str: the summary, and the files that all samples are in. read_metrics shows one of them.",
	func(_ context.Context, i *Interface, a *windowArgs) Result {
		w, err := a.window(i.now())
		if err != nil {
			return failed("%v", err)
		}
		all := map[string]*course{}
		err = i.archive.Samples(func(at time.Time, service, metric string, v float64) {
			if at.Before(w.From) || at.After(w.To) {
				return
			}
			key := service + "\x00" + metric
			if all[key] == nil {
				all[key] = &course{service: service, metric: metric}
			}
			all[key].add(v, at.After(w.To.Add(-time.Minute)))
		})
		if err != nil {
			return failed("%v", err)
		}
		return Result{Text: fmt.Sprintf("Metrics of %s, the last %s up to %s.\n\n%s\nAll samples are in %s:\n%s",
			a.Namespace, count(a.Duration, "minute"), w.To.UTC().Format(time.RFC3339), showCourses(all), caseDir,
			i.tree(caseDir))}
	})

// course is how a metric went.
type course struct {
	service, metric string
	before, now     []float64
}

func (c *course) add(v float64, last bool) {
	if last {
		c.now = append(c.now, v)
	} else {
		c.before = append(c.before, v)
	}
}

// moved is by how many standard deviations the last minute is off the time before.
func (c *course) moved() float64 {
	if len(c.before) == 0 || len(c.now) == 0 {
		return 0
	}
	mean, deviation := spread(c.before)
	now, _ := spread(c.now)
	if least := math.Abs(mean) * leastSpread; deviation < least {
		deviation = least
	}
	if deviation == 0 {
		deviation = leastSpread
	}
	return (now - mean) / deviation
}

const (
	// leastSpread is the least that a metric is taken to go up and down, as a share of what it is.
	leastSpread = 0.05
	standsOut   = 4.0 // deviations
	shownStands = 20
)

// spread is the mean and the standard deviation.
func spread(list []float64) (mean, deviation float64) {
	if len(list) == 0 {
		return math.NaN(), math.NaN()
	}
	for _, v := range list {
		mean += v / float64(len(list))
	}
	for _, v := range list {
		deviation += (v - mean) * (v - mean) / float64(len(list))
	}
	return mean, math.Sqrt(deviation)
}

func showCourses(all map[string]*course) string {
	list := slices.Collect(maps.Values(all))
	slices.SortFunc(list, func(x, y *course) int {
		return strings.Compare(x.service+"\x00"+x.metric, y.service+"\x00"+y.metric)
	})
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVICE\tMETRIC\tBEFORE\tDEVIATION\tLAST MINUTE")
	number := func(v float64) string {
		if math.IsNaN(v) {
			return "-"
		}
		return fmt.Sprintf("%.4g", v)
	}
	for _, c := range list {
		mean, deviation := spread(c.before)
		now, _ := spread(c.now)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", c.service, c.metric, number(mean), number(deviation), number(now))
	}
	w.Flush()
	if len(list) == 0 {
		b.WriteString("(no samples)\n")
	}
	b.WriteString("\nWhat stands out in the last minute against the time before:\n")
	out := slices.DeleteFunc(list, func(c *course) bool { return math.Abs(c.moved()) < standsOut })
	slices.SortStableFunc(out, func(x, y *course) int {
		return cmp.Compare(math.Abs(y.moved()), math.Abs(x.moved()))
	})
	for _, c := range out[:min(len(out), shownStands)] {
		mean, _ := spread(c.before)
		now, _ := spread(c.now)
		fmt.Fprintf(&b, "  - %s of %s: from %.4g to %.4g\n", c.metric, c.service, mean, now)
	}
	if len(out) == 0 {
		b.WriteString("  (nothing)\n")
	}
	return b.String()
}
