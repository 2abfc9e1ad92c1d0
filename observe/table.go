package observe

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Format is a file format of an export: [CSV], or that of package observe/parquet. Each has the same tables
// and columns.
type Format struct {
	Ext string // of its files: "csv"

	// New begins a table of rows of one type, such as this one: a [MetricRow], [TraceRow] or [LogRow].
	New func(w io.Writer, row any) Table
}

// Table takes the rows of a table, one after the other. It is whole once it is closed without an error.
type Table interface {
	Write(row any) error
	Close() error
}

func (f Format) check() error {
	if f.New == nil {
		return errors.New("no format is given; use observe.CSV")
	}
	return nil
}

// MetricRow is a row of a metric's table.
type MetricRow struct {
	Timestamp int64   `parquet:"timestamp"` // seconds
	CmdbID    string  `parquet:"cmdb_id,dict"`
	KPIName   string  `parquet:"kpi_name,dict"`
	Value     float64 `parquet:"value"` // as it is, counters too
}

// TraceRow is a span. Times are microseconds.
type TraceRow struct {
	TraceID       string `parquet:"trace_id,dict"`
	SpanID        string `parquet:"span_id"`
	ParentSpan    string `parquet:"parent_span"` // ROOT if there is none
	ServiceName   string `parquet:"service_name,dict"`
	OperationName string `parquet:"operation_name,dict"`
	StartTime     int64  `parquet:"start_time"`
	Duration      int64  `parquet:"duration"`
	HasError      bool   `parquet:"has_error"`
	Response      string `parquet:"response,dict"` // the status code, or Unknown
}

// LogRow is a line of a log.
type LogRow struct {
	LogID         string `parquet:"log_id"`
	Timestamp     int64  `parquet:"timestamp"` // seconds
	Date          string `parquet:"date"`
	PodName       string `parquet:"pod_name,dict"`
	ContainerName string `parquet:"container_name,dict"`
	Namespace     string `parquet:"namespace,dict"`
	NodeName      string `parquet:"node_name,dict"`
	Message       string `parquet:"message"`
}

// row is a row of any of the tables.
type row interface {
	columns() []string
	cells() []string // as CSV has them
}

func (MetricRow) columns() []string { return []string{"timestamp", "cmdb_id", "kpi_name", "value"} }

func (r MetricRow) cells() []string {
	return []string{strconv.FormatInt(r.Timestamp, 10), r.CmdbID, r.KPIName, formatFloat(r.Value)}
}

func (TraceRow) columns() []string {
	return []string{
		"trace_id", "span_id", "parent_span", "service_name", "operation_name", "start_time", "duration",
		"has_error", "response",
	}
}

func (r TraceRow) cells() []string {
	hasError := "False"
	if r.HasError {
		hasError = "True"
	}
	return []string{
		r.TraceID, r.SpanID, r.ParentSpan, r.ServiceName, r.OperationName,
		strconv.FormatInt(r.StartTime, 10), strconv.FormatInt(r.Duration, 10), hasError, r.Response,
	}
}

func (LogRow) columns() []string {
	return []string{"log_id", "timestamp", "date", "pod_name", "container_name", "namespace", "node_name", "message"}
}

func (r LogRow) cells() []string {
	return []string{
		r.LogID, strconv.FormatInt(r.Timestamp, 10), r.Date, r.PodName, r.ContainerName,
		r.Namespace, r.NodeName, r.Message,
	}
}

// formatFloat writes a number as pandas does, so that files compare equal.
func formatFloat(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.ContainsAny(s, ".N") && !math.IsInf(v, 0) {
		s += ".0"
	}
	return s
}

// CSV is a line of names, and a line for each row.
var CSV = Format{"csv", func(w io.Writer, r any) Table {
	c := csv.NewWriter(w)
	_ = c.Write(r.(row).columns()) // Close tells.
	return csvTable{c}
}}

type csvTable struct{ *csv.Writer }

func (t csvTable) Write(r any) error { return t.Writer.Write(r.(row).cells()) }

func (t csvTable) Close() error {
	t.Flush()
	return t.Error()
}

// batches are rows as they come in. They end with the first error.
type batches[T row] = iter.Seq2[[]T, error]

// batch is rows that are all there.
func batch[T row](rows []T) batches[T] {
	return func(yield func([]T, error) bool) { yield(rows, nil) }
}

// write makes the file path with the extension of the format, and returns its name.
func write[T row](path string, f Format, rows batches[T]) (name string, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	name = path + "." + f.Ext
	file, err := os.Create(name)
	if err != nil {
		return "", err
	}
	err = fill(f.New(file, *new(T)), rows)
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(name) // Half a table misleads.
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return name, nil
}

func fill[T row](t Table, rows batches[T]) error {
	for list, err := range rows {
		if err != nil {
			return err
		}
		for _, r := range list {
			if err := t.Write(r); err != nil {
				return err
			}
		}
	}
	return t.Close()
}
