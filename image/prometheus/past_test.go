package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// shopRate is how many requests a second the shop of the tests serves.
const shopRate = 40.0

const pastConfig = `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [/etc/prometheus/rules.yml]
scrape_configs:
- {job_name: prometheus, static_configs: [{targets: ['localhost:9090']}]}
- {job_name: shop, honor_labels: true, static_configs: [{targets: ['10.244.0.20:9464']}]}
`

const pastRules = `
groups:
- name: requests
  rules:
  - record: service:rate1m
    expr: sum by (service) (rate(http_requests_total[1m]))
  - record: service:p95
    expr: histogram_quantile(0.95, sum by (service, le) (rate(http_request_duration_seconds_bucket[1m])))
  - {alert: Slow, expr: 'service:p95 > 1', for: 30s, labels: {severity: warning}}
  - {alert: Busy, expr: 'service:rate1m > 4 * (quantile_over_time(0.5, service:rate1m[30m] offset 2m) > 1)', for: 1m}
  - {alert: Down, expr: 'absent(up{job="shop"})'}
`

// aged is a Prometheus that has been told its past, and what it scrapes: a pod of a shop that is five hours old
// and took the place of another.
type aged struct {
	*lab
	past    *past.Past
	started time.Time
}

func newAged(t *testing.T, seed uint64) *aged {
	a := &aged{lab: newLab(t)}
	now := time.Now()
	a.started = now.Add(-5 * time.Hour).Truncate(time.Second)
	var told atomic.Pointer[past.Past] // The shop counts from zero until it is told its past.
	a.serve("shop", "10.244.0.20", "9464", nil, func(w http.ResponseWriter, _ *http.Request) {
		n := func(metric string, le float64) float64 {
			x := time.Since(now).Seconds()
			if p := told.Load(); p != nil {
				x = p.Counted(metric, le, a.started, time.Now())
			}
			return math.Floor(shopRate * x)
		}
		const l = `namespace="shop",pod="front-new-1",service="front"`
		fmt.Fprintf(w, "kube_pod_start_time{namespace=%q,pod=%q} %d\n", "shop", "front-new-1", a.started.Unix())
		fmt.Fprintf(w, "kube_pod_info{namespace=%q,pod=%q,pod_ip=%q} 1\n", "shop", "front-new-1", "10.244.0.20")
		fmt.Fprintf(w, "http_requests_total{%s} %v\n", l, n("http_requests_total", 0))
		for _, le := range []float64{0.1, 1, 2.5, 10} {
			fmt.Fprintf(w, "http_request_duration_seconds_bucket{%s,le=%q} %v\n", l, strconv.FormatFloat(le, 'g', -1, 64),
				n("http_request_duration_seconds_bucket", le))
		}
		fmt.Fprintf(w, "http_request_duration_seconds_bucket{%s,le=%q} %v\n", l, "+Inf",
			n("http_request_duration_seconds_bucket", math.Inf(1)))
	})
	a.machine.Write("/etc/prometheus/rules.yml", pastRules)
	a.machine.Write("/etc/prometheus/prometheus.yml", pastConfig)
	env := a.machine.Env("prometheus", "--config.file=/etc/prometheus/prometheus.yml")
	env.Started = now.Add(-20 * 24 * time.Hour)
	recall := make(chan func(context.Context, *past.Past) error, 1)
	env.OnRecall(func(as kit.Telling, f func(context.Context, *past.Past) error) {
		if as == kit.Collector {
			recall <- f
		}
	})
	a.machine.Run(Main, env)
	f := <-recall
	a.await("both are scraped", func() string { return a.query("sum(up)") }, "2")
	join := time.Now()
	a.past = past.New(seed, join.Add(-3*time.Second), join, past.Cast{Gone: []past.Gone{{
		Namespace: "shop", Pod: "front-old-1", Owner: "front-old", Successor: "front-new-1", Heir: "front-new",
		From: join.Add(-10 * 24 * time.Hour), To: a.started,
	}}})
	told.Store(a.past)
	if err := f(t.Context(), a.past); err != nil {
		t.Fatal(err)
	}
	return a
}

