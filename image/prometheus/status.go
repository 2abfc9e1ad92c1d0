package prometheus

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb/index"
)

// targetJSON is a target that is scraped.
type targetJSON struct {
	DiscoveredLabels   labels.Labels       `json:"discoveredLabels"`
	Labels             labels.Labels       `json:"labels"`
	ScrapePool         string              `json:"scrapePool"`
	ScrapeURL          string              `json:"scrapeUrl"`
	GlobalURL          string              `json:"globalUrl"`
	LastError          string              `json:"lastError"`
	LastScrape         time.Time           `json:"lastScrape"`
	LastScrapeDuration float64             `json:"lastScrapeDuration"`
	Health             scrape.TargetHealth `json:"health"`
	ScrapeInterval     string              `json:"scrapeInterval"`
	ScrapeTimeout      string              `json:"scrapeTimeout"`
}

// droppedJSON is a target that relabelling dropped.
type droppedJSON struct {
	DiscoveredLabels labels.Labels `json:"discoveredLabels"`
	ScrapePool       string        `json:"scrapePool"`
}

type targetsJSON struct {
	ActiveTargets       []targetJSON   `json:"activeTargets"`
	DroppedTargets      []droppedJSON  `json:"droppedTargets"`
	DroppedTargetCounts map[string]int `json:"droppedTargetCounts"`
}

func (s *server) serveTargets(r *http.Request) (*answer, error) {
	only, state := r.Form.Get("scrapePool"), strings.ToLower(r.Form.Get("state"))
	res := targetsJSON{ActiveTargets: []targetJSON{}, DroppedTargets: []droppedJSON{}}
	each := func(pools map[string][]*scrape.Target, f func(pool string, t *scrape.Target)) {
		for _, pool := range slices.Sorted(maps.Keys(pools)) {
			for _, t := range pools[pool] {
				if only == "" || only == pool {
					f(pool, t)
				}
			}
		}
	}
	b := labels.NewBuilder(labels.EmptyLabels())
	if state != "dropped" {
		each(s.scraping.TargetsActive(), func(pool string, t *scrape.Target) {
			x := targetJSON{
				DiscoveredLabels: t.DiscoveredLabels(b), Labels: t.Labels(b), ScrapePool: pool,
				ScrapeURL: t.URL().String(), GlobalURL: s.global(t.URL()),
				LastScrape: t.LastScrape(), LastScrapeDuration: t.LastScrapeDuration().Seconds(), Health: t.Health(),
				ScrapeInterval: t.GetValue(model.ScrapeIntervalLabel),
				ScrapeTimeout:  t.GetValue(model.ScrapeTimeoutLabel),
			}
			if err := t.LastError(); err != nil {
				x.LastError = err.Error()
			}
			res.ActiveTargets = append(res.ActiveTargets, x)
		})
	}
	if state != "active" {
		res.DroppedTargetCounts = s.scraping.TargetsDroppedCounts()
		each(s.scraping.TargetsDropped(), func(pool string, t *scrape.Target) {
			res.DroppedTargets = append(res.DroppedTargets, droppedJSON{t.DiscoveredLabels(b), pool})
		})
	}
	return &answer{data: res}, nil
}

// global is a target's URL as others reach it: one on the local host is on this one.
func (s *server) global(u *url.URL) string {
	if host := u.Hostname(); host != "localhost" && host != "127.0.0.1" && host != "::1" {
		return u.String()
	}
	g := *u
	g.Host = s.opts.external.Hostname()
	if port := u.Port(); port != "" {
		g.Host = net.JoinHostPort(g.Host, port)
	}
	return g.String()
}

func (s *server) serveScrapePools(*http.Request) (*answer, error) {
	pools := s.scraping.ScrapePools()
	slices.Sort(pools)
	return &answer{data: map[string][]string{"scrapePools": pools}}, nil
}

