package prometheus

import (
	"fmt"
	"hash/fnv"
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
