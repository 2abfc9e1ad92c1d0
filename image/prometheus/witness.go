package prometheus

import (
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/aiopslab/aiopslab/kit/past"
)

// witness is what there is to make a past of: what a series is now, and since when.
type witness struct {
	*memory
	sighting
	name    string
	le      float64
	started time.Time // zero is long ago
	began   time.Time // the process, which may have been restarted since

	container string
	who       string  // the container, in its namespace
	limit     float64 // of its memory, in bytes; 0 is none

	rhythm  rhythm
	gone    []past.Gone // the pods that were in the place of its pod before
	address string      // of its pod
}

// present is the past of a series that there is.
func (w *witness) present(s span) *remembered {
	x := &remembered{labels: w.labels, from: s.from, to: s.to}
	r := w.rhythm
	x.rhythm, x.seed = r, hash(w.labels.Get(model.JobLabel), w.labels.Get(model.InstanceLabel))^w.past.Seed
	if r.every == 0 {
		x.rhythm.every = defaultInterval.Milliseconds()
	}
	if r.at == 0 {
		x.rhythm.at = w.cut - int64(x.seed%uint64(x.rhythm.every))
	}
	x.value = w.history(w.started, w.sighting.value)
	return x
}

// predecessor is the past of a series of a pod that another one has taken the place of.
func (w *witness) predecessor(g past.Gone, s span) *remembered {
	other := w.present(s)
	x := &remembered{labels: w.of(g, w.address), from: s.from, to: s.to, ends: true, rhythm: other.rhythm}
	x.seed = other.seed ^ hash(g.Pod)
	if w.labels.Get("instance") != x.labels.Get("instance") { // It was a target of its own.
		x.rhythm.at += int64(x.seed % uint64(x.rhythm.every))
	}
	x.value = w.history(g.From, w.sighting.value)
	switch {
	case isCounter(w.name):
		rate, began := w.rate(), g.From
		x.value = func(t time.Time) float64 { return w.round(rate * w.past.Counted(w.name, w.le, began, t)) }
	case w.name == restartsMetric:
		x.value = constant(0)
	case isProcessOrigin(w.name):
		x.value = constant(w.first(g.From))
	case isOrigin(w.name):
		by := g.From.Sub(w.started).Seconds()
		x.value = constant(w.sighting.value + by)
	}
	return x
}

// of returns the labels of the series that a pod had.
func (w *witness) of(g past.Gone, address string) labels.Labels {
	b := labels.NewBuilder(w.labels)
	w.labels.Range(func(l labels.Label) {
		host, port, err := net.SplitHostPort(l.Value)
		switch {
		case l.Value == g.Successor:
			b.Set(l.Name, g.Pod)
		case l.Value == g.Heir:
			b.Set(l.Name, g.Owner)
		case address != "" && l.Value == address:
			b.Set(l.Name, earlier(address, g.Pod))
		case address != "" && err == nil && host == address:
			b.Set(l.Name, net.JoinHostPort(earlier(address, g.Pod), port))
		case l.Name == "uid":
			b.Set(l.Name, uid(l.Value, g.Pod))
		case l.Name == "container_id":
			b.Set(l.Name, "containerd://"+digits(l.Value, g.Pod))
		}
	})
	return b.Labels()
}

// earlier is an address that a pod had whose place another one has taken.
func earlier(address, pod string) string {
	i := strings.LastIndexByte(address, '.')
	if i < 0 {
		return address
	}
	return address[:i+1] + strconv.Itoa(int(100+hash(pod)%150))
}

// history is what a series was at any time. What there is now was so all the time, but for counters.
func (w *witness) history(started time.Time, now float64) func(time.Time) float64 {
	switch {
	case isCounter(w.name) && now != 0 && figures[w.name] == nil:
		return w.counter()
	case w.name == "scrape_duration_seconds":
		seed := hash(w.labels.Get(model.InstanceLabel), w.name) ^ w.past.Seed
		return func(t time.Time) float64 {
			return now * math.Exp(1.2*past.Uniform(seed, uint64(t.UnixMilli()))-0.6)
		}
	case figures[w.name] != nil:
		return func(t time.Time) float64 { return figures[w.name](w.shelf, millis(t), w.heads) }
	case w.name == "scrape_series_added":
		return constant(0) // All were new when they were looked at.
	case isMemory(w.name):
		return w.memoryUsed(started)
	case w.restarted() && isProcessOrigin(w.name):
		return w.changed(w.first(started), now)
	case w.restarted() && w.name == restartsMetric && now > 0:
		return w.changed(now-1, now)
	case w.labels.Get(model.QuantileLabel) != "":
		return w.wavering(2e-4)
	case w.name == "kubelet_volume_stats_used_bytes":
		return func(t time.Time) float64 { return now - w.written(t) }
	case w.name == "kubelet_volume_stats_available_bytes":
		return func(t time.Time) float64 { return now + w.written(t) }
	case strings.HasPrefix(w.name, "kube_replicaset_") && strings.HasSuffix(w.name, "replicas") && now == 0:
		return w.replicas()
	case w.name == "kube_deployment_metadata_generation", w.name == "kube_deployment_status_observed_generation":
		return w.generation(now)
	}
	return constant(now)
}

