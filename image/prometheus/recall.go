package prometheus

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/aiopslab/aiopslab/kit/past"
)

// lookIntervals are how often targets are scraped when it is found out what they have counted so far, which is also how
// long each may take to answer. On a busy machine that is long. A target that never answers has no past.
var lookIntervals = []time.Duration{250 * time.Millisecond, time.Second, 4 * time.Second}

const (
	// lookTries is for how many intervals it is tried.
	lookTries = 6
	// targetsPatience is how long it may take until all targets are known.
	targetsPatience, targetsInterval = 5 * time.Second, 10 * time.Millisecond
)

// recall continues all series into the past, from what their targets tell now. What was scraped before is
// not shown any more: it is of programs that did not yet know how old they are.
func (s *server) recall(ctx context.Context, p *past.Past) error {
	if err := s.awaitTargets(ctx); err != nil {
		return err
	}
	if err := s.exposed.Live(s.career(p.Join.Sub(s.env.Started)).counted); err != nil {
		return err
	}
	cut := time.Now()
	found, err := s.look(ctx)
	if err != nil {
		return fmt.Errorf("look at the targets: %w", err)
	}
	if err := s.before(ctx, cut, found); err != nil {
		return fmt.Errorf("read what was scraped meanwhile: %w", err)
	}
	rhythms, err := s.rhythms(ctx, cut)
	if err != nil {
		return fmt.Errorf("find out when targets are scraped: %w", err)
	}
	m := newMemory(p, s.env, cut, found, rhythms)
	m.derive, m.shelf = s.derivation(m), newShelf(m, s.opts, time.Duration(s.shown().GlobalConfig.ScrapeInterval))
	s.data.past.Store(m)
	return nil
}

