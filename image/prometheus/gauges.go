package prometheus

import (
	"math"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/aiopslab/aiopslab/kit/past"
)

// changed is a series that had another value before its container was restarted.
func (w *witness) changed(before, now float64) func(time.Time) float64 {
	return func(t time.Time) float64 {
		if t.Before(w.began) {
			return before
		}
		return now
	}
}

// restarted reports whether the container was started again after its pod was.
func (w *witness) restarted() bool {
	return !w.started.IsZero() && w.began.Sub(w.started) > time.Minute
}

// first is when the container of a pod that was started at a time was started first, in seconds since 1970.
func (w *witness) first(started time.Time) float64 {
	return float64(millis(started.Add(min(w.began.Sub(w.started), time.Second)))) / 1000
}

// restartsMetric counts how often a container was restarted.
const restartsMetric = "kube_pod_container_status_restarts_total"

// isLastState reports whether a series tells how a container ended that was started again.
func (w *witness) isLastState() bool {
	return strings.HasPrefix(w.name, "kube_pod_container_status_last_terminated_")
}

// wavering is a value that is never quite the same.
func (w *witness) wavering(part float64) func(time.Time) float64 {
	seed := hash(w.labels.String()) ^ w.past.Seed
	return func(t time.Time) float64 {
		ago := w.past.Join.Sub(t)
		return w.value * (1 + part*past.Noise(seed, ago, time.Minute)*max(0, min(1, ago.Seconds()/60)))
	}
}

// claimOf names the claim that a series is about.
func claimOf(l labels.Labels) string {
	return l.Get("namespace") + "/" + l.Get("persistentvolumeclaim")
}

// filled is how long it took until a volume had what it has now.
const filled = 40 * 24 * time.Hour

// written is how many bytes were written to a volume since a time and are there still.
func (w *witness) written(t time.Time) float64 {
	part := time.UnixMilli(w.at).Sub(t).Seconds() / filled.Seconds()
	return past.Pages(w.claims[claimOf(w.labels)] * max(0, min(1, part)))
}

// climb is how long it took until a container that was killed for its memory had all that it may have.
const climb = 25 * time.Minute

// memoryUsed is the memory of a process, which was started at a time and may have been restarted since, for its memory.
func (w *witness) memoryUsed(started time.Time) func(time.Time) float64 {
	needed := w.value / past.Swell(w.who, time.UnixMilli(w.at).Sub(w.began))
	return func(t time.Time) float64 {
		born := w.began
		if t.Before(born) {
			born = started
		}
		x := needed * past.Swell(w.who, t.Sub(born))
		left := w.began.Sub(t)
		if left > 0 && left < climb && w.restarted() && started.Equal(w.started) && w.limit > x {
			x += (w.limit - x) * math.Pow(1-left.Seconds()/climb.Seconds(), 2)
		}
		return past.Pages(x)
	}
}

// isMemory reports whether a series is the memory of a process.
func isMemory(name string) bool {
	switch name {
	case "container_memory_usage_bytes", "container_memory_working_set_bytes", "container_memory_rss",
		"process_resident_memory_bytes":
		return true
	}
	return false
}

// isProcessOrigin reports whether a series tells when the process of a container was started.
func isProcessOrigin(name string) bool {
	switch name {
	case "container_start_time_seconds", "process_start_time_seconds", "kube_pod_container_state_started":
		return true
	}
	return false
}
