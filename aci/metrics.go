package aci

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/observe"
)

// maxDuration is the longest window of telemetry that may be asked for, in minutes.
const maxDuration = 24 * 60

type windowArgs struct {
	Namespace string `arg:"namespace" doc:"The namespace of the application."`
	Duration  int    `arg:"duration" default:"5" doc:"How many minutes back to look."`
}

// window is the part of the telemetry the arguments mean.
func (a *windowArgs) window(now time.Time) (observe.Window, error) {
	if a.Duration < 1 || a.Duration > maxDuration {
		return observe.Window{}, fmt.Errorf("duration must be from 1 to %d minutes, not %d", maxDuration, a.Duration)
	}
	return observe.Window{Namespace: a.Namespace, From: now.Add(-time.Duration(a.Duration) * time.Minute), To: now}, nil
}

var getMetrics = define("get_metrics", Read,
	"Summarise the metrics of a namespace: CPU, memory, throttling, restarts and network of each pod; request rate, "+
		"errors and latency of each service; and what has changed in the last minute. "+
		"All samples are exported to CSV files, one for each metric.",
	"str: the summary, and the directory the files are in. read_metrics shows one of them.",
	func(ctx context.Context, i *Interface, a *windowArgs) Result {
		w, err := a.window(i.now())
		if err != nil {
			return failed("%v", err)
		}
		dir, err := i.deliver(func(dir string) (string, error) {
			return i.o.Observer.ExportMetrics(ctx, w, dir, observe.CSV)
		})
		if err != nil {
			return failed("%v", err)
		}
		summary, err := i.summarise(ctx, w)
		if err != nil {
			return failed("%v", err)
		}
		return Result{Text: fmt.Sprintf("%s\nMetrics data exported to directory: %s\n%s", summary, dir, i.tree(dir))}
	})

var readMetrics = define("read_metrics", Read,
	"Read a CSV file of metrics that get_metrics exported.",
	"str: the table: timestamp (seconds), cmdb_id (node and pod), kpi_name and value (as it is, counters too).",
	func(_ context.Context, i *Interface, a *readArgs) Result { return i.table(a.FilePath, "Metrics") })

// tree shows a directory of the agent's with all below.
func (i *Interface) tree(dir string) string {
	var b strings.Builder
	_ = fs.WalkDir(i.box.Root().FS(), dir[1:], func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // What cannot be looked at is not shown.
		}
		relative := strings.TrimPrefix(strings.TrimPrefix(name, dir[1:]), "/")
		depth := strings.Count(relative, "/") + 1
		if relative == "" {
			depth = 0
		}
		b.WriteString(strings.Repeat("    ", depth) + path.Base(name))
		if d.IsDir() {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
		return nil
	})
	return b.String()
}
