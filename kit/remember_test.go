package kit_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// TestRemembering holds that counters go on from the past that a program is told.
func TestRemembering(t *testing.T) {
	env := &kit.Env{Started: time.Now().Add(-2 * time.Hour)}
	told := map[kit.Telling]func(context.Context, *past.Past) error{}
	env.OnRecall(func(as kit.Telling, f func(context.Context, *past.Past) error) { told[as] = f })
	registry := prometheus.NewRegistry()
	g := env.Remembering(registry)
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "requests_total"})
	registry.MustRegister(c)
	c.Add(7)
	if err := told[kit.Beginning](t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	c.Add(20)
	join := time.Now()
	p := past.New(7, join.Add(-time.Second), join, past.Cast{})
	if err := told[kit.Source](t.Context(), p); err != nil {
		t.Fatal(err)
	}
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if n, want := families[0].Metric[0].Counter.GetValue(), 20*60*60.0; n < want {
		t.Errorf("%v requests in two hours, want more than %v", n, want)
	}
}
