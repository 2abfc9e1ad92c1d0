package whisk

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// seconds are the buckets of durations.
var seconds = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// metrics are what a controller counts, by action; names are OpenWhisk's where it has one.
type metrics struct {
	activations, cold, errors, scaled, throttled *prometheus.CounterVec
	wait, init, duration                         *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help},
			append([]string{"action"}, labels...))
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: seconds},
			[]string{"action"})
	}
	m := &metrics{
		activations: counter("openwhisk_action_activations_total", "Activations."),
		cold:        counter("openwhisk_action_coldStarts_total", "Activations for which a pod was initialised."),
		errors:      counter("openwhisk_action_errors_total", "Activations that failed, by status.", "status"),
		scaled:      counter("openwhisk_action_scaled_total", "Changes of the number of pods.", "direction"),
		throttled:   counter("openwhisk_action_throttled_total", "Invocations that were turned away."),
		wait:        histogram("openwhisk_action_waitTime_seconds", "How long activations waited for a pod."),
		init:        histogram("openwhisk_action_initTime_seconds", "How long pods took to be initialised."),
		duration:    histogram("openwhisk_action_duration_seconds", "How long activations took, without waiting."),
	}
	r.MustRegister(m.activations, m.cold, m.errors, m.scaled, m.throttled, m.wait, m.init, m.duration)
	return m
}

// count counts an activation, and logs what was special about it.
func (c *controller) count(a *Activation, o outcome, waited time.Duration) {
	c.m.activations.WithLabelValues(a.Name).Inc()
	c.m.wait.WithLabelValues(a.Name).Observe(waited.Seconds())
	c.m.duration.WithLabelValues(a.Name).Observe(float64(a.Duration) / 1e3)
	if o.cold {
		c.m.cold.WithLabelValues(a.Name).Inc()
		c.m.init.WithLabelValues(a.Name).Observe(o.init.Seconds())
		c.s.Log.Info("Cold start", "action", a.Name, "activation", a.ID, "pod", o.pod,
			"wait", waited.Round(time.Millisecond), "init", o.init.Round(time.Millisecond))
	}
	if o.status == succeeded {
		return
	}
	c.m.errors.WithLabelValues(a.Name, statuses[o.status]).Inc()
	if o.status != applicationError { // Those are the action's to log.
		c.s.Log.Error("Activation failed", "action", a.Name, "activation", a.ID, "status", statuses[o.status],
			"result", string(o.result[:min(len(o.result), maxLine)]))
	}
}
