package prometheus

import (
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/aiopslab/aiopslab/kit/past"
)

const (
	// syncEvery is how often something changes in what is scraped, beatEvery how often a node says that it is there.
	syncEvery, beatEvery = 97 * time.Second, 5 * time.Minute
	// evaluationTook is how long a rule takes to be evaluated, and slowest how long anything takes at most.
	evaluationTook, slowest = 400 * time.Microsecond, 20 * time.Millisecond
)

// career is what the program has done since its container was started. Most of it it does by the clock.
type career struct {
	up      float64 // seconds
	rounds  float64 // evaluations of a group of rules
	rules   map[string]float64
	all     float64 // rules
	targets float64
	every   float64 // seconds between scrapes of a target
	samples float64
}

func (s *server) career(up time.Duration) *career {
	c := &career{
		up: up.Seconds(), rounds: up.Seconds() / time.Duration(s.interval()).Seconds(), rules: map[string]float64{},
		every: time.Duration(s.shown().GlobalConfig.ScrapeInterval).Seconds(),
	}
	for _, g := range s.rules.RuleGroups() {
		n := float64(len(g.Rules()))
		c.rules[g.File()+";"+g.Name()] = n
		c.all += n
	}
	for _, list := range s.scraping.TargetsActive() {
		c.targets += float64(len(list))
	}
	c.samples = float64(s.db.Head().NumSeries()) * c.up / c.every
	return c
}

// counted is what a metric has counted.
func (c *career) counted(name string, m *dto.Metric) (past.Lived, bool) {
	sum := func(n float64) (past.Lived, bool) { return past.Lived{Sum: n}, true }
	switch name {
	case "prometheus_rule_group_iterations_total":
		return sum(c.rounds)
	case "prometheus_rule_evaluations_total":
		return sum(c.rounds * c.rules[label(m, "rule_group")])
	case "prometheus_rule_evaluation_duration_seconds", "prometheus_rule_evaluation_duration_histogram_seconds":
		return took(m, c.rounds*c.all)
	case "prometheus_rule_group_duration_seconds", "prometheus_rule_group_duration_histogram_seconds":
		return took(m, c.rounds*float64(len(c.rules)))
	case "prometheus_engine_query_duration_seconds", "prometheus_engine_query_duration_histogram_seconds":
		if slice := label(m, "slice"); slice == "inner_eval" || slice == "prepare_time" {
			return took(m, c.rounds*c.all)
		}
	case "prometheus_target_interval_length_seconds", "prometheus_target_interval_length_histogram_seconds":
		return past.Lived{Samples: c.targets * c.up / c.every, Sum: c.targets * c.up}, true
	case "prometheus_target_sync_length_seconds", "prometheus_target_sync_length_histogram_seconds":
		return took(m, c.up/syncEvery.Seconds())
	case "prometheus_target_scrape_pool_sync_total", "prometheus_sd_updates_total",
		"prometheus_sd_received_updates_total":
		return sum(c.up / syncEvery.Seconds())
	case "prometheus_sd_kubernetes_events_total":
		if label(m, "event") == "update" {
			return sum(c.targets * c.up / beatEvery.Seconds())
		}
	case "prometheus_engine_query_samples_total", "prometheus_engine_query_samples_read_total":
		return sum(c.samples)
	case "prometheus_tsdb_head_samples_appended_total":
		if label(m, "type") == "float" {
			return sum(c.samples)
		}
	case "prometheus_tsdb_head_appenders_created_total":
		return sum(c.targets*c.up/c.every + c.rounds*c.all)
	}
	return past.Lived{}, false
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// took is how long so many took: as long as those that were counted, if there were any.
func took(m *dto.Metric, n float64) (past.Lived, bool) {
	mean := evaluationTook.Seconds()
	if h := m.GetHistogram(); h.GetSampleCount() > 0 {
		mean = h.GetSampleSum() / float64(h.GetSampleCount())
	} else if s := m.GetSummary(); s.GetSampleCount() > 0 {
		mean = s.GetSampleSum() / float64(s.GetSampleCount())
	}
	return past.Lived{Samples: n, Sum: n * min(mean, slowest.Seconds())}, true
}
