package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
)

// atOnce is how many queries are under way at once.
const atOnce = 4

// Stirring returns the alerts that are active, and those that would be if Prometheus evaluated its rules now: one
// line each, sorted. If there are none, nothing that has happened so far leads to an alert later.
func (o *Observer) Stirring(ctx context.Context) ([]string, error) {
	rules, err := o.prometheus.Rules(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	inline := inliner(rules)
	var mu sync.Mutex
	list := []string{}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			a, ok := r.(promv1.AlertingRule)
			if !ok {
				continue
			}
			g.Go(func() error {
				found, err := o.stirring(ctx, a, inline)
				mu.Lock()
				defer mu.Unlock()
				list = append(list, found...)
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// stirring are the alerts of one rule.
func (o *Observer) stirring(ctx context.Context, a promv1.AlertingRule, inline *strings.Replacer) ([]string, error) {
	var list []string
	for _, x := range a.Alerts {
		list = append(list, stir(a.Name, x.Labels))
	}
	v, _, err := o.prometheus.Query(ctx, inline.Replace(a.Query), time.Now())
	if err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", a.Name, err)
	}
	samples, _ := v.(model.Vector)
	for _, s := range samples {
		list = append(list, stir(a.Name, a.Labels.Merge(model.LabelSet(s.Metric))))
	}
	return list, nil
}

// inliner puts the queries of recording rules where their results are read: those are as old as the
// last evaluation. A range of results is left as it is.
func inliner(rules promv1.RulesResult) *strings.Replacer {
	var pairs []string
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r, ok := r.(promv1.RecordingRule); ok {
				pairs = append(pairs, r.Name+"[", r.Name+"[", r.Name, "("+r.Query+")")
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// stir names an alert by what it is about.
func stir(name string, labels model.LabelSet) string {
	labels = labels.Clone()
	for _, l := range []model.LabelName{model.AlertNameLabel, model.MetricNameLabel, "severity"} {
		delete(labels, l)
	}
	return name + labels.String()
}
