package session

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwaitQuiet: nobody has his turn before the alerts of the start are gone.
func TestAwaitQuiet(t *testing.T) {
	const start, own = `KubePodNotReady{pod="a"}`, `ServiceEndpointDown{service="outside"}`
	down := errors.New("connection refused")
	alertsUntil := func(end time.Duration, err error, list ...string) func(context.Context) ([]string, error) {
		begin := time.Now()
		return func(context.Context) ([]string, error) {
			if time.Since(begin) < end {
				return slices.Clone(list), err
			}
			return nil, nil
		}
	}
	for _, c := range []struct {
		name  string
		end   time.Duration // of the alerts
		err   error
		list  []string
		known map[string]bool
		want  time.Duration
		fails bool
		learn bool // that the alert is the application's own
	}{
		{name: "nothing", want: 0},
		{name: "an alert of the start", end: 7 * time.Second, list: []string{start}, want: 7 * time.Second},
		{name: "Prometheus starts", end: 2 * time.Second, err: down, want: 2 * time.Second},
		{name: "no Prometheus", end: time.Hour, err: down, want: quietTimeout, fails: true},
		{name: "an alert that stays", end: time.Hour, list: []string{own}, want: quietTimeout, learn: true},
		{name: "one that is known to stay", end: time.Hour, list: []string{own}, known: map[string]bool{own: true}, want: 0},
		{name: "one that is known and one of the start", end: 7 * time.Second, list: []string{start, own}, known: map[string]bool{own: true}, want: 7 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, known := time.Now(), map[string]bool{}
				var told []string
				for a := range c.known {
					known[a] = true
				}
				err := awaitQuiet(t.Context(), alertsUntil(c.end, c.err, c.list...), known, func(alert string) { told = append(told, alert) })
				if (err != nil) != c.fails || c.fails && !errors.Is(err, down) {
					t.Error(err)
				}
				if took := time.Since(begin); took != c.want {
					t.Errorf("it took %v, not %v", took, c.want)
				}
				if waits := c.want > 0 && c.err == nil; waits != (len(told) == 1) {
					t.Errorf("it told of %q", told)
				}
				if c.learn && !known[own] {
					t.Error("the next run will wait for it again")
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("interrupted")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		if err := awaitQuiet(ctx, alertsUntil(time.Hour, nil, start), nil, nil); !errors.Is(err, why) {
			t.Errorf("the end of the run was not heard: %v", err)
		}
	})
}