// number is the value of a query that has one, some time ago.
func (a *aged) number(expr string, ago time.Duration) float64 {
	a.t.Helper()
	text := a.query(at(expr, ago))
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		a.t.Fatalf("%s, %v ago: %q", expr, ago, text)
	}
	return x
}

// at is an expression of one selector at another time.
func at(expr string, ago time.Duration) string {
	t := strconv.FormatFloat(float64(time.Now().Add(-ago).UnixMilli())/1000, 'f', 3, 64)
	return strings.ReplaceAll(expr, "@", "@ "+t)
}

// TestPastJoinsThePresent holds that series go back for hours at the interval of the scrapes, that counters go on
// and rates are right across the join, and that nothing is left of what was scraped before programs knew their age.
func TestPastJoinsThePresent(t *testing.T) {
	a := newAged(t, 7)
	if n := a.number(`count_over_time(http_requests_total{pod="front-new-1"}[4h] @)`, 0); n < 4*3600-10 {
		t.Errorf("%v samples in four hours", n)
	}
	a.await("the present is scraped", func() string {
		return a.query(`count(count_over_time(http_requests_total[4s]) >= 4)`)
	}, "1")
	for _, ago := range []time.Duration{0, 5 * time.Second, 20 * time.Second, time.Minute} {
		if r := a.number(`sum(rate(http_requests_total[30s] @))`, ago); math.Abs(r/shopRate-1) > 0.25 {
			t.Errorf("%.1f requests/s %v ago, want %v", r, ago, shopRate)
		}
	}
	if n := a.number(`sum(resets(http_requests_total{pod="front-new-1"}[4h] @))`, 0); n != 0 {
		t.Errorf("the counter was reset %v times", n)
	}
	if n := a.number(`sum(resets(prometheus_tsdb_head_samples_appended_total{type="float"}[1h] @))`, 0); n != 0 {
		t.Errorf("Prometheus' own counter was reset %v times", n)
	}
	if s := a.number(`process_start_time_seconds @`, time.Hour); time.Since(time.Unix(int64(s), 0)) < 19*24*time.Hour {
		t.Errorf("Prometheus was started at %v", s)
	}
	if low := a.number(`min_over_time(http_requests_total{pod="front-new-1"}[1h] @)`, 0); low < 100_000 {
		t.Errorf("%v requests is what was counted before the past was told", low)
	}
}