// counter goes back from what a series has counted.
func (w *witness) counter() func(time.Time) float64 {
	rate, at := w.rate(), time.UnixMilli(w.at)
	seed := hash(w.group()) ^ w.past.Seed
	return func(t time.Time) float64 {
		if t.Before(w.began) {
			return w.round(rate * w.past.Counted(w.name, w.le, w.started, t))
		}
		ago := w.past.Join.Sub(t)
		// Who counts is not as even as the load. It is never so uneven that a counter goes back.
		uneven := 4*past.Noise(seed, ago, time.Minute) + 0.8*past.Noise(seed+1, ago, 15*time.Second)
		uneven *= max(0, min(1, ago.Seconds()/120))
		return w.round(w.value - rate*(w.past.Counted(w.name, w.le, t, at)+uneven))
	}
}

// round makes what was counted a whole number if it is one now.
func (w *witness) round(x float64) float64 {
	if w.value == math.Trunc(w.value) {
		x = math.Floor(x)
	}
	return max(0, x)
}

// rate is how much a counter counts in a second at the join.
func (w *witness) rate() float64 {
	began := w.began
	if began.IsZero() {
		began = w.origin
	}
	if x := w.past.Counted(w.name, w.le, began, time.UnixMilli(w.at)); x > 0 {
		return w.value / x
	}
	return 0
}

// group names what is counted together: requests, and how long they took; bytes, and packets.
func (w *witness) group() string {
	if strings.Contains(w.name, "_cpu_") {
		return "cpu " + podOf(w.labels)
	}
	var b strings.Builder
	w.labels.Range(func(l labels.Label) {
		switch l.Name {
		case model.MetricNameLabel, model.BucketLabel, "code", "grpc_code":
		default:
			b.WriteString(l.Name + "=" + l.Value + ",")
		}
	})
	return b.String()
}

// replicas is how many pods a ReplicaSet had that has none any more.
func (w *witness) replicas() func(time.Time) float64 {
	var had []past.Gone
	for _, g := range w.past.Gone {
		if g.Namespace == w.labels.Get("namespace") && g.Owner == w.labels.Get("replicaset") {
			had = append(had, g)
		}
	}
	return func(t time.Time) (n float64) {
		for _, g := range had {
			if !t.Before(g.From) && t.Before(g.To) {
				n++
			}
		}
		return n
	}
}

// generation is how often a Deployment had been changed: it has a ReplicaSet of each release.
func (w *witness) generation(now float64) func(time.Time) float64 {
	var made []time.Time
	for name, at := range w.past.Sets {
		i := strings.LastIndexByte(name, '-')
		if i > 0 && name[:i] == w.labels.Get("namespace")+"/"+w.labels.Get("deployment") {
			made = append(made, at)
		}
	}
	return func(t time.Time) float64 {
		n := now
		for _, at := range made {
			if t.Before(at) {
				n--
			}
		}
		return max(n, 1)
	}
}

func constant(x float64) func(time.Time) float64 { return func(time.Time) float64 { return x } }

// isCounter reports whether a series counts as time goes by. What kube-state-metrics has counted, restarts,
// it reads from objects.
func isCounter(name string) bool {
	if strings.HasPrefix(name, "kube_") {
		return false
	}
	for _, s := range []string{"_total", "_count", "_sum", "_bucket"} {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}

// isOrigin reports whether a series tells when something about a pod began.
func isOrigin(name string) bool {
	return strings.HasSuffix(name, "_created") || strings.HasSuffix(name, "_start_time") ||
		strings.HasSuffix(name, "_start_time_seconds") || strings.HasSuffix(name, "_time") ||
		strings.HasSuffix(name, "_state_started")
}
