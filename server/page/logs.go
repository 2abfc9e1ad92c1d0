package page

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/aiopslab/aiopslab/observe"
)

const (
	followedLines = 300 // that a page begins with, and that come at a time
	// logOverlap is how much of what was read is read again, since a line of one container may be late.
	logOverlap = time.Second
	logTimeout = 8 * time.Second
)

// logsPage is the log of a service, of a pod, or of all of them.
type logsPage struct {
	clusterPart
	Service, Level, Text string
	Services, Pods       []string
	Levels               []string
	Lines                []followedLine
	Since                string // what the reader has already; empty at first
}

// followedLine is a line of a log with what tells it from others.
type followedLine struct {
	shownLog
	At  int64 // in nanoseconds
	Key string
}

// showLogs answers with the newest lines or, to a reader that has some, with those that have come since.
func (s *Site) showLogs(w http.ResponseWriter, r *http.Request) error {
	part, err := s.part("/logs")
	if err != nil {
		return err
	}
	q := r.URL.Query()
	p := &logsPage{
		clusterPart: part, Service: q.Get("service"), Level: q.Get("level"), Text: q.Get("text"), Since: q.Get("since"),
		Levels: []string{"info", "warn", "error"},
	}
	seen := s.state.read(r.Context(), s.Cluster)
	p.Pods = seen.pods
	for _, row := range seen.Services {
		p.Services = append(p.Services, row.Name)
	}
	slices.Sort(p.Services)
	if !slices.Contains(p.Levels, p.Level) {
		p.Level = ""
	}
	query := observe.LogQuery{
		Namespace: p.App.Namespace, Service: p.Service, Level: p.Level, Text: p.Text, Limit: followedLines,
	}
	if n, err := strconv.ParseInt(p.Since, 10, 64); err == nil && n > 0 {
		query.From = time.Unix(0, n).Add(-logOverlap)
	}
	ctx, cancel := context.WithTimeout(r.Context(), logTimeout)
	defer cancel()
	lines, err := s.Cluster.Telemetry.Logs(ctx, query)
	if err != nil {
		p.Wrong = append(p.Wrong, clip("The logs cannot be read: "+err.Error()))
	}
	for _, l := range lines {
		p.Lines = append(p.Lines, followed(l))
	}
	title := "Logs"
	if p.Service != "" {
		title = "Log of " + visible(p.Service)
	}
	render(w, r, http.StatusOK, "logs", view{Title: title, Place: "cluster", Poll: 2000, Data: p})
	return nil
}

func followed(l observe.LogLine) followedLine {
	level := cmp.Or(l.Level, observe.LevelOf(l.Text))
	return followedLine{
		shownLog{clock(l.Time), visible(l.Pod), clip(l.Text), level == "error" || level == "fatal"},
		l.Time.UnixNano(),
		fmt.Sprintf("%d %s %s", l.Time.UnixNano(), l.Pod, l.Container),
	}
}
