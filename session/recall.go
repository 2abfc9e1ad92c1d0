package session

import (
	"context"
	"fmt"
	"time"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/kit/past"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/workload"
)

const (
	// warming is how long an application that was just started may take to serve its users as it usually does.
	warming = minCovered / 2
	// minUsual is how long there must have been the usual load before it is continued into the past.
	minUsual = time.Second
	// maxUnusual is how often that time may begin anew because users were not served. Some applications never serve
	// all of them.
	maxUnusual = 3
)

// usual is since when an application has had its usual load, and what had been by then.
type usual struct {
	since            time.Time
	requests, failed int64
}

// warm notes that the application has its usual load, once that has gone well for a moment. If users are not
// served, the moment begins anew.
func (s *Stage) warm(ctx context.Context) error {
	w, err := s.whole(ctx)
	if err != nil {
		return err
	}
	if s.usual.since.IsZero() && w.Covered < warming || !s.usual.since.IsZero() && w.Total.Failed == s.usual.failed {
		return nil
	}
	return s.mark(ctx)
}

// mark says that from now on there is the usual load.
func (s *Stage) mark(ctx context.Context) error {
	h, ok := s.cloud.(cloud.Historian)
	if !ok {
		return nil
	}
	w, err := s.whole(ctx)
	if err != nil {
		return err
	}
	s.usual = usual{time.Now(), w.Total.Requests, w.Total.Failed}
	if err := h.Mark(ctx); err != nil {
		return fmt.Errorf("note what there was before the load: %w", err)
	}
	return nil
}

// recall has the telemetry of the application, which is well and under load, go on into the past.
func (s *Stage) recall(ctx context.Context, l *problem.Load, seed uint64) error {
	h, ok := s.cloud.(cloud.Historian)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, resetTimeout)
	defer cancel()
	if err := s.awaitUsual(ctx); err != nil {
		return err
	}
	// Chance has sent a few requests more, or fewer: what counts is how many there were.
	w, err := s.whole(ctx)
	if err != nil {
		return err
	}
	now, since, rate := time.Now(), s.usual.since, usualRate(l, w)
	if n := w.Total.Requests - s.usual.requests; rate > 0 && n > 0 {
		since = now.Add(-time.Duration(float64(n) / rate * float64(time.Second)))
	}
	p := past.New(seed, since, now, s.cast)
	if w.Covered > now.Sub(since) {
		p.Began = now.Add(-w.Covered)
	}
	if err := h.Recall(ctx, p); err != nil {
		return fmt.Errorf("give the telemetry a past: %w", err)
	}
	logs.Or(s.log).Debug("the telemetry has a past", "took", time.Since(now))
	return nil
}

// usualRate is how many requests a second there are on average under a load that has not begun to change; 0 if that is
// not known. Users who wait for answers send as many as they get.
func usualRate(l *problem.Load, whole workload.Window) float64 {
	u := l.Users
	if u == nil {
		_, high := l.Bounds()
		return high
	}
	users := u.Count
	if u.Spawn > 0 {
		users = min(max(u.From, 1), u.Count)
	}
	if round := (u.Think.Min+u.Think.Max)/2 + whole.Total.Mean; round > 0 {
		return float64(users) / round.Seconds()
	}
	return 0
}

// awaitUsual waits until there has been the usual load for a while. What failed in it, because something has only just
// been started, would fail in all of the past.
func (s *Stage) awaitUsual(ctx context.Context) error {
	for tries := 0; ; tries++ {
		select {
		case <-time.After(time.Until(s.usual.since.Add(minUsual))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if w, err := s.whole(ctx); err != nil || tries == maxUnusual || w.Total.Failed == s.usual.failed {
			return err
		}
		if err := s.mark(ctx); err != nil {
			return err
		}
	}
}
