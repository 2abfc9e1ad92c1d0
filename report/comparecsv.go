package report

import (
	"encoding/csv"
	"io"
	"strconv"
)

// compareHead are the columns of a comparison: what each row is of, what the two sides have, and how sure that is.
// Counts of pairs and P are of what was solved alone, the smallest difference of all of it.
var compareHead = []string{
	"by", "name", "first", "second", "pairs", "both", "first_alone", "second_alone", "neither", "first_value",
	"second_value", "difference", "low", "high", "p", "detectable",
}

// WriteCSV writes a line for what was solved in all, for each task, and for each thing that runs take, with a head
// line. Shares are parts of one.
func (c *Comparison) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write(compareHead) // Flush tells.
	line := func(by, name string, cells ...string) {
		_ = out.Write(append([]string{by, name, unquoted(c.First.Name), unquoted(c.Second.Name)}, cells...))
	}
	line("all", "", append(c.Paired.csv(), csvNumber(&c.Detectable))...)
	for _, t := range c.Tasks {
		line("task", string(t.Task), append(t.Paired.csv(), "")...)
	}
	for _, m := range c.Measures {
		var low, high *float64
		if m.Interval != nil {
			low, high = &m.Interval.Low, &m.Interval.High
		}
		line("measure", m.Name, strconv.Itoa(m.Pairs), "", "", "", "", csvNumber(&m.First), csvNumber(&m.Second),
			csvNumber(&m.Difference), csvNumber(low), csvNumber(high), "", "")
	}
	out.Flush()
	return out.Error()
}

// csv are the cells of pairs, from how many there are to P.
func (p Paired) csv() []string {
	n := float64(p.Of())
	first, second := float64(p.Both+p.First)/n, float64(p.Both+p.Second)/n
	return []string{
		strconv.Itoa(p.Of()), strconv.Itoa(p.Both), strconv.Itoa(p.First), strconv.Itoa(p.Second),
		strconv.Itoa(p.Neither), csvNumber(&first), csvNumber(&second), csvNumber(&p.Difference), csvNumber(&p.Low),
		csvNumber(&p.High), csvNumber(&p.P),
	}
}
