package dataset

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/observe"
)

// Export writes what a case has of an interval into a directory, in the layout of [observe.Observer.Export]. A service
// is shown as one pod, which is called by its name and 0.
func (c *Case) Export(i agent.Interval, dir string) error {
	for _, d := range []string{"metric/container", "trace", "log"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	within := func(t time.Time) bool { return !t.Before(i.From) && !t.After(i.To) }
	if err := c.exportSamples(filepath.Join(dir, "metric/container"), within); err != nil {
		return err
	}
	err := table(filepath.Join(dir, "trace/traces_0.csv"), traceColumns, func(put func(...string)) error {
		return c.Spans(func(s aci.ArchivedSpan) {
			if within(s.Start) {
				failed := map[bool]string{true: "True", false: "False"}[s.Failed]
				put(s.Trace, s.ID, s.Parent, s.Service, s.Operation, strconv.FormatInt(s.Start.UnixMicro(), 10),
					strconv.FormatInt(s.Duration.Microseconds(), 10), failed, "")
			}
		})
	})
	if err != nil {
		return err
	}
	n := 0
	return table(filepath.Join(dir, "log/log_0.csv"), logColumns, func(put func(...string)) error {
		return c.Logs(func(service string, l observe.LogLine) {
			if within(l.Time) {
				put(strconv.Itoa(n), strconv.FormatInt(l.Time.Unix(), 10), l.Time.Format(time.RFC3339), service+"-0",
					l.Container, "", "", l.Text)
				n++
			}
		})
	})
}

// counters are the metrics of a case that are rates, by the counters that they were made of; gauges the others.
var counters, gauges = func() (counters, gauges map[string]string) {
	counters, gauges = map[string]string{}, map[string]string{}
	for name, k := range kept {
		if k.counter {
			counters[k.name] = name
		} else {
			gauges[k.name] = name
		}
	}
	return counters, gauges
}()

// exportSamples writes a table for each metric. Rates are made counters again, which begin at 0.
func (c *Case) exportSamples(dir string, within func(time.Time) bool) error {
	type row struct {
		at      time.Time
		service string
		v       float64
	}
	type series struct {
		at  time.Time
		sum float64
	}
	tables, sums := map[string][]row{}, map[string]*series{}
	err := c.Samples(func(at time.Time, service, metric string, v float64) {
		name := metric
		if gauge, ok := gauges[metric]; ok {
			name = gauge
		}
		if counter, ok := counters[metric]; ok {
			name = counter
			s := sums[service+"_"+metric]
			if s == nil {
				s = &series{at: at}
				sums[service+"_"+metric] = s
			}
			s.sum += v * at.Sub(s.at).Seconds()
			s.at, v = at, s.sum
		}
		if within(at) {
			tables[name] = append(tables[name], row{at, service, v})
		}
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		file := filepath.Join(dir, "kpi_"+filepath.Base(name)+".csv")
		rows := tables[name]
		// Those of a series follow one another.
		slices.SortStableFunc(rows, func(x, y row) int { return strings.Compare(x.service, y.service) })
		err := table(file, sampleColumns, func(put func(...string)) error {
			for _, r := range rows {
				put(strconv.FormatInt(r.at.Unix(), 10), r.service+"-0", name, strconv.FormatFloat(r.v, 'g', -1, 64))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
