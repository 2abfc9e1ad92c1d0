package runbook

import (
	"regexp"
	"strconv"
	"strings"
)

// row is a pod as "kubectl get pods -o wide" shows it.
type row struct {
	name     string
	ready    bool
	status   string
	restarts int
	age      string
	ip       string
	node     string
}

var columns = regexp.MustCompile(` {2,}`)

// readRows reads kubectl's table of pods. Lines that are none are skipped.
func readRows(text string) (rows []row) {
	for line := range strings.Lines(text) {
		f := columns.Split(strings.TrimSpace(line), -1)
		if len(f) < 7 {
			continue
		}
		have, want, ok := strings.Cut(f[1], "/")
		if !ok {
			continue
		}
		r := row{name: f[0], ready: have == want && have != "0", status: f[2], age: f[4], ip: f[5], node: f[6]}
		count, _, _ := strings.Cut(f[3], " ")
		r.restarts, _ = strconv.Atoi(count)
		rows = append(rows, r)
	}
	return rows
}

// done reports whether a pod has finished and is not expected to run.
func (r row) done() bool { return r.status == "Completed" || r.status == "Succeeded" }

// ill reports whether a pod is not as it should be. One that is on its way out is not judged.
func (r row) ill() bool {
	return !r.done() && r.status != "Terminating" && (!r.ready || r.status != "Running")
}