func (s *server) serveMetadata(r *http.Request) (*answer, error) {
	limits := map[string]int{"limit": -1, "limit_per_metric": -1}
	for name := range limits {
		if text := r.Form.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				return nil, badData(fmt.Errorf("%s must be a number", name))
			}
			limits[name] = n
		}
	}
	found := map[string][]metadata.Metadata{}
	for _, targets := range s.scraping.TargetsActive() {
		for _, t := range targets {
			for _, m := range t.ListMetadata() {
				if only := r.Form.Get("metric"); only != "" && only != m.MetricFamily {
					continue
				}
				x := metadata.Metadata{Type: m.Type, Help: m.Help, Unit: m.Unit}
				list, ok := found[m.MetricFamily]
				if !ok && limits["limit"] >= 0 && len(found) >= limits["limit"] ||
					limits["limit_per_metric"] > 0 && len(list) >= limits["limit_per_metric"] {
					continue
				}
				if !slices.Contains(list, x) {
					found[m.MetricFamily] = append(list, x)
				}
			}
		}
	}
	return &answer{data: found}, nil
}

type alertJSON struct {
	Labels          labels.Labels `json:"labels"`
	Annotations     labels.Labels `json:"annotations"`
	State           string        `json:"state"`
	ActiveAt        *time.Time    `json:"activeAt,omitempty"`
	KeepFiringSince *time.Time    `json:"keepFiringSince,omitempty"`
	Value           string        `json:"value"`
}

func alertsJSON(list []*rules.Alert) []alertJSON {
	out := []alertJSON{}
	for _, a := range list {
		x := alertJSON{
			Labels: a.Labels, Annotations: a.Annotations, State: a.State.String(), ActiveAt: &a.ActiveAt,
			Value: strconv.FormatFloat(a.Value, 'e', -1, 64),
		}
		if !a.KeepFiringSince.IsZero() {
			x.KeepFiringSince = &a.KeepFiringSince
		}
		out = append(out, x)
	}
	return out
}

func (s *server) serveAlerts(*http.Request) (*answer, error) {
	all := []alertJSON{}
	for _, r := range s.rules.AlertingRules() {
		all = append(all, alertsJSON(r.ActiveAlerts())...)
	}
	return &answer{data: map[string][]alertJSON{"alerts": all}}, nil
}

type groupJSON struct {
	Name           string    `json:"name"`
	File           string    `json:"file"`
	Rules          []any     `json:"rules"` // in their order, whichever type they are
	Interval       float64   `json:"interval"`
	Limit          int       `json:"limit"`
	EvaluationTime float64   `json:"evaluationTime"`
	LastEvaluation time.Time `json:"lastEvaluation"`
}

// ruleJSON is what both types of rules have.
type ruleJSON struct {
	Name           string           `json:"name"`
	Query          string           `json:"query"`
	Labels         labels.Labels    `json:"labels"`
	Health         rules.RuleHealth `json:"health"`
	LastError      string           `json:"lastError,omitempty"`
	EvaluationTime float64          `json:"evaluationTime"`
	LastEvaluation time.Time        `json:"lastEvaluation"`
	Type           string           `json:"type"` // "alerting" or "recording"
}

type alertingJSON struct {
	ruleJSON
	State         string        `json:"state"`
	Duration      float64       `json:"duration"`
	KeepFiringFor float64       `json:"keepFiringFor"`
	Annotations   labels.Labels `json:"annotations"`
	Alerts        []alertJSON   `json:"alerts"`
}

func (s *server) serveRules(r *http.Request) (*answer, error) {
	kind := strings.ToLower(r.Form.Get("type"))
	if kind != "" && kind != "alert" && kind != "record" {
		return nil, badParam("type", fmt.Errorf("not supported value %q", kind))
	}
	sel, err := s.selection(r)
	if err != nil {
		return nil, err
	}
	wanted := func(param, name string) bool {
		list := r.Form[param]
		return len(list) == 0 || slices.Contains(list, name)
	}
	groups := []groupJSON{}
	for _, g := range s.rules.RuleGroups() {
		if !wanted("rule_group[]", g.Name()) || !wanted("file[]", g.File()) {
			continue
		}
		x := groupJSON{
			Name: g.Name(), File: g.File(), Interval: g.Interval().Seconds(), Limit: g.Limit(),
			EvaluationTime: g.GetEvaluationTime().Seconds(), LastEvaluation: g.GetLastEvaluation(),
		}
		for _, rule := range g.Rules(sel.matchers...) {
			if j := ruleToJSON(rule, kind); j != nil && wanted("rule_name[]", rule.Name()) {
				x.Rules = append(x.Rules, j)
			}
		}
		if len(x.Rules) > 0 {
			groups = append(groups, x)
		}
	}
	return &answer{data: map[string][]groupJSON{"groups": groups}}, nil
}

