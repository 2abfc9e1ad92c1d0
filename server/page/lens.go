package page

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/report/dataset"
)

// lens is how what came of a step is drawn. What it draws is what the step has told, and nothing else: the dashboards
// of a person show what an agent could see, and each look is a step as an agent's is.
type lens struct {
	kind  string
	about string // of metrics the query, of logs and traces the service
	by    any    // the terminal that it was typed in
}

// The kinds. A step of the terminal, or of another form, is shown as text.
const (
	byTerminal = ""
	byForm     = "call"
	ofAlerts   = "alerts"
	ofTopology = "topology"
	ofMetrics  = "metrics"
	ofLogs     = "logs"
	ofTraces   = "traces"
)

const (
	// shownMinutes is how far back a chart of metrics goes, unless somebody says otherwise, and maxMinutes at most.
	shownMinutes, maxMinutes = 10, 24 * 60
	// linePoints is how many points a line of it has. With more, the answer would be longer than an agent is shown.
	linePoints = 60
	// queryOfGame is what the box for PromQL has at first.
	queryOfGame = `topk(5, sum by (pod) (rate(container_cpu_usage_seconds_total{namespace="%s"}[1m])))`
)

// whereIsPrometheus finds Prometheus as an agent would.
const whereIsPrometheus = `host=$(kubectl get services -A --no-headers | awk '$2 == "prometheus-server" {print $2 "." $1; exit}')
`

// pickSeries and pickTrace make answers short enough to be shown.
var (
	//go:embed ask/series.jq
	pickSeries string
	//go:embed ask/trace.jq
	pickTrace string
)

// lookFor is the call that a look needs, as an agent writes it.
func lookFor(kind, namespace string, q url.Values) (response string, l lens, err error) {
	switch kind {
	case ofAlerts:
		return agent.Call("get_alerts", namespace), lens{kind: ofAlerts}, nil
	case ofTopology:
		return agent.Call("get_topology", namespace), lens{kind: ofTopology}, nil
	case ofLogs:
		args := map[string]any{"namespace": namespace, "service": q.Get("service"), "tail": 80}
		if level := q.Get("level"); level != "" {
			args["level"] = level
		}
		return agent.CallNamed("get_logs", args), lens{kind: ofLogs, about: q.Get("service")}, nil
	case ofMetrics:
		command, err := askMetrics(q)
		return agent.Call("exec_shell", command), lens{kind: ofMetrics, about: q.Get("query")}, err
	case ofTraces:
		ask := fmt.Sprintf("http://jaeger.%s:%d/api/traces", namespace, observe.JaegerPort)
		command := "curl -sG " + quoteWord(ask) + " --data-urlencode " + quoteWord("service="+q.Get("service")) +
			" -d limit=20 | jq -c " + quoteWord(pickTrace)
		return agent.Call("exec_shell", command), lens{kind: ofTraces, about: q.Get("service")}, nil
	}
	return "", l, errors.New("there is no such look")
}

// askMetrics is the command that asks Prometheus.
func askMetrics(q url.Values) (string, error) {
	query := strings.TrimSpace(q.Get("query"))
	if query == "" || len(query) > maxQuery {
		return "", fmt.Errorf("a query has 1 to %d characters", maxQuery)
	}
	minutes := shownMinutes
	if n, err := strconv.Atoi(q.Get("minutes")); err == nil {
		minutes = min(max(n, 1), maxMinutes)
	}
	step := max(5, 60*minutes/linePoints)
	return whereIsPrometheus + fmt.Sprintf(`now=$(date +%%s)
curl -sG "http://${host:-prometheus-server.observe}/api/v1/query_range" --data-urlencode %s -d start=$((now - %d)) -d end=$now -d step=%d | jq -c %s`,
		quoteWord("query="+query), 60*minutes, step, quoteWord(pickSeries)), nil
}

// quoteWord makes one word of a text for a shell.
func quoteWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// sight is what came of a step, as a page shows it.
type sight struct {
	Step    int
	Call    string
	Failed  bool
	Text    excerpt
	Drawing template.HTML
	Metrics *metricsBox
	Table   [][]string // the first row is the head
	Logs    []shownLog
	Plain   bool // there is nothing but the text
	Title   string
}

