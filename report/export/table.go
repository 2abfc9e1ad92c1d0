package export

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/aiopslab/aiopslab/observe"
)

// Rows are what a table has of a run: [Runs] or [Steps].
type Rows struct {
	row any // one without values
	of  func(r *Run) []any
}

// CSV is a Writer of a table: a line of names, and a line for each row.
func CSV(w io.Writer, rows Rows) (Writer, error) {
	t := &csvTable{rows: rows, w: csv.NewWriter(w)}
	return t, t.w.Write(columns(reflect.TypeOf(rows.row)))
}

type csvTable struct {
	rows Rows
	w    *csv.Writer
}

func (t *csvTable) Write(_ context.Context, r *Run) error {
	for _, row := range t.rows.of(r) {
		if err := t.w.Write(cells(row)); err != nil {
			return err
		}
	}
	return nil
}

func (t *csvTable) Close() error {
	t.w.Flush()
	return t.w.Error()
}

// columns are the names of a row's fields.
func columns(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("parquet"), ",")
		names = append(names, name)
	}
	return names
}

// cells are the values of a row's fields.
func cells(row any) (list []string) {
	v := reflect.ValueOf(row)
	for i := range v.NumField() {
		list = append(list, cell(v.Field(i).Interface()))
	}
	return list
}

func cell(v any) string {
	switch v := v.(type) {
	case time.Time:
		return v.Format("2006-01-02T15:04:05.000000Z")
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case *float64:
		if v == nil {
			return ""
		}
		return cell(*v)
	}
	return fmt.Sprint(v)
}

// groupRows is how many rows are in memory until they are written.
const groupRows = 5000

// Parquet is a Writer of a table in the format of Apache Parquet, with the names of [CSV] and with types.
func Parquet(w io.Writer, rows Rows) Writer {
	schema := parquet.SchemaOf(rows.row)
	return &parquetTable{rows, parquet.NewWriter(w, schema, parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(groupRows))}
}

type parquetTable struct {
	rows Rows
	w    observe.Table
}

func (t *parquetTable) Write(_ context.Context, r *Run) error {
	for _, row := range t.rows.of(r) {
		if err := t.w.Write(row); err != nil {
			return err
		}
	}
	return nil
}

func (t *parquetTable) Close() error { return t.w.Close() }
