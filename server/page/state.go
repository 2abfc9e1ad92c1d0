package page

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/session"
)

const (
	// stateFresh is for how long what was read of a cluster is shown to others, too.
	stateFresh = time.Second
	// stateTimeout is how long one answer of the cluster may take.
	stateTimeout = 5 * time.Second
	// stateRate is what rates are over: four scrapes, so that what breaks shows soon.
	stateRate = "20s"
	// callsOver is what the calls of services to others are counted over.
	callsOver = time.Minute

	shownEvents = 40
	shownAlerts = 60
	maxListed   = 500 // of what one list of the API has
	// What is red: as the alerting rules of package observe have it.
	redErrors  = 0.05
	redLatency = 1.0  // seconds
	redUsers   = 0.98 // of whose requests must succeed
)

// state is a cluster at a moment.
type state struct {
	At       time.Time
	Users    string
	Suffer   bool // users are not served well
	Services []*serviceRow
	Red      []fact // services that are not well, and why
	Alerts   []shownAlert
	Events   []shownEvent
	Unread   []string // what could not be read, and why

	red   map[string]string
	calls map[[2]string]float64
	pods  []string // their names
}

// serviceRow is a service, or another workload of its namespace.
type serviceRow struct {
	Name, Kind              string
	Ready, Replicas         int
	There, Elastic, Known   bool // there is a workload; it may have no pods; it is the application's
	Rate, Errors, P90       float64
	CPU, Memory             float64
	Restarts                int
	Waiting                 string // why a container of it does not run
	Why                     string // it is red
	Logs, Traces            string // links
	asked, latency, metered bool
}

// Note is the service in a few characters, for the picture.
func (r *serviceRow) Note() string {
	switch {
	case r.asked && r.Rate > 0 && r.Errors/r.Rate >= 0.005:
		return fmt.Sprintf("%s/s, %s fail", rate(r.Rate), percent(r.Errors/r.Rate))
	case r.asked && r.latency:
		return fmt.Sprintf("%s/s, %s", rate(r.Rate), seconds(r.P90))
	case r.asked:
		return rate(r.Rate) + "/s"
	}
	return fmt.Sprintf("%d/%d ready", r.Ready, r.Replicas)
}

// Cells are what the table has of it.
func (r *serviceRow) Cells() []string {
	dash := func(known bool, text string) string {
		if known {
			return text
		}
		return "–"
	}
	failing := 0.0
	if r.Rate > 0 {
		failing = r.Errors / r.Rate
	}
	return []string{
		dash(r.asked, rate(r.Rate)), dash(r.asked && r.Rate > 0, percent(failing)), dash(r.latency, seconds(r.P90)),
		dash(r.metered, fmt.Sprintf("%.1f", 1000*r.CPU)), dash(r.metered, fmt.Sprintf("%.0f", r.Memory/(1<<20))),
		count(r.Restarts),
	}
}

