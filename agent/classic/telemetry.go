package classic

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/agent"
)

// telemetry is an export: what was measured, traced and logged in an interval.
type telemetry struct {
	from, to time.Time
	samples  []sample
	spans    []span
	lines    []line
}

// sample is the value of a metric of a pod.
type sample struct {
	at      int64 // Unix seconds
	pod     string
	service string
	metric  string
	value   float64
}

// span is a part of a trace.
type span struct {
	at         int64 // Unix seconds
	id, parent string
	service    string
	operation  string
	duration   float64 // seconds
	failed     bool
}

// line is a line of a log.
type line struct {
	at      int64 // Unix seconds
	service string
	text    string
}

// podSuffix is what controllers add to the name of a workload for that of its pods: a template's
// hash and five random characters, or a number.
var podSuffix = regexp.MustCompile(`(-[bcdfghjklmnpqrstvwxz2456789]{5,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}$|-\d+$`)

// serviceOf is the service that a pod is of: the name of its workload.
func serviceOf(pod string) string { return podSuffix.ReplaceAllString(pod, "") }

// load reads an export, in the layout of [observe.Observer.Export].
func load(dir string, i agent.Interval) (*telemetry, error) {
	t := &telemetry{from: i.From, to: i.To}
	for _, kind := range []struct {
		files   string
		columns []string
		row     func(f []string) error
	}{
		{"metric/container/kpi_*.csv", []string{"timestamp", "cmdb_id", "kpi_name", "value"}, t.addSample},
		{"trace/traces_*.csv", []string{
			"trace_id", "span_id", "parent_span", "service_name", "operation_name",
			"start_time", "duration", "has_error",
		}, t.addSpan},
		{"log/log_*.csv", []string{"timestamp", "pod_name", "message"}, t.addLine},
	} {
		files, err := filepath.Glob(filepath.Join(dir, kind.files)) // In the order of names.
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if err := readTable(file, kind.columns, kind.row); err != nil {
				return nil, fmt.Errorf("telemetry: %s: %w", filepath.Base(file), err)
			}
		}
	}
	if len(t.samples) == 0 {
		return nil, fmt.Errorf("telemetry: the export from %s has no metrics in it", i.From.UTC().Format(time.TimeOnly))
	}
	return t, nil
}

// readTable calls row with the wanted columns of each row of a CSV file.
func readTable(file string, columns []string, row func([]string) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.ReuseRecord = true
	head, err := r.Read()
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty; a header is expected")
	}
	if err != nil {
		return err
	}
	index := map[string]int{}
	for i, name := range head {
		index[name] = i
	}
	at := make([]int, len(columns))
	for i, name := range columns {
		n, ok := index[name]
		if !ok {
			return fmt.Errorf("there is no column %s", name)
		}
		at[i] = n
	}
	wanted := make([]string, len(columns))
	for {
		all, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i, n := range at {
			wanted[i] = all[n]
		}
		if err := row(wanted); err != nil {
			n, _ := r.FieldPos(0)
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
}

func (t *telemetry) addSample(f []string) error {
	at, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return err
	}
	v, err := strconv.ParseFloat(f[3], 64)
	if err != nil {
		return err
	}
	pod := f[1][strings.LastIndexByte(f[1], '.')+1:]
	t.samples = append(t.samples, sample{at, pod, serviceOf(pod), f[2], v})
	return nil
}

func (t *telemetry) addSpan(f []string) error {
	start, err := strconv.ParseInt(f[5], 10, 64)
	if err != nil {
		return err
	}
	d, err := strconv.ParseInt(f[6], 10, 64)
	if err != nil {
		return err
	}
	t.spans = append(t.spans, span{
		at: start / 1e6, id: f[0] + "/" + f[1], parent: f[0] + "/" + f[2],
		service: f[3], operation: f[4], duration: float64(d) / 1e6, failed: f[7] == "True",
	})
	return nil
}

func (t *telemetry) addLine(f []string) error {
	at, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return err
	}
	t.lines = append(t.lines, line{at, serviceOf(f[1]), f[2]})
	return nil
}