// awaitTargets waits until all is known that can be scraped: what is not would have no past.
func (s *server) awaitTargets(ctx context.Context) error {
	tick := time.NewTicker(targetsInterval)
	defer tick.Stop()
	for end := time.Now().Add(targetsPatience); !s.knowsTargets() && time.Now().Before(end); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// knowsTargets reports whether all that the watches have seen was found, and all that was found is scraped or dropped.
func (s *server) knowsTargets() bool {
	s.mu.Lock()
	groups := s.groups
	s.mu.Unlock()
	sources := map[string]bool{}
	active, dropped := s.scraping.TargetsActive(), s.scraping.TargetsDropped()
	for job, list := range groups {
		filled := 0
		for _, g := range list {
			sources[g.Source] = true
			if len(g.Targets) > 0 {
				filled++
			}
		}
		if len(active[job])+len(dropped[job]) < filled { // Targets of one group may be one.
			return false
		}
	}
	return groups != nil && s.cluster.within(sources)
}

// relay passes groups of targets on, and keeps the last.
func (s *server) relay(ctx context.Context) <-chan map[string][]*targetgroup.Group {
	out := make(chan map[string][]*targetgroup.Group)
	go func() {
		for {
			select {
			case groups, ok := <-s.targets.SyncCh():
				if !ok {
					return
				}
				s.mu.Lock()
				s.groups = groups
				s.mu.Unlock()
				select {
				case out <- groups:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// rhythm is when a target is scraped: at a time, and as often.
type rhythm struct{ at, every int64 } // ms

// targetKey tells the series of one target from those of others.
type targetKey struct{ job, instance string }

func keyOf(l labels.Labels) targetKey {
	return targetKey{l.Get(model.JobLabel), l.Get(model.InstanceLabel)}
}

// rhythms are when the targets were scraped. What is scraped late has the time at which it was meant to be
// scraped, but for what was very late.
func (s *server) rhythms(ctx context.Context, cut time.Time) (map[targetKey]rhythm, error) {
	all := map[targetKey]rhythm{}
	b := labels.NewBuilder(labels.EmptyLabels())
	for _, targets := range s.scraping.TargetsActive() {
		for _, t := range targets {
			if every, err := model.ParseDuration(t.GetValue(model.ScrapeIntervalLabel)); err == nil {
				all[keyOf(t.Labels(b))] = rhythm{every: time.Duration(every).Milliseconds()}
			}
		}
	}
	q, err := s.db.Querier(millis(cut.Add(-time.Minute)), millis(cut))
	if err != nil {
		return nil, err
	}
	defer q.Close()
	set := q.Select(ctx, false, nil, labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, "up"))
	var samples chunkenc.Iterator
	for set.Next() {
		r, ok := all[keyOf(set.At().Labels())]
		if !ok {
			continue
		}
		samples = set.At().Iterator(samples)
		for samples.Next() == chunkenc.ValFloat {
			r.see(samples.AtT())
		}
		all[keyOf(set.At().Labels())] = r
	}
	return all, set.Err()
}

// see takes a scrape into account. Of several times in an interval the first is the one that was meant.
func (r *rhythm) see(t int64) {
	if r.at == 0 || (t-r.at)%r.every > r.every/2 {
		r.at = t
	}
}

// before has sightings be those of the usual scrapes if these came before them: what is made up must not be more than
// what is read next.
func (s *server) before(ctx context.Context, cut time.Time, found map[string]sighting) error {
	q, err := s.db.Querier(millis(cut), math.MaxInt64)
	if err != nil {
		return err
	}
	defer q.Close()
	set := q.Select(ctx, false, nil, labels.MustNewMatcher(labels.MatchRegexp, model.MetricNameLabel, ".+"))
	var samples chunkenc.Iterator
	for set.Next() {
		l := set.At().Labels()
		seen, ok := found[string(l.Bytes(nil))]
		samples = set.At().Iterator(samples)
		if !ok || samples.Next() != chunkenc.ValFloat {
			continue
		}
		if t, v := samples.At(); t < seen.at && !value.IsStaleNaN(v) {
			found[string(l.Bytes(nil))] = sighting{l, t, v}
		}
	}
	return set.Err()
}

// look scrapes every target once, at once.
func (s *server) look(ctx context.Context) (map[string]sighting, error) {
	seen := &sightings{all: map[string]sighting{}, changed: make(chan struct{}, 1)}
	wanted := 0
	for _, targets := range s.scraping.TargetsActive() {
		for _, t := range targets {
			if t.Health() != scrape.HealthBad { // Nobody waits for one that is down.
				wanted++
			}
		}
	}
	for _, interval := range lookIntervals {
		if err := s.lookEvery(ctx, interval, seen, wanted); err != nil {
			return nil, err
		}
		if seen.up() >= wanted {
			break
		}
	}
	return seen.get(), ctx.Err()
}

// lookEvery scrapes the targets until as many have answered as are wanted, or it was tried long enough.
func (s *server) lookEvery(ctx context.Context, interval time.Duration, seen *sightings, wanted int) error {
	cfg, err := load(s.env, s.opts.configFile, s.cluster, promslog.NewNopLogger())
	if err != nil {
		return err
	}
	for _, job := range cfg.used.ScrapeConfigs {
		job.ScrapeInterval, job.ScrapeTimeout = model.Duration(interval), model.Duration(interval)
	}
	m, err := scrape.NewManager(&scrape.Options{
		HTTPClientOptions: s.client, DiscoveryReloadInterval: model.Duration(interval),
		DiscoveryReloadOnStartup: true,
	}, promslog.NewNopLogger(), nil, seen, nil, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	if err := m.ApplyConfig(cfg.used); err != nil {
		return err
	}
	groups := make(chan map[string][]*targetgroup.Group, 1)
	s.mu.Lock()
	groups <- s.groups
	s.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { _ = m.Run(groups) })
	defer wg.Wait()
	defer m.Stop()
	ctx, cancel := context.WithTimeout(ctx, lookTries*interval)
	defer cancel()
	for seen.up() < wanted {
		select {
		case <-seen.changed:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// sighting is what a series was at a time.
type sighting struct {
	labels labels.Labels
	at     int64
	value  float64
}

// sightings takes what is scraped. Of each series it keeps the first value.
type sightings struct {
	mu      sync.Mutex
	all     map[string]sighting
	targets int
	changed chan struct{}
}

// up is how many targets have answered.
func (s *sightings) up() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.targets
}

func (s *sightings) get() map[string]sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// Appender implements storage.Appendable.
func (s *sightings) Appender(context.Context) storage.Appender { return &sighter{to: s} }

// sighter is one scrape.
type sighter struct {
	to   *sightings
	list []sighting
}

func (a *sighter) Append(_ storage.SeriesRef, l labels.Labels, t int64, v float64) (storage.SeriesRef, error) {
	if !value.IsStaleNaN(v) {
		a.list = append(a.list, sighting{l, t, v})
	}
	return 0, nil
}

func (a *sighter) Commit() error {
	answered := false
	for _, x := range a.list {
		if x.labels.Get(model.MetricNameLabel) == "up" {
			answered = x.value == 1
		}
	}
	if !answered {
		return nil
	}
	a.to.mu.Lock()
	for _, x := range a.list {
		key := string(x.labels.Bytes(nil))
		if _, ok := a.to.all[key]; !ok {
			a.to.all[key] = x
			if x.labels.Get(model.MetricNameLabel) == "up" {
				a.to.targets++
			}
		}
	}
	a.to.mu.Unlock()
	select {
	case a.to.changed <- struct{}{}:
	default:
	}
	return nil
}

func (a *sighter) Rollback() error                   { return nil }
func (a *sighter) SetOptions(*storage.AppendOptions) {}

func (a *sighter) AppendExemplar(storage.SeriesRef, labels.Labels, exemplar.Exemplar) (storage.SeriesRef, error) {
	return 0, nil
}

func (a *sighter) AppendHistogram(storage.SeriesRef, labels.Labels, int64, *histogram.Histogram,
	*histogram.FloatHistogram,
) (storage.SeriesRef, error) {
	return 0, nil
}

func (a *sighter) AppendHistogramSTZeroSample(storage.SeriesRef, labels.Labels, int64, int64, *histogram.Histogram,
	*histogram.FloatHistogram,
) (storage.SeriesRef, error) {
	return 0, nil
}

func (a *sighter) UpdateMetadata(storage.SeriesRef, labels.Labels, metadata.Metadata) (storage.SeriesRef, error) {
	return 0, nil
}

func (a *sighter) AppendSTZeroSample(storage.SeriesRef, labels.Labels, int64, int64) (storage.SeriesRef, error) {
	return 0, nil
}

// millis is a time as Prometheus has it.
func millis(t time.Time) int64 { return t.UnixMilli() }

// moment is a time in milliseconds. The name tells vet that Seek is not the one of io.Seeker.
type moment = int64

func timeOf(t int64) time.Time { return time.UnixMilli(t) }