// ruleToJSON presents a rule if it is of the kind that is asked for.
func ruleToJSON(rule rules.Rule, kind string) any {
	j := ruleJSON{
		Name: rule.Name(), Query: rule.Query().String(), Labels: rule.Labels(), Health: rule.Health(),
		Type: "recording", EvaluationTime: rule.GetEvaluationDuration().Seconds(),
		LastEvaluation: rule.GetEvaluationTimestamp(),
	}
	if err := rule.LastError(); err != nil {
		j.LastError = err.Error()
	}
	a, ok := rule.(*rules.AlertingRule)
	switch {
	case ok && kind != "record":
		j.Type = "alerting"
		return alertingJSON{
			j, a.State().String(), a.HoldDuration().Seconds(), a.KeepFiringFor().Seconds(),
			a.Annotations(), alertsJSON(a.ActiveAlerts()),
		}
	case !ok && kind != "alert":
		return j
	}
	return nil
}

func (s *server) statusConfig(*http.Request) (*answer, error) {
	return &answer{data: map[string]string{"yaml": s.shown().String()}}, nil
}

func (s *server) statusBuild(*http.Request) (*answer, error) {
	return &answer{data: map[string]string{
		"version": Version, "revision": "", "branch": "", "buildUser": "",
		"buildDate": "", "goVersion": runtime.Version(),
	}}, nil
}

func (s *server) statusRuntime(*http.Request) (*answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &answer{data: map[string]any{
		"startTime": s.env.Started, "CWD": s.env.Dir, "hostname": s.env.Hostname, "serverTime": time.Now(),
		"reloadConfigSuccess": s.loadedOK, "lastConfigTime": s.loadedAt, "corruptionCount": 0,
		"GOMAXPROCS": s.env.CPU.Info().Cores, "storageRetention": s.opts.retention.String(),
	}}, nil
}

func (s *server) statusTSDB(r *http.Request) (*answer, error) {
	limit, err := limitParam(r)
	if err != nil {
		return nil, err
	}
	if limit > 10_000 {
		return nil, badData(errors.New("limit must not exceed 10000"))
	}
	st := s.db.Head().Stats(model.MetricNameLabel, cmp.Or(limit, 10))
	type stat struct {
		Name  string `json:"name"`
		Value uint64 `json:"value"`
	}
	list := func(in []index.Stat) []stat {
		out := []stat{}
		for _, x := range in {
			out = append(out, stat{x.Name, x.Count})
		}
		return out
	}
	p := st.IndexPostingStats
	if m := s.data.past.Load(); m != nil {
		st.MinTime = m.shelf.headMin(millis(time.Now()))
	}
	head := s.gauges("prometheus_tsdb_head_series", "prometheus_tsdb_head_chunks")
	return &answer{data: map[string]any{
		"headStats": map[string]any{
			"numSeries": head[0], "chunkCount": head[1], "numLabelPairs": p.NumLabelPairs,
			"minTime": st.MinTime, "maxTime": st.MaxTime,
		},
		"seriesCountByMetricName":     list(p.CardinalityMetricsStats),
		"labelValueCountByLabelName":  list(p.CardinalityLabelStats),
		"memoryInBytesByLabelName":    list(p.LabelValueStats),
		"seriesCountByLabelValuePair": list(p.LabelValuePairsStats),
	}}, nil
}

// gauges are numbers that the program tells of itself, all at one time: series come while they are counted.
func (s *server) gauges(names ...string) []int64 {
	list := make([]int64, len(names))
	families, _ := s.Gather() // What could be gathered is enough.
	for _, f := range families {
		if i := slices.Index(names, f.GetName()); i >= 0 && len(f.Metric) == 1 {
			list[i] = int64(f.Metric[0].GetGauge().GetValue())
		}
	}
	return list
}
