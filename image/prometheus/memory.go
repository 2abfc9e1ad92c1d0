package prometheus

import (
	"fmt"
	"hash/fnv"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// defaultInterval is how often a target was scraped that is not there any more.
const defaultInterval = 5 * time.Second

// memory is the past of all series. Nothing of it is stored: a sample is a function of its time.
type memory struct {
	past   *past.Past
	origin time.Time             // since when there are counters that are of no pod
	begin  int64                 // ms; before it, samples were deleted
	cut    int64                 // ms; from then on, samples are those of the database
	series map[string][]*witness // by name
	derive *derivation
	shelf  *shelf
	heads  float64            // how many series the database had
	claims map[string]float64 // how many bytes of volumes were used, by claim
}

// remembered is a series of the past.
type remembered struct {
	labels   labels.Labels
	from, to int64 // ms; the first sample is not before, the last one not after
	ends     bool  // there is nothing after to
	rhythm   rhythm
	seed     uint64 // what is drawn of it
	value    func(t time.Time) float64
}

// podOrigin is what the series tell of a pod.
type podOrigin struct {
	started    time.Time
	process    time.Time // the last of its containers
	last       string    // its name
	containers map[string]time.Time
	limits     map[string]float64 // of the memory of its containers
	address    string
}

// newMemory continues what was found when targets were scraped at the cut. Env is that of the program itself.
func newMemory(p *past.Past, env *kit.Env, cut time.Time, found map[string]sighting,
	rhythms map[targetKey]rhythm,
) *memory {
	m := &memory{
		past: p, origin: env.Started, begin: millis(cut.Add(-past.Window)), cut: millis(cut),
		series: map[string][]*witness{}, claims: map[string]float64{},
	}
	pods := origins(found)
	self := "/"
	for name := range pods {
		if strings.HasSuffix(name, "/"+env.Hostname) {
			self = name
		}
	}
	gone := map[string][]past.Gone{}
	for _, g := range p.Gone {
		key := g.Namespace + "/" + g.Successor
		if gone[key] == nil {
			gone[key] = p.GoneBefore(g.Namespace, g.Successor)
		}
	}
	for _, s := range found {
		switch claim := claimOf(s.labels); s.labels.Get(model.MetricNameLabel) {
		case "prometheus_tsdb_head_series":
			m.heads = s.value
		case "kubelet_volume_stats_used_bytes":
			m.claims[claim] = s.value
		}
	}
	for _, s := range found {
		key := keyOf(s.labels)
		name := podOf(s.labels)
		x := pods[name]
		started := x.started
		if at, ok := p.Sets[s.labels.Get("namespace")+"/"+s.labels.Get("replicaset")]; ok {
			started = at
		}
		w := &witness{memory: m, sighting: s, started: started, began: started}
		w.name = s.labels.Get(model.MetricNameLabel)
		if !strings.HasPrefix(w.name, "container_network_") && x.process.After(started) {
			w.began, w.container = x.process, x.last
		}
		if c := s.labels.Get("container"); c != "" {
			if w.container = c; x.containers[c].After(started) {
				w.began = x.containers[c]
			}
		}
		w.who, w.limit = s.labels.Get("namespace")+"/"+w.container, x.limits[w.container]
		if strings.HasPrefix(s.labels.Get(model.InstanceLabel), "localhost:") && pods[self] != nil {
			w.who = strings.TrimSuffix(self, env.Hostname) + pods[self].last
		}
		w.le, _ = strconv.ParseFloat(s.labels.Get(model.BucketLabel), 64)
		w.rhythm = rhythms[key]
		if !w.isLastState() {
			w.gone, w.address = gone[name], x.address
		}
		m.series[w.name] = append(m.series[w.name], w)
	}
	return m
}

// span is when a series of the past was there, in ms.
type span struct {
	from, to int64
	gone     *past.Gone // the pod it was of; nil for the series that there is
}

// spans are when there were series like this one: of its pod, and of those that were in its place before.
func (w *witness) spans() (list []span) {
	began := w.started
	if w.isLastState() {
		began = w.began // Nothing had ended before.
	}
	s := span{from: w.begin, to: w.cut}
	if !began.IsZero() {
		s.from = max(s.from, millis(began))
	}
	list = append(list, s)
	for i, g := range w.gone {
		list = append(list, span{max(w.begin, millis(g.From)), millis(g.To) - 1, &w.gone[i]})
	}
	return slices.DeleteFunc(list, func(s span) bool { return s.from > s.to })
}

// remember makes the series of a span.
func (w *witness) remember(s span) *remembered {
	if s.gone == nil {
		return w.present(s)
	}
	return w.predecessor(*s.gone, s)
}

// podOf names the pod that a series is about.
func podOf(l labels.Labels) string {
	name := l.Get("pod")
	if name == "" {
		name = l.Get("targetref_name")
	}
	return l.Get("namespace") + "/" + name
}

// origins are the pods, as the series tell.
func origins(found map[string]sighting) map[string]*podOrigin {
	pods := map[string]*podOrigin{}
	for _, s := range found {
		pod, at := pods[podOf(s.labels)], time.UnixMilli(int64(s.value*1000))
		if pod == nil {
			pod = &podOrigin{containers: map[string]time.Time{}, limits: map[string]float64{}}
			pods[podOf(s.labels)] = pod
		}
		container := s.labels.Get("container")
		switch s.labels.Get(model.MetricNameLabel) {
		case "kube_pod_start_time":
			pod.started = at
		case "process_start_time_seconds":
			if at.After(pod.process) {
				pod.process = at
			}
		case "container_start_time_seconds":
			pod.containers[container] = at
			if !at.Before(pod.process) {
				pod.process, pod.last = at, container
			}
		case "container_spec_memory_limit_bytes":
			pod.limits[container] = s.value
		case "kube_pod_info":
			pod.address = s.labels.Get("pod_ip")
		}
	}
	return pods
}

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

// digits are those of a drawn number, as many as an ID has.
func digits(parts ...string) (s string) {
	for i := range 4 {
		s += fmt.Sprintf("%016x", hash(append(parts, strconv.Itoa(i))...))
	}
	return s
}

// uid is a drawn UID.
func uid(parts ...string) string {
	s := digits(parts...)
	return s[:8] + "-" + s[8:12] + "-4" + s[13:16] + "-a" + s[17:20] + "-" + s[20:32]
}

func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p + "\x00")) // It never fails.
	}
	return h.Sum64()
}
