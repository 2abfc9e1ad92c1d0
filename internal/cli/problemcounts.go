package cli

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// printCounts closes a table of problems: how many there are of each application and task. A task that none of them
// has is no column.
func printCounts(w io.Writer, rows []problemRow) error {
	type cell struct{ app, task string }
	counts := map[cell]int{}
	var apps []string
	for _, r := range rows {
		if counts[cell{r.App, ""}] == 0 {
			apps = append(apps, r.App)
		}
		for _, c := range []cell{{r.App, r.Task}, {r.App, ""}, {"", r.Task}, {"", ""}} {
			counts[c]++
		}
	}
	slices.Sort(apps)
	tasks := slices.DeleteFunc(taskNames(), func(task string) bool { return counts[cell{"", task}] == 0 })

	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nPROBLEMS\t%s\n", strings.ToUpper(strings.Join(append(slices.Clone(tasks), "all"), "\t")))
	for _, app := range append(apps, "") {
		line := []string{app}
		if app == "" {
			line[0] = "all"
		}
		for _, task := range append(slices.Clone(tasks), "") {
			line = append(line, strconv.Itoa(counts[cell{app, task}]))
		}
		fmt.Fprintln(t, strings.Join(line, "\t"))
	}
	return t.Flush()
}
