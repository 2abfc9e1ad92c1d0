package dataset

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// Case is an incident of a data set, to be worked on. What can be seen of it is read from its tables whenever it is
// asked for.
type Case struct {
	Name  string
	Truth Truth

	dir      string // of the tables
	services []aci.ArchivedService
	from, to time.Time
}

var _ aci.Archive = (*Case)(nil)

// metricTables are the names that the table of metrics may have: of several, the first is read.
var metricTables = []string{"metrics.csv", "simple_metrics.csv", "data.csv"}

const (
	logTable   = "logs.csv"
	traceTable = "traces.csv"
	injectFile = "inject_time.txt"
)

// Names returns the cases of a data set: one that [Set] has made, or one in the layout of RCAEval, whose cases are in
// directories SERVICE_FAULT/N.
func Names(dir string) (names []string, err error) {
	if entries, err := os.ReadDir(filepath.Join(dir, casesDir)); err == nil {
		for _, e := range entries {
			if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				names = append(names, e.Name())
			}
		}
	} else if names, err = foreignNames(dir); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: there is no incident in it: neither cases/NAME nor SERVICE_FAULT/N/%s", dir,
			injectFile)
	}
	return names, nil
}

// maxDepth is how far below a directory cases are looked for.
const maxDepth = 4

// foreignNames are the cases in the layout of RCAEval, by their paths.
func foreignNames(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if d.IsDir() && strings.Count(relative, string(filepath.Separator)) > maxDepth {
			return fs.SkipDir
		}
		if d.Name() == injectFile && strings.Contains(filepath.Base(filepath.Dir(filepath.Dir(name))), "_") {
			names = append(names, filepath.ToSlash(filepath.Dir(relative)))
		}
		return nil
	})
	return names, err
}

// OpenCase opens a case of a data set.
func OpenCase(dir, name string) (*Case, error) {
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%q is no name of a case", name)
	}
	c := &Case{Name: name, dir: filepath.Join(dir, casesDir, name)}
	err := c.readTruth(filepath.Join(dir, truthDir, name, "truth.json"))
	if errors.Is(err, fs.ErrNotExist) {
		c.dir = filepath.Join(dir, filepath.FromSlash(name))
		err = c.guessTruth()
	}
	if err == nil {
		err = c.readServices()
	}
	if err == nil {
		err = c.readWindow()
	}
	if err != nil {
		return nil, fmt.Errorf("case %s: %w", name, err)
	}
	return c, nil
}

func (c *Case) readTruth(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, &c.Truth)
}

// guessTruth takes the truth from where a case of RCAEval is: below a directory that is named by the service and the
// fault.
func (c *Case) guessTruth() error {
	b, err := os.ReadFile(filepath.Join(c.dir, injectFile))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is none of that name")
	} else if err != nil {
		return err
	}
	c.Truth.Injected, err = strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return fmt.Errorf("%s: it is to have a time in seconds: %w", injectFile, err)
	}
	number, kindDir := filepath.Base(c.dir), filepath.Base(filepath.Dir(c.dir))
	cut := strings.LastIndexByte(kindDir, '_')
	if cut < 1 {
		return fmt.Errorf("its directory is in %s: that is to be named SERVICE_FAULT", kindDir)
	}
	service, kind := kindDir[:cut], kindDir[cut+1:]
	c.Truth.App = filepath.Base(filepath.Dir(filepath.Dir(c.dir)))
	c.Truth.Case, c.Truth.Problem = c.Name, fmt.Sprintf("%s-%s-localization-%s", c.Truth.App, kindDir, number)
	c.Truth.Faults = []record.Fault{{Kind: kind, Target: service, Time: time.Unix(c.Truth.Injected, 0)}}
	c.Truth.Answer.Components = []problem.Component{{Name: service}}
	return nil
}

// readServices reads who calls whom. In a case without it the services are those that have metrics.
func (c *Case) readServices() error {
	b, err := os.ReadFile(filepath.Join(c.dir, "topology.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return c.eachMetric(nil, func(columns []metricColumn) {
			for _, m := range columns {
				if !slices.ContainsFunc(c.services, func(s aci.ArchivedService) bool { return s.Name == m.service }) {
					c.services = append(c.services, aci.ArchivedService{Name: m.service})
				}
			}
		})
	} else if err != nil {
		return err
	}
	var t struct{ Services []aci.ArchivedService }
	err = json.Unmarshal(b, &t)
	c.services = t.Services
	return err
}

func (c *Case) readWindow() error {
	err := c.Samples(func(at time.Time, _, _ string, _ float64) {
		if c.from.IsZero() || at.Before(c.from) {
			c.from = at
		}
		if at.After(c.to) {
			c.to = at
		}
	})
	if err == nil && !c.to.After(c.from) {
		err = errors.New("its metrics have no samples")
	}
	return err
}

// Window is the time that the metrics are of.
func (c *Case) Window() (from, to time.Time) { return c.from, c.to }

// Services are the parts of the system.
func (c *Case) Services() []aci.ArchivedService { return c.services }

// Tables are the files that may be shown to who works on the case.
func (c *Case) Tables() (files []string) {
	for _, name := range slices.Concat(metricTables, []string{logTable, traceTable, "topology.json"}) {
		file := filepath.Join(c.dir, name)
		if fi, err := os.Stat(file); err == nil && fi.Mode().IsRegular() {
			files = append(files, file)
		}
	}
	return files
}

// metricColumn is a column of a table of metrics.
type metricColumn struct {
	index           int
	service, metric string
}