// rate is a number of requests a second.
func rate(v float64) string {
	if v >= 9.95 || v == 0 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

type shownAlert struct {
	Name, Severity, Summary, Since, Service, Link string
	Firing                                        bool
}

type shownEvent struct {
	Clock, Object, Reason, Message string
	Bad                            bool
	Count                          int
}

// readState is the cluster as it was read last.
type readState struct {
	mu   sync.Mutex
	last *state
}

// read looks at the cluster, or returns what was seen a moment ago.
func (r *readState) read(ctx context.Context, c *Cluster) *state {
	r.mu.Lock()
	defer r.mu.Unlock() // One at a time: others want the same.
	if r.last != nil && time.Since(r.last.At) < stateFresh {
		return r.last
	}
	r.last = lookAt(context.WithoutCancel(ctx), c) // Who asked first may be gone while others wait.
	return r.last
}

// gathering is a state under way: what parts of the cluster tell, and which do not.
type gathering struct {
	*state
	c     *Cluster
	mu    sync.Mutex
	rows  map[string]*serviceRow
	whose map[string]string // the service of a pod
}

// lookAt asks all parts of a cluster at once.
func lookAt(ctx context.Context, c *Cluster) *state {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	g := &gathering{state: &state{At: time.Now()}, c: c, rows: map[string]*serviceRow{}, whose: map[string]string{}}
	for _, s := range c.App.Services {
		g.row(s.Name).Kind, g.row(s.Name).Elastic, g.row(s.Name).Known = s.Kind, s.Elastic, true
	}
	var alerts []observe.Alert
	var usage map[string]map[string]float64
	ask := func(what string, read func(context.Context) error) {
		if err := read(ctx); err != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.Unread = append(g.Unread, clip(fmt.Sprintf("The %s cannot be read: %v", what, err)))
		}
	}
	ask("workloads", g.workloads) // The others are about them.
	var wg sync.WaitGroup
	for what, read := range map[string]func(context.Context) error{
		"pods": g.readPods, "events": g.events, "users": g.users, "calls": g.dependencies, "requests": g.requests,
		"alerts": func(ctx context.Context) (err error) {
			alerts, err = c.Telemetry.Alerts(ctx, c.App.Namespace)
			return err
		},
		"usage": func(ctx context.Context) (err error) {
			usage, err = g.usage(ctx)
			return err
		},
	} {
		wg.Go(func() { ask(what, read) })
	}
	wg.Wait()
	slices.Sort(g.Unread)
	g.spread(usage)
	g.judge(alerts)
	return g.state
}

// row is the one of a service, which may be a new one.
func (g *gathering) row(name string) *serviceRow {
	r := g.rows[name]
	if r == nil {
		r = &serviceRow{
			Name: name, Kind: "workload", Logs: logsLink(name), Traces: clusterPath + "/traces?service=" + name,
		}
		g.rows[name] = r
		g.Services = append(g.Services, r)
	}
	return r
}

func (g *gathering) workloads(ctx context.Context) error {
	list, err := session.Workloads(ctx, g.c.Client, g.c.App)
	for _, w := range list[:min(len(list), maxListed)] {
		r := g.row(w.Name)
		r.There, r.Ready, r.Replicas = true, w.Ready, w.Replicas
	}
	return err
}

// readPods learns whose pods are whose, and what keeps them from running.
func (g *gathering) readPods(ctx context.Context) error {
	list, err := g.c.Client.CoreV1().Pods(g.c.App.Namespace).List(ctx, metav1.ListOptions{Limit: maxListed})
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range list.Items {
		p := &list.Items[i]
		name := p.Labels[g.c.App.Label]
		if name == "" {
			name, _, _ = strings.Cut(p.Name, "-")
		}
		g.whose[p.Name] = name
		g.pods = append(g.pods, p.Name)
		r, ok := g.rows[name]
		if !ok {
			continue
		}
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			r.Restarts += int(s.RestartCount)
			if w := s.State.Waiting; w != nil {
				r.Waiting = cmp.Or(w.Reason, r.Waiting)
			}
		}
		for _, c := range p.Status.Conditions {
			if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
				r.Waiting = cmp.Or(r.Waiting, c.Reason)
			}
		}
	}
	return nil
}

// events takes what Kubernetes tells, the newest first.
func (g *gathering) events(ctx context.Context) error {
	list, err := g.c.Client.CoreV1().Events(g.c.App.Namespace).List(ctx, metav1.ListOptions{Limit: maxListed})
	if err != nil {
		return err
	}
	when := func(e v1.Event) time.Time {
		at := e.LastTimestamp.Time
		if e.EventTime.After(at) {
			at = e.EventTime.Time
		}
		if e.Series != nil && e.Series.LastObservedTime.After(at) {
			at = e.Series.LastObservedTime.Time
		}
		return at
	}
	slices.SortStableFunc(list.Items, func(a, b v1.Event) int { return when(b).Compare(when(a)) })
	for _, e := range list.Items[:min(len(list.Items), shownEvents)] {
		g.Events = append(g.Events, shownEvent{
			clock(when(e)), visible(strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name),
			visible(e.Reason), clip(e.Message), e.Type == v1.EventTypeWarning, int(e.Count),
		})
	}
	return nil
}