// sightOf draws a step.
func sightOf(p *played, a *app.App, all string) *sight {
	s := &sight{Step: p.Step, Call: clip(p.Call), Failed: p.Failed, Text: excerptOf(p.Observation, all)}
	if p.Failed {
		s.Plain = true
		return s
	}
	switch p.lens.kind {
	case ofAlerts:
		s.Title, s.Table = "Alerts", tableOf(p.Observation, "STATE")
	case ofTopology:
		s.Title, s.Table = "Topology", tableOf(p.Observation, "SERVICE")
		if len(s.Table) > 1 {
			s.Drawing = drawGraph(a, unready(s.Table), nil)
		}
	case ofLogs:
		s.Title, s.Logs = "Logs of "+visible(p.lens.about), logLines(p.Observation)
	case ofMetrics:
		s.Title, s.Metrics = "Metrics", chartOf(p.lens.about, p.Observation)
	case ofTraces:
		s.Title, s.Drawing = "A request through "+visible(p.lens.about), fallOf(p.lens.about, p.Observation)
	}
	s.Plain = s.Drawing == "" && s.Metrics == nil && len(s.Table) < 2 && len(s.Logs) == 0
	return s
}

var gap = regexp.MustCompile(`\S+(?: \S+)*`)

// tableOf reads the table of a text whose head begins with a word: its columns begin where those of the head do.
func tableOf(text, first string) (rows [][]string) {
	var starts []int
	for _, line := range strings.Split(text, "\n") {
		if starts == nil {
			if !strings.HasPrefix(line, first) {
				continue
			}
			for _, at := range gap.FindAllStringIndex(line, -1) {
				starts = append(starts, len([]rune(line[:at[0]])))
			}
		}
		if strings.TrimSpace(line) == "" {
			break
		}
		runes := []rune(line)
		var row []string
		for i, from := range starts {
			to := len(runes)
			if i+1 < len(starts) {
				to = min(to, starts[i+1])
			}
			row = append(row, visible(strings.TrimSpace(string(runes[min(from, to):to]))))
		}
		rows = append(rows, row)
	}
	return rows
}

// unready are the services of a table of the topology that lack pods.
func unready(table [][]string) map[string]string {
	red := map[string]string{}
	at := slices.Index(table[0], "READY PODS")
	for _, row := range table[1:] {
		if at < 0 || at >= len(row) {
			break
		}
		ready, all, ok := strings.Cut(row[at], "/")
		if ok && ready != all {
			red[row[0]] = row[at] + " pods are ready"
		}
	}
	return red
}

// logLines are the lines of a log.
func logLines(text string) (list []shownLog) {
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		level := observe.LevelOf(line)
		list = append(list, shownLog{Message: clip(line), Bad: level == "error" || level == "fatal"})
	}
	return list
}

// chartOf draws what Prometheus answered. It is nil if that cannot be read.
func chartOf(query, text string) *metricsBox {
	var list []json.RawMessage
	if json.Unmarshal([]byte(text), &list) != nil {
		return nil
	}
	box := &metricsBox{Query: query}
	var m promql.Matrix
	low, high := int64(math.MaxInt64), int64(0)
	for _, one := range list {
		var pair [2]json.RawMessage
		var set map[string]string
		var points [][2]any
		if json.Unmarshal(one, &pair) != nil || json.Unmarshal(pair[0], &set) != nil ||
			json.Unmarshal(pair[1], &points) != nil {
			return nil
		}
		s := promql.Series{Metric: labels.FromMap(set)}
		for _, p := range points {
			seconds, _ := p[0].(float64)
			text, _ := p[1].(string)
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || seconds <= 0 || seconds > 1e11 {
				continue
			}
			at := int64(1000 * seconds)
			low, high = min(low, at), max(high, at)
			s.Floats = append(s.Floats, promql.FPoint{T: at, F: v})
		}
		m = append(m, s)
	}
	if high > 0 {
		to := time.UnixMilli(high)
		box.draw(m, time.UnixMilli(low), to, to, max(pause, to.Sub(time.UnixMilli(low))/40))
	}
	return box
}

// fallOf draws the trace that Jaeger answered with.
func fallOf(service, text string) template.HTML {
	var found struct {
		Spans [][]any `json:"spans"`
	}
	if json.Unmarshal([]byte(text), &found) != nil {
		return ""
	}
	t := &shownTrace{Name: visible(service)}
	for _, f := range found.Spans {
		if len(f) != 7 {
			continue
		}
		word := func(i int) string { s, _ := f[i].(string); return s }
		number := func(i int) float64 { n, _ := f[i].(float64); return min(max(n, 0), 1e16) }
		failed, _ := f[6].(bool)
		t.spans = append(t.spans, dataset.Span{
			ID: word(0), Parent: word(1), Service: word(2), Operation: word(3), Start: time.UnixMicro(int64(number(4))),
			Duration: time.Duration(min(number(5), 1e12)) * time.Microsecond, Failed: failed,
		})
	}
	if len(t.spans) == 0 {
		return ""
	}
	return waterfall(t).html()
}