// TestPastIsNotMoreThanThePresent holds that a series goes back from what was scraped first after the cut: a request that
// comes between that and the look is none of the past.
func TestPastIsNotMoreThanThePresent(t *testing.T) {
	t.Parallel()
	db, err := tsdb.Open(t.TempDir(), nil, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	cut := time.Now()
	early := labels.FromStrings("__name__", "orders_total", "pod", "a")
	late := labels.FromStrings("__name__", "orders_total", "pod", "b")
	app := db.Appender(t.Context())
	for l, scraped := range map[*labels.Labels]map[int64]float64{
		&early: {-5000: 7, 10: 2, 5010: 4}, // Before the cut it did not know its age.
		&late:  {-5000: 7, 90: 5},
	} {
		for _, ms := range slices.Sorted(maps.Keys(scraped)) {
			if _, err := app.Append(0, *l, millis(cut)+ms, scraped[ms]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	found := map[string]sighting{}
	for _, l := range []labels.Labels{early, late} {
		found[string(l.Bytes(nil))] = sighting{l, millis(cut) + 50, 3}
	}
	if err := (&server{db: db}).before(t.Context(), cut, found); err != nil {
		t.Fatal(err)
	}
	if s := found[string(early.Bytes(nil))]; s.value != 2 || s.at != millis(cut)+10 {
		t.Errorf("what was scraped before the look is %v at %d, want 2 at 10", s.value, s.at-millis(cut))
	}
	if s := found[string(late.Bytes(nil))]; s.value != 3 || s.at != millis(cut)+50 {
		t.Errorf("what was scraped after the look is %v at %d, want 3 at 50", s.value, s.at-millis(cut))
	}
}

// TestAllTargetsHaveAPast holds that a Prometheus that is told its past when it has only just been started tells of all
// targets, those too that it has yet to find.
func TestAllTargetsHaveAPast(t *testing.T) {
	l := newLab(t)
	for i := range 3 {
		name, addr := fmt.Sprintf("front-%d", i), fmt.Sprintf("10.244.1.%d", i+1)
		l.serve(name, addr, "8080", nil, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "doors 2") })
		l.api.Set("v1", "pods", pod(name, addr, nil))
	}
	l.machine.Write("/etc/prometheus/prometheus.yml", `
scrape_configs:
- {job_name: prometheus, static_configs: [{targets: ['localhost:9090']}]}
- {job_name: kubernetes-pods, kubernetes_sd_configs: [{role: pod}]}
`)
	env := l.machine.Env("prometheus", "--config.file=/etc/prometheus/prometheus.yml")
	env.Started = time.Now().Add(-20 * 24 * time.Hour)
	recall := make(chan func(context.Context, *past.Past) error, 1)
	env.OnRecall(func(as kit.Telling, f func(context.Context, *past.Past) error) {
		if as == kit.Collector {
			recall <- f
		}
	})
	l.machine.Run(Main, env)
	join := time.Now()
	if err := (<-recall)(t.Context(), past.New(7, join.Add(-time.Second), join, past.Cast{})); err != nil {
		t.Fatal(err)
	}
	if got := l.query(at("count(doors @)", time.Hour)); got != "3" {
		t.Errorf("an hour ago %q pods were scraped, want 3", got)
	}
}

// TestPodsHadPredecessors holds that a pod has no past before its start, but the pod has that was there before,
// under another name and address, and that together they served what there was.
func TestPodsHadPredecessors(t *testing.T) {
	a := newAged(t, 7)
	before := 5*time.Hour + 10*time.Minute
	if got := a.query(at(`http_requests_total @`, before), "pod"); !strings.HasPrefix(got, "front-old-1 ") ||
		strings.Contains(got, "\n") {
		t.Errorf("before the pod there was %q", got)
	}
	if got := a.query(at(`kube_pod_info @`, before), "pod_ip"); got == "" || strings.HasPrefix(got, "10.244.0.20 ") {
		t.Errorf("its address was %q", got)
	}
	for ago := 4*time.Hour + 50*time.Minute; ago < before; ago += 2 * time.Minute {
		r := a.number(`sum(rate(http_requests_total[1m] @))`, ago)
		if want := shopRate * a.past.Work(time.Now().Add(-ago-time.Minute), time.Now().Add(-ago)) / 60; r < 0.4*want {
			t.Errorf("%.1f requests/s %v ago, want about %.1f", r, ago, want)
		}
	}
}

// TestAlertsFiredAndResolved holds that alerts of the past are those of its excursions, that each was true when it
// fired, and that none is active.
func TestAlertsFiredAndResolved(t *testing.T) {
	a := newAged(t, 7)
	fired := a.query(`count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[24h]))`, "alertname")
	for _, want := range []string{"Slow", "Busy"} {
		if !strings.Contains(fired, want) {
			t.Errorf("%s never fired: %q", want, fired)
		}
	}
	if strings.Contains(fired, "Down") {
		t.Errorf("what is up was told to be down: %q", fired)
	}
	exprs := map[past.Kind]string{past.Slow: "service:p95 @ > 1", past.Surge: "service:rate1m @ > 3 * 40 * 0.4"}
	for _, e := range a.past.Excursions {
		middle := time.Since(e.From.Add(e.To.Sub(e.From) * 3 / 4))
		if got := a.query(at(exprs[e.Kind], middle)); got == "" {
			t.Errorf("an excursion of kind %v %v ago does not show", e.Kind, middle)
		}
	}
	// Before the first scrape something was missing; rules are evaluated again within a second.
	a.await("no alert is active", func() string {
		_, got := a.get("/api/v1/alerts")
		return strings.TrimSpace(got)
	}, `{"status":"success","data":{"alerts":[]}}`)
	a.await("no alert is told to be active", func() string { return a.query(`ALERTS`) }, "")
}

// TestPastIsListed holds that series and labels of the past are found as those of the present are.
func TestPastIsListed(t *testing.T) {
	a := newAged(t, 7)
	_, got := a.get("/api/v1/label/pod/values")
	if !strings.Contains(got, "front-old-1") || !strings.Contains(got, "front-new-1") {
		t.Errorf("pods are %s", got)
	}
	end := time.Now().Add(-6 * time.Hour)
	_, got = a.get("/api/v1/series?match[]=" + url.QueryEscape(`http_requests_total`) +
		fmt.Sprintf("&start=%d&end=%d", end.Add(-time.Hour).Unix(), end.Unix()))
	if !strings.Contains(got, "front-old-1") || strings.Contains(got, "front-new-1") {
		t.Errorf("six hours ago there was %s", got)
	}
}

// TestDatabaseHasLived holds that Prometheus tells of a database that has run for weeks: its head is a block or so long, the
// blocks before it are those of the retention, and what it has counted, it has counted all the time.
func TestDatabaseHasLived(t *testing.T) {
	a := newAged(t, 7)
	_, got := a.get("/api/v1/status/tsdb")
	var answer struct {
		Data struct {
			HeadStats struct{ NumSeries, ChunkCount, MinTime, MaxTime int64 }
		}
	}
	if err := json.Unmarshal([]byte(got), &answer); err != nil {
		t.Fatal(err)
	}
	h := answer.Data.HeadStats
	// A block has two hours by default. The head is made one when it has three.
	long := time.Duration(h.MaxTime-h.MinTime) * time.Millisecond
	if long < 59*time.Minute || long > 3*time.Hour+time.Minute || h.MinTime%(2*time.Hour).Milliseconds() != 0 {
		t.Errorf("the head begins at %v and has %v", timeOf(h.MinTime), long)
	}
	if perSeries := float64(h.ChunkCount) / float64(h.NumSeries); perSeries < long.Seconds()/120 ||
		perSeries > long.Seconds()/120+2 {
		t.Errorf("%d chunks of %d series in %v, with a sample a second", h.ChunkCount, h.NumSeries, long)
	}
	var text string
	a.await("targets are scraped again", func() string {
		_, text = a.get("/metrics")
		return fmt.Sprint(strings.Contains(text, "prometheus_target_interval_length_seconds_count"))
	}, "true")
	figure := func(name string) float64 {
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, name+" "); ok {
				v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
		}
		t.Fatalf("there is no %s", name)
		return 0
	}
	day := time.Now().Add(-24 * time.Hour)
	for name, want := range map[string][2]float64{
		"prometheus_tsdb_blocks_loaded":               {2, 14}, // of a day at most, which is what there is
		"prometheus_tsdb_compactions_triggered_total": {20*24*60 - 5, 20*24*60 + 60},
		"prometheus_tsdb_head_truncations_total":      {20*12 - 3, 20*12 + 3},
		"prometheus_tsdb_reloads_total":               {20 * 24 * 30, 20 * 24 * 120},
		"prometheus_tsdb_lowest_timestamp":            {float64(millis(day.Add(-time.Hour))), float64(millis(day.Add(time.Hour)))},
		"prometheus_tsdb_storage_blocks_bytes":        {1e5, 1e9},
		// Two targets are scraped, and five rules evaluated, once a second.
		`prometheus_target_interval_length_seconds_count{interval="1s"}`: {2*20*86400 - 10, 2*20*86400 + 5000},
		`prometheus_rule_evaluation_duration_seconds_count`:              {5*20*86400 - 10, 5*20*86400 + 5000},
		"prometheus_target_scrape_pools_total":                           {1, 2},
	} {
		if v := figure(name); v < want[0] || v > want[1] {
			t.Errorf("%s is %v, want from %v to %v", name, v, want[0], want[1])
		}
	}
	for _, what := range []string{"series", "chunks"} {
		is, made := figure("prometheus_tsdb_head_"+what), figure("prometheus_tsdb_head_"+what+"_created_total")
		if gone := figure("prometheus_tsdb_head_" + what + "_removed_total"); made-gone != is || gone <= 0 {
			t.Errorf("%v %s were made, %v are gone, and there are %v", made, what, gone, is)
		}
	}
	for ago := time.Duration(0); ago < 20*time.Hour; ago += 37 * time.Minute {
		if v := a.number(`time() - prometheus_tsdb_head_min_time @ / 1000`, ago); v-ago.Seconds() > 3*3600+60 {
			t.Errorf("%v ago the head was %v long", ago, time.Duration(v)*time.Second-ago)
		}
	}
	if now, ago := a.number(`prometheus_tsdb_head_series @`, 0), a.number(`prometheus_tsdb_head_series @`, time.Hour); ago < now/2 {
		t.Errorf("%v series, %v an hour ago", now, ago)
	}
}

// TestMemoryHasLived holds that memory in the past is as it is now: not even, without a step at the join, growing since a
// process was started, and at its limit before one was killed for it.
func TestMemoryHasLived(t *testing.T) {
	join := time.Now().Truncate(time.Millisecond)
	started, began := join.Add(-9*time.Hour), join.Add(-3*time.Hour)
	const l = 256 << 20
	found := map[string]sighting{}
	see := func(name string, value float64) {
		s := labels.FromStrings("__name__", name, "namespace", "shop", "pod", "front-1", "container", "front")
		found[string(s.Bytes(nil))] = sighting{s, millis(join), value}
	}
	needed := float64(100 << 20)
	seconds := func(t time.Time) float64 { return float64(millis(t)) / 1000 }
	see("kube_pod_start_time", seconds(started))
	see("container_start_time_seconds", seconds(began))
	see("container_spec_memory_limit_bytes", l)
	see("container_memory_working_set_bytes", past.Pages(needed*past.Swell("shop/front", join.Sub(began))))
	see(restartsMetric, 2)
	see("kube_pod_container_status_last_terminated_reason", 1)
	p := past.New(7, join.Add(-time.Second), join, past.Cast{Gone: []past.Gone{{
		Namespace: "shop", Pod: "front-0", Successor: "front-1", From: join.Add(-20 * time.Hour), To: started,
	}}})
	m := newMemory(p, &kit.Env{Started: join.Add(-20 * 24 * time.Hour)}, join, found, nil)
	value := func(name string, ago time.Duration) float64 {
		t.Helper()
		at := millis(join.Add(-ago))
		for _, w := range m.series[name] {
			for _, s := range w.spans() {
				if s.from <= at && at <= s.to {
					return w.remember(s).value(timeOf(at))
				}
			}
		}
		return math.NaN()
	}
	used := func(ago time.Duration) float64 { return value("container_memory_working_set_bytes", ago) }
	levels, last := map[float64]bool{}, used(0)
	for ago := time.Duration(0); ago < 2*time.Hour; ago += 5 * time.Second {
		x := used(ago)
		if want := past.Pages(needed * past.Swell("shop/front", join.Sub(began)-ago)); math.Abs(x-want) > 4096 {
			t.Fatalf("%v ago it was %v, want %v", ago, x, want)
		}
		if math.Abs(x-last) > needed/100 {
			t.Fatalf("%v ago there is a step from %v to %v", ago, last, x)
		}
		levels[x], last = true, x
	}
	if len(levels) < 100 {
		t.Errorf("it had %d levels in two hours", len(levels))
	}
	if x := used(3*time.Hour + time.Second); x < 0.95*l || x > l {
		t.Errorf("%v bytes of %v when it was killed", x, l)
	}
	if x := used(8 * time.Hour); x < needed || x > 1.1*needed {
		t.Errorf("%v bytes long before it was killed", x)
	}
	if x := used(12 * time.Hour); x < needed || x > 1.1*needed {
		t.Errorf("the pod before had %v bytes", x)
	}
	for name, want := range map[string][3]float64{ // of the container that runs, of the one before, of the pod before
		restartsMetric:                                     {2, 1, 0},
		"container_start_time_seconds":                     {seconds(began), seconds(started.Add(time.Second)), seconds(join.Add(-20*time.Hour + time.Second))},
		"kube_pod_container_status_last_terminated_reason": {1, math.NaN(), math.NaN()},
	} {
		got := [3]float64{value(name, time.Hour), value(name, 5*time.Hour), value(name, 12*time.Hour)}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s was %v, want %v", name, got, want)
		}
	}
}
