package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"strings"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/report/dataset"
)

// moment is what there was at one time of a run.
type moment struct {
	At            float64
	Clock         string
	Phase         string
	Step          *step
	StepNumber    int
	Users         string // what they got
	Complaints    []string
	Faults        []string // that showed
	Writes        []shownWrite
	Graph         template.HTML
	Red           []fact
	Before, After string // links to the events before and after

	Kept    bool // there is telemetry
	NotKept string
	Until   string // when it ends, if the moment is later
	Logs    []shownLog
	Traces  []*shownTrace
	Fall    template.HTML
	Metrics *metricsBox
}

// telemetry fills in what a run has kept of logs, traces and metrics.
func (m *moment) telemetry(ctx context.Context, t *telemetry, p *runPage, q url.Values) {
	at := p.Begun.Add(durationOf(m.At))
	m.Kept = true
	if at.After(t.To) {
		m.Until, at = clock(t.To), t.To
	}
	m.Logs = t.logsAt(at)
	m.Traces = t.tracesAt(at)
	for i, one := range m.Traces {
		link := url.Values{"at": {fmt.Sprintf("%.2f", m.At)}, "trace": {one.ID}}
		one.Link = "?" + link.Encode()
		if one.ID == q.Get("trace") || i == 0 {
			m.Fall = waterfall(one).html()
		}
	}
	m.Metrics = t.ask(ctx, cmp.Or(q.Get("query"), defaultQuery), at)
}

// momentOf is what there was at a time.
func (s *Site) momentOf(ctx context.Context, p *runPage, at float64, q url.Values) *moment {
	m := &moment{At: at, Clock: clock(p.Begun.Add(durationOf(at)))}
	for _, ph := range p.Phases {
		if ph.At <= at {
			m.Phase = visible(ph.Name)
		}
	}
	if m.Step = p.stepAt(at); m.Step != nil {
		m.StepNumber = m.Step.Number
	}
	m.users(p)
	for _, w := range p.story.Writes {
		if w.At >= at-0.05 && w.At <= at+0.05 || m.Step != nil && w.At >= m.Step.Acting-0.01 && w.At <= m.Step.At+0.01 {
			m.Writes = append(m.Writes, shownWrite{w, p.href(w.At), objectDiff(w.Before, w.After)})
		}
	}
	red := redAt(p.story, at)
	for _, name := range sortedKeys(red) {
		m.Red = append(m.Red, fact{name, visible(red[name])})
	}
	if a := s.app(p.App); a != nil {
		m.Graph = drawGraph(a, red, nil)
	}
	m.neighbours(p)
	switch t, err := s.kept.of(p.File); {
	case err == nil:
		m.telemetry(ctx, t, p, q)
	case errors.Is(err, dataset.ErrNone):
		m.NotKept = "This run has kept no logs, metrics and traces. 'aiopslab run --keep-telemetry' keeps them."
	default:
		m.NotKept = "What this run has kept cannot be read: " + clip(err.Error())
	}
	return m
}

// app is the application of a name, or nil.
func (s *Site) app(name string) *app.App {
	if s.Library == nil || name == "" {
		return nil
	}
	for _, a := range s.Library.Apps {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// users says what users got at the last time that is known.
func (m *moment) users(p *runPage) {
	last := -1.0
	for _, u := range p.Samples {
		if u.At <= m.At+1 {
			last = u.At
			m.Users = fmt.Sprintf("%s of requests succeed, 95 %% of them within %s, %.1f a second", percent(u.Success),
				seconds(u.P95), u.Rate)
		}
	}
	for _, c := range p.Course {
		if c.At <= m.At+1 && c.At > last {
			last = c.At
			m.Users = "get " + percent(c.Served) + " of what they want"
			if c.Alerts > 0 {
				m.Users += "; alerts fire"
			}
		}
	}
	if last >= 0 && last < m.At-10 {
		m.Users += fmt.Sprintf("; that was at %s, and nothing is recorded since", tick(last))
	}
	for _, l := range p.Looks {
		if l.At <= m.At+1 {
			m.Complaints = l.Complaints
		}
	}
}

// neighbours are the events before and after the moment.
func (m *moment) neighbours(p *runPage) {
	for _, t := range times(p.story) {
		if t < m.At-0.01 {
			m.Before = p.href(t)
		}
		if t > m.At+0.01 && m.After == "" {
			m.After = p.href(t)
		}
	}
}

// times are when something happened, in order.
func times(s *story) (list []float64) {
	for _, f := range s.Faults {
		list = append(list, f.At)
	}
	for _, a := range s.Paged {
		list = append(list, a.At)
	}
	if s.onCall != nil {
		for _, x := range s.onCall.Stretches {
			list = append(list, x.From, s.ends(x))
		}
	}
	for i := range s.Steps {
		list = append(list, s.Steps[i].At)
	}
	for _, w := range s.Writes {
		list = append(list, w.At)
	}
	for i, l := range s.Looks {
		if i == 0 || (len(l.Complaints) == 0) != (len(s.Looks[i-1].Complaints) == 0) {
			list = append(list, l.At)
		}
	}
	return sorted(list)
}

// redAt are the services that were not well at a time, with why: by the last look at the system or, before there was
// one, by the faults that showed.
func redAt(s *story, at float64) map[string]string {
	red := map[string]string{}
	var last *look
	for i := range s.Looks {
		if s.Looks[i].At <= at+0.5 {
			last = &s.Looks[i]
		}
	}
	if last == nil {
		for _, f := range s.Faults {
			if f.At <= at+0.01 {
				red[f.Target] = cmp.Or(f.Symptom, f.Kind)
			}
		}
		for _, x := range s.openAt(at) {
			p, _ := s.onCall.planned(x.Number)
			for _, c := range p.Components {
				red[c] = cmp.Or(x.What, s.onCall.name(x.Number))
			}
		}
		return red
	}
	for _, name := range last.Unready {
		red[name] = "not all of its pods are ready"
	}
	for _, symptom := range last.Symptoms {
		for _, f := range s.Faults {
			if symptom == f.Symptom || mentions(symptom, f.Target) {
				red[f.Target] = symptom
			}
		}
	}
	return red
}

// mentions reports whether a text has a name as a word of its own.
func mentions(text, name string) bool {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		if strings.Trim(word, ".") == name {
			return true
		}
	}
	return false
}
