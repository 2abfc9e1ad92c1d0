package parquet_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/aiopslab/aiopslab/observe"
	format "github.com/aiopslab/aiopslab/observe/parquet"
)

// written is a table of some rows.
func written[T any](t *testing.T, f observe.Format, rows ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	table := f.New(&b, *new(T))
	for _, r := range rows {
		if err := table.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// check writes rows, reads them back, and compares the columns with those of CSV.
func check[T any](t *testing.T, rows ...T) {
	t.Helper()
	b := written(t, format.Format, rows...)
	got, err := parquet.Read[T](bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rows, got); diff != "" {
		t.Error(diff)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, c := range f.Schema().Columns() {
		columns = append(columns, c[0])
	}
	header, _, _ := strings.Cut(string(written(t, observe.CSV, rows...)), "\n")
	if got := strings.Join(columns, ","); got != header {
		t.Errorf("columns %s, want those of CSV, %s", got, header)
	}
}

// Parquet has the same rows as CSV, under the same names.
func TestFormat(t *testing.T) {
	check(t, observe.MetricRow{Timestamp: 1772366400, CmdbID: "node.geo-1", KPIName: "container_threads", Value: 0.5})
	check(
		t,
		observe.TraceRow{TraceID: "t1", SpanID: "s1", ParentSpan: "ROOT", ServiceName: "frontend", HasError: true},
		observe.TraceRow{TraceID: "t1", SpanID: "s2", ParentSpan: "s1", StartTime: 1772366400001000, Duration: 4000},
	)
	check(t, observe.LogRow{LogID: "geo-1/geo/1", Timestamp: 1772366400, PodName: "geo-1", Message: "a, b\n\"c\""})
}