// users asks who puts the application under load.
func (g *gathering) users(ctx context.Context) error {
	if g.c.Users == nil {
		g.Users = "There is no load."
		return nil
	}
	snap, err := g.c.Users(ctx)
	if err != nil {
		return err
	}
	w := snap.Window("5s")
	if w.Total.Requests == 0 {
		g.Users = "Nobody has been answered in the last 5 seconds."
		return nil
	}
	g.Suffer = w.Total.Success < redUsers
	g.Users = fmt.Sprintf("%s of users' requests succeed, 95\u202f%% of them within %s; %s a second.",
		percent(w.Total.Success), seconds(w.Total.P95.Seconds()), rate(w.Total.Rate))
	return nil
}

// judge says what is red, and why.
func (g *gathering) judge(alerts []observe.Alert) {
	g.red = map[string]string{}
	seen := map[string][]string{}
	for _, a := range alerts[:min(len(alerts), shownAlerts)] {
		service := g.about(a)
		g.Alerts = append(g.Alerts, shownAlert{
			visible(a.Name), visible(a.Severity), clip(a.Summary), clock(a.Since), service, logsLink(service),
			a.State == "firing",
		})
		if a.State == "firing" && service != "" {
			seen[service] = append(seen[service], visible(a.Name))
		}
	}
	slices.SortStableFunc(g.Services, func(a, b *serviceRow) int { return cmp.Compare(a.Name, b.Name) })
	for _, r := range g.Services {
		why := r.ails(g.read("workloads"))
		for _, name := range slices.Compact(slices.Sorted(slices.Values(seen[r.Name]))) {
			why = append(why, name+" fires")
		}
		if len(why) > 0 {
			r.Why = strings.Join(why, "; ")
			g.red[r.Name] = r.Why
			g.Red = append(g.Red, fact{r.Name, r.Why})
		}
	}
	slices.SortStableFunc(g.Services, func(a, b *serviceRow) int { return order(a) - order(b) })
}

// order has what is red first, then services, stores and the rest.
func order(r *serviceRow) int {
	switch {
	case r.Why != "":
		return 0
	case r.Kind == "service" || r.Kind == "":
		return 1
	case r.Known && r.Kind != "infrastructure":
		return 2
	}
	return 3
}

// read reports whether a part of the cluster was read.
func (g *gathering) read(what string) bool {
	return !slices.ContainsFunc(g.Unread, func(w string) bool { return strings.HasPrefix(w, "The "+what+" ") })
}

// ails lists what is wrong with a service.
func (r *serviceRow) ails(counted bool) (why []string) {
	waits := ""
	if r.Waiting != "" {
		waits = " (" + visible(r.Waiting) + ")"
	}
	switch {
	case !counted || r.Elastic:
	case !r.There:
		why = append(why, "there is no workload of this name")
	case r.Replicas == 0 && r.Known:
		why = append(why, "it is scaled to zero")
	case r.Ready < r.Replicas:
		why = append(why, fmt.Sprintf("%d of %d pods are ready%s", r.Ready, r.Replicas, waits))
	}
	if r.Rate > 0 && r.Errors/r.Rate > redErrors {
		why = append(why, percent(r.Errors/r.Rate)+" of its requests fail")
	}
	if r.latency && r.P90 > redLatency {
		why = append(why, "one request in ten takes "+seconds(r.P90)+" or more")
	}
	return why
}

// about is the service that an alert is about, or "".
func (g *gathering) about(a observe.Alert) string {
	for _, name := range []string{a.Labels["deployment"], a.Labels["service"], g.whose[a.Labels["pod"]]} {
		if g.rows[name] != nil {
			return name
		}
	}
	return ""
}
