package observe

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// lokiLines is how many lines a Loki is asked for, the newest: as many as it gives by default.
	lokiLines = 5000
	// lokiPast is how far back a question goes that names no beginning.
	lokiPast = 24 * time.Hour
)

// loki reads the logs that a Loki has. Its streams must have the labels namespace and pod, as those of its own
// collectors have for Kubernetes.
type loki struct {
	http *http.Client
	base string
}

// logs returns lines of the pods of a service, those that are gone as well. Pods are the service's now.
func (l *loki) logs(ctx context.Context, q LogQuery, atLeast int, pods []string) ([]LogLine, error) {
	if q.To.IsZero() {
		q.To = time.Now()
	}
	if q.From.IsZero() {
		q.From = q.To.Add(-lokiPast)
	}
	selector := fmt.Sprintf("{namespace=%q", q.Namespace)
	if q.Service != "" {
		selector += fmt.Sprintf(",pod=~%q", podPattern(q.Service, pods))
	}
	selector += "}"
	if q.Text != "" {
		selector += fmt.Sprintf(" |~ %q", "(?i)"+regexp.QuoteMeta(q.Text))
	}
	streams, err := l.query(ctx, selector, q.From, q.To)
	if err != nil {
		return nil, err
	}
	var list []LogLine
	for _, s := range streams {
		for _, v := range s.Values {
			ns, err := strconv.ParseInt(v[0], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("ask Loki: the time of a line is %q", v[0])
			}
			text := strings.TrimRight(v[1], "\r\n")
			line := LogLine{
				time.Unix(0, ns), q.Namespace, s.Stream["pod"], s.Stream["container"], s.Stream["node_name"],
				levelOf(text), text,
			}
			if q.selects(&line, atLeast) {
				list = append(list, line)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b LogLine) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Pod, b.Pod))
	})
	if q.Limit > 0 && len(list) > q.Limit {
		list = list[len(list)-q.Limit:]
	}
	return list, nil
}

// podPattern matches the pods that a service has, and those that Deployments and StatefulSets of its name had.
func podPattern(service string, pods []string) string {
	name := regexp.QuoteMeta(service)
	parts := []string{name, name + "-[a-z0-9]{5,10}-[a-z0-9]{5}", name + "-[0-9]+"}
	for _, p := range pods {
		parts = append(parts, regexp.QuoteMeta(p))
	}
	return strings.Join(parts, "|")
}

type lokiStream struct {
	Stream map[string]string `json:"stream"`
	Values [][2]string       `json:"values"` // the time in nanoseconds, and the line
}

func (l *loki) query(ctx context.Context, selector string, from, to time.Time) ([]lokiStream, error) {
	v := url.Values{
		"query": {selector}, "limit": {strconv.Itoa(lokiLines)}, "direction": {"backward"},
		"start": {strconv.FormatInt(from.UnixNano(), 10)}, "end": {strconv.FormatInt(to.UnixNano(), 10)},
	}
	var answer struct {
		Data struct {
			ResultType string       `json:"resultType"`
			Result     []lokiStream `json:"result"`
		} `json:"data"`
	}
	if err := askExternal(ctx, l.http, l.base+"/loki/api/v1/query_range", v, &answer); err != nil {
		return nil, fmt.Errorf("ask Loki: %w", err)
	}
	if t := answer.Data.ResultType; t != "streams" {
		return nil, fmt.Errorf("ask Loki: the answer is %q, not of streams", t)
	}
	return answer.Data.Result, nil
}