// Samples hands over the samples of metrics, moment by moment.
func (c *Case) Samples(take func(at time.Time, service, metric string, v float64)) error {
	return c.eachMetric(take, func([]metricColumn) {})
}

// eachMetric reads the table of metrics. If take is nil, it is its head alone.
func (c *Case) eachMetric(take func(at time.Time, service, metric string, v float64), head func([]metricColumn)) error {
	var file string
	for _, name := range metricTables {
		if file = filepath.Join(c.dir, name); exists(file) {
			break
		}
	}
	t, err := openWide(file)
	if err != nil {
		return err
	}
	defer t.Close()
	clock := slices.Index(t.header, "time")
	if clock < 0 {
		return fmt.Errorf("%s: it has no column time", filepath.Base(file))
	}
	var columns []metricColumn
	for i, name := range t.header {
		if cut := strings.LastIndexByte(name, '_'); i != clock && cut > 0 {
			columns = append(columns, metricColumn{i, name[:cut], name[cut+1:]})
		}
	}
	if head(columns); take == nil {
		return nil
	}
	return t.each(func(row []string) error {
		seconds, err := strconv.ParseFloat(row[clock], 64)
		if err != nil || math.Abs(seconds) > math.MaxUint32 {
			return fmt.Errorf("%q is no time in seconds", row[clock])
		}
		at := time.UnixMilli(int64(seconds * 1000)).UTC()
		for _, m := range columns {
			v, err := strconv.ParseFloat(row[m.index], 64)
			if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				continue // It was not measured then.
			}
			take(at, m.service, m.metric, v)
		}
		return nil
	})
}

// Logs hands over the lines of all logs, with the services that they are of.
func (c *Case) Logs(take func(service string, l observe.LogLine)) error {
	return c.pick(logTable, []string{"timestamp", "container_name", "message"}, []string{"pod_name", "level"},
		func(r []string) error {
			ns, err := strconv.ParseInt(r[0], 10, 64)
			if err != nil {
				return fmt.Errorf("%q is no time in nanoseconds", r[0])
			}
			l := observe.LogLine{
				Time: time.Unix(0, ns).UTC(), Container: r[1], Text: r[2], Pod: r[3], Level: strings.ToLower(r[4]),
			}
			if l.Level == "" {
				l.Level = observe.LevelOf(l.Text)
			}
			take(c.serviceOf(l.Pod, l.Container), l)
			return nil
		})
}

// serviceOf is the service that a container is of: by the name of its pod, or else by its own.
func (c *Case) serviceOf(pod, container string) string {
	return cmp.Or(ownerOf(pod, c.services, func(s aci.ArchivedService) string { return s.Name }), container)
}

// Spans hands over the spans of all traces.
func (c *Case) Spans(take func(aci.ArchivedSpan)) error {
	columns := []string{
		"traceID", "spanID", "serviceName", "operationName", "startTime", "duration", "statusCode", "parentSpanID",
	}
	return c.pick(traceTable, columns, nil, func(r []string) error {
		start, err := strconv.ParseInt(r[4], 10, 64)
		if err != nil {
			return fmt.Errorf("%q is no time in microseconds", r[4])
		}
		took, err := strconv.ParseInt(r[5], 10, 64)
		if err != nil {
			return fmt.Errorf("%q is no time in microseconds", r[5])
		}
		take(aci.ArchivedSpan{
			Trace: r[0], ID: r[1], Service: r[2], Operation: r[3], Start: time.UnixMicro(start).UTC(),
			Duration: time.Duration(took) * time.Microsecond, Failed: failedStatus(r[6]), Parent: r[7],
		})
		return nil
	})
}

// failedStatus reports whether a span tells of an error: by a code of HTTP, or by one of gRPC or OpenTelemetry, in
// which 0 is that all is well.
func failedStatus(text string) bool {
	code, err := strconv.ParseFloat(text, 64)
	return err == nil && code != 0 && (code < 100 || code >= 400)
}

// pick reads these columns of a table, and these others where they are there. A table that is not there has no rows.
func (c *Case) pick(name string, columns, others []string, row func([]string) error) error {
	file := filepath.Join(c.dir, name)
	if !exists(file) {
		return nil
	}
	t, err := openWide(file)
	if err != nil {
		return err
	}
	defer t.Close()
	var at []int
	for i, column := range slices.Concat(columns, others) {
		n := slices.Index(t.header, column)
		if n < 0 && i < len(columns) {
			return fmt.Errorf("%s: it has no column %s", name, column)
		}
		at = append(at, n)
	}
	picked := make([]string, len(at))
	return t.each(func(r []string) error {
		for i, n := range at {
			if picked[i] = ""; n >= 0 {
				picked[i] = strings.Clone(r[n])
			}
		}
		return row(picked)
	})
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// wide is a table with a header that says what its columns are.
type wide struct {
	io.Closer
	name   string
	header []string
	next   func() ([]string, error)
	line   func() int
}

func openWide(file string) (*wide, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	r := newReader(f)
	header, err := r.Read()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: it has no header: %w", filepath.Base(file), err)
	}
	line := func() int { n, _ := r.FieldPos(0); return n }
	return &wide{f, filepath.Base(file), slices.Clone(header), r.Read, line}, nil
}

// each reads the rows.
func (t *wide) each(row func([]string) error) error {
	for {
		r, err := t.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			if err = row(r); err != nil {
				err = fmt.Errorf("line %d: %w", t.line(), err)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
}
