package dataset

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/session"
)

// metrics are the numbers of services, moment by moment.
type metrics struct {
	src     *source
	columns map[string][]float64 // by "<service>_<metric>"
	known   map[string][]bool    // where something is known
}

func newMetrics(src *source) *metrics {
	return &metrics{src, map[string][]float64{}, map[string][]bool{}}
}

// moment is the row of a time, or -1 if it is not in the window.
func (m *metrics) moment(t time.Time) int {
	if t.Before(m.src.From) || t.After(m.src.To) {
		return -1
	}
	return int(t.Sub(m.src.From).Seconds() / m.src.Step)
}

// add adds to the number of a service at a moment: those of its pods and containers make a sum.
func (m *metrics) add(column string, i int, v float64) {
	if m.columns[column] == nil {
		m.columns[column], m.known[column] = make([]float64, m.src.rows()), make([]bool, m.src.rows())
	}
	m.columns[column][i] += v
	m.known[column][i] = true
}

// kept are the metrics of containers that a case has. Counters are shown as rates a second.
var kept = map[string]struct {
	name    string
	counter bool
}{
	"container_cpu_usage_seconds_total":         {"cpu", true},
	"container_memory_working_set_bytes":        {"mem", false},
	"container_cpu_cfs_throttled_seconds_total": {"throttled", true},
	"container_network_receive_bytes_total":     {"net-rx", true},
	"container_network_transmit_bytes_total":    {"net-tx", true},
	"container_threads":                         {"threads", false},
}

// simple are the metrics that simple_metrics.csv has, by RCAEval's names.
var simple = []string{"cpu", "mem", "workload", "error", "latency-50", "latency-90"}

// eachSample hands over the samples of tables: when it was, of what, and how much of which metric.
func (src *source) eachSample(pattern string, take func(at int64, of, kpi string, v float64)) error {
	return src.each(pattern, sampleColumns, func(r []string) error {
		at, err := strconv.ParseInt(r[0], 10, 64)
		if err != nil {
			return err
		}
		v, err := strconv.ParseFloat(r[3], 64)
		if err != nil {
			return err
		}
		take(at, r[1], r[2], v)
		return nil
	})
}

// readSamples takes the samples of containers.
func (src *source) readSamples(m *metrics) error {
	var series string // The rows of a series follow one another.
	var lastTime int64
	var last float64
	return src.eachSample("metric/container/*.csv.gz", func(at int64, of, kpi string, v float64) {
		name, _, _ := strings.Cut(kpi, ".") // A network interface may be behind it.
		k, ok := kept[name]
		service := src.serviceOf(of)
		if !ok || service == "" {
			return
		}
		id := of + " " + kpi
		before, then, first := last, lastTime, id != series || at <= lastTime
		series, last, lastTime = strings.Clone(id), v, at
		if k.counter {
			if first {
				return
			}
			if v < before {
				before = 0 // The container was started again.
			}
			v = (v - before) / float64(at-then)
		}
		if i := m.moment(time.Unix(at, 0)); i >= 0 {
			m.add(service+"_"+k.name, i, v)
		}
	})
}

// serviceOf is the service that a pod is of, by its name: "<instance>.<pod>". It is empty for a pod of none.
func (src *source) serviceOf(cmdb string) string {
	pod := cmdb[strings.LastIndexByte(cmdb, '.')+1:]
	return ownerOf(pod, src.Services, func(s session.TelemetryService) string { return s.Name })
}

// ownerOf is the service whose name a pod's begins with, the longest of several; empty for none.
func ownerOf[S any](pod string, services []S, name func(S) string) (owner string) {
	for _, s := range services {
		if n := name(s); (pod == n || strings.HasPrefix(pod, n+"-")) && len(n) > len(owner) {
			owner = n
		}
	}
	return owner
}

// served are the metrics of services that a case has, by the name of their table.
var served = map[string]string{
	"http_requests": "workload", "http_errors": "error",
	"http_latency_50": "latency-50", "http_latency_90": "latency-90",
	"grpc_requests": "workload", "grpc_errors": "error",
	"grpc_latency_50": "latency-50", "grpc_latency_90": "latency-90",
}

// readServices takes what services did. One that serves HTTP and gRPC has the sum of both, and the longer time.
func (src *source) readServices(m *metrics) error {
	return src.eachSample("metric/service/*.csv.gz", func(at int64, of, kpi string, v float64) {
		name, i := served[kpi], m.moment(time.Unix(at, 0))
		if name == "" || of == "" || i < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return // A quantile of no requests is not a number.
		}
		column := of + "_" + name
		if strings.HasPrefix(name, "latency") && m.known[column] != nil && m.known[column][i] {
			m.columns[column][i] = max(m.columns[column][i], v)
			return
		}
		m.add(column, i, v)
	})
}

// noErrors says that what had requests and no series of errors had none.
func (m *metrics) noErrors() {
	for column, known := range maps.Clone(m.known) {
		service, ok := strings.CutSuffix(column, "_workload")
		for i, k := range known {
			if ok && k {
				m.add(service+"_error", i, 0)
			}
		}
	}
}

// write writes a table with a column for each service and metric.
func (m *metrics) write(file string, few bool) error {
	var names []string
	for _, c := range slices.Sorted(maps.Keys(m.columns)) {
		if !few || slices.Contains(simple, c[strings.LastIndexByte(c, '_')+1:]) {
			names = append(names, c)
		}
	}
	return table(file, append([]string{"time"}, names...), func(put func(...string)) error {
		for i := range m.src.rows() {
			at := m.src.From.Add(time.Duration(float64(i) * m.src.Step * float64(time.Second)))
			cells := []string{strconv.FormatInt(at.Unix(), 10)}
			for _, c := range names {
				text := ""
				if m.known[c][i] {
					text = strconv.FormatFloat(m.columns[c][i], 'g', 9, 64)
				}
				cells = append(cells, text)
			}
			put(cells...)
		}
		return nil
	})
}
