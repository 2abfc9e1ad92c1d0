package dataset

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/observe"
)

// each reads the rows of the tables that a pattern names, without their headers, which must begin with these columns.
func (src *source) each(pattern string, columns []string, row func([]string) error) error {
	files, err := filepath.Glob(filepath.Join(src.dir, pattern))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := eachRow(f, columns, row); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(f), err)
		}
	}
	return nil
}

func eachRow(file string, columns []string, row func([]string) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	c := newReader(z)
	header, err := c.Read()
	if err != nil {
		return err
	}
	if !slices.Equal(header, columns) {
		return fmt.Errorf("it has the columns %s, not %s", strings.Join(header, ","), strings.Join(columns, ","))
	}
	for {
		r, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = row(r)
		}
		if err != nil {
			return err
		}
	}
}

// newReader reads CSV. What it returns is good until the next row.
func newReader(r io.Reader) *csv.Reader {
	c := csv.NewReader(r)
	c.ReuseRecord = true
	return c
}

// table writes a CSV file.
func table(file string, header []string, fill func(put func(...string)) error) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	_ = w.Write(header) // Error tells.
	err = fill(func(cells ...string) { _ = w.Write(cells) })
	w.Flush()
	return errors.Join(err, w.Error(), f.Close())
}

var (
	logColumns = []string{
		"log_id", "timestamp", "date", "pod_name", "container_name", "namespace", "node_name", "message",
	}
	traceColumns = []string{
		"trace_id", "span_id", "parent_span", "service_name", "operation_name", "start_time", "duration", "has_error",
		"response",
	}
	sampleColumns = []string{"timestamp", "cmdb_id", "kpi_name", "value"}
)

// writeLogs writes lines with RCAEval's columns, and the pod and its node behind them.
func (src *source) writeLogs(file string) error {
	header := []string{
		"time", "timestamp", "container_name", "message", "level", "req_path", "error", "pod_name", "node_name",
	}
	return table(file, header, func(put func(...string)) error {
		return src.each("log/*.csv.gz", logColumns, func(r []string) error {
			at, err := time.Parse(time.RFC3339, r[2])
			if err != nil {
				return err
			}
			level, failure := observe.LevelOf(r[7]), ""
			if level == "error" || level == "fatal" {
				failure = r[7]
			}
			put(clock(at), strconv.FormatInt(at.UnixNano(), 10), r[4], r[7], level, "", failure, r[3], r[6])
			return nil
		})
	})
}

// writeTraces writes spans with RCAEval's columns.
func (src *source) writeTraces(file string) error {
	header := []string{
		"time", "traceID", "spanID", "serviceName", "methodName", "operationName", "startTimeMillis", "startTime",
		"duration", "statusCode", "parentSpanID",
	}
	return table(file, header, func(put func(...string)) error {
		return src.each("trace/*.csv.gz", traceColumns, func(r []string) error {
			start, err := strconv.ParseInt(r[5], 10, 64)
			if err != nil {
				return err
			}
			at, parent := time.UnixMicro(start), r[2]
			if parent == "ROOT" {
				parent = ""
			}
			put(clock(at), r[0], r[1], r[3], r[4][strings.LastIndexByte(r[4], '/')+1:], r[4],
				strconv.FormatInt(start/1000, 10), r[5], r[6], status(r[8], r[7] == "True"), parent)
			return nil
		})
	})
}

// clock is a time of the day, for people.
func clock(t time.Time) string { return t.UTC().Format("15:04") }

// status is 0 for a span that is well, as readers of such tables take it; else the status that it tells, or 2, which is
// OpenTelemetry's for an error.
func status(response string, failed bool) string {
	if !failed {
		return "0"
	}
	if n, err := strconv.Atoi(response); err == nil && n >= 300 {
		return response
	}
	return "2"
}
