package measure

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Row is one line of the table.
type Row struct {
	What   string
	Value  Quantity
	Stock  Quantity // the same work done the stock way in the same run; zero if there is no such way
	Target Target
}

// Ratio returns the value of the row divided by that of the stock way. It is known only if both are.
func (r Row) Ratio() (ratio float64, known bool) {
	if !r.Value.Known() || !r.Stock.Known() || r.Stock.Median() == 0 {
		return 0, false
	}
	return r.Value.Median() / r.Stock.Median(), true
}

// Target is what a row is to reach. The zero value is none.
type Target struct {
	limit   float64
	atLeast bool
	ofStock bool
	set     bool
}

// AtMost bounds the value from above, AtLeast from below, and RatioAtMost bounds the ratio to the
// stock way.
func AtMost(limit float64) Target      { return Target{limit: limit, set: true} }
func AtLeast(limit float64) Target     { return Target{limit: limit, atLeast: true, set: true} }
func RatioAtMost(limit float64) Target { return Target{limit: limit, ofStock: true, set: true} }

// verdict says how a row compares with its target: "met", "missed", or nothing if there is none or
// it cannot be told.
func (r Row) verdict() string {
	t, v := r.Target, r.Value.Median()
	if t.ofStock {
		ratio, known := r.Ratio()
		if !known {
			return ""
		}
		v = ratio
	}
	switch {
	case !t.set || !r.Value.Known():
		return ""
	case t.atLeast && v >= t.limit, !t.atLeast && v <= t.limit:
		return "met"
	}
	return "missed"
}

func (r Row) target() string {
	t := r.Target
	switch {
	case !t.set:
		return ""
	case t.ofStock:
		return "<= " + number(t.limit) + "x"
	case t.atLeast:
		return ">= " + format(t.limit, r.Value.Unit)
	}
	return "<= " + format(t.limit, r.Value.Unit)
}

func (r Row) cells() []string {
	ratio := ""
	if v, known := r.Ratio(); known {
		ratio = number(v) + "x"
	}
	return []string{r.What, r.Value.String(), r.Value.Spread(), r.Stock.String(), ratio, r.target(), r.verdict()}
}

// String returns the row as one line, for progress.
func (r Row) String() string {
	s := fmt.Sprintf("%s: %s", r.What, r.Value)
	if r.Stock.Known() {
		s += fmt.Sprintf(", stock %s", r.Stock)
	}
	return s
}

// Table collects rows.
type Table struct{ rows []Row }

// Add appends a row.
func (t *Table) Add(r Row) { t.rows = append(t.rows, r) }

// WriteTo prints the table with aligned columns.
func (t *Table) WriteTo(w io.Writer) (int64, error) {
	lines := [][]string{{"WHAT", "MEDIAN", "RANGE /ROUNDS", "STOCK", "RATIO", "TARGET", ""}}
	for _, r := range t.rows {
		lines = append(lines, r.cells())
	}
	return Columns(w, lines)
}

// Columns prints lines of cells with aligned columns and no spaces at the ends of lines.
func Columns(w io.Writer, lines [][]string) (int64, error) {
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		fmt.Fprintln(tw, strings.Join(l, "\t"))
	}
	if err := tw.Flush(); err != nil {
		return 0, err
	}
	var out strings.Builder
	for line := range strings.Lines(b.String()) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	n, err := io.WriteString(w, out.String())
	return int64(n), err
}
