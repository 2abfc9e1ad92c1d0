package page

import (
	"context"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/workload"
)

// clusterPath is where the pages about a cluster are.
const clusterPath = Prefix + "cluster"

// Telemetry is what is read of a cluster's metrics, alerts, logs and traces. An [observe.Observer] is one.
type Telemetry interface {
	Alerts(ctx context.Context, namespace string) ([]observe.Alert, error)
	Logs(ctx context.Context, q observe.LogQuery) ([]observe.LogLine, error)
	Prometheus() promv1.API
	Jaeger(namespace string) observe.Traces
}

// Cluster is a cluster that is up, with an application in it. The pages about it read, and change nothing.
type Cluster struct {
	App       *app.App // as it is there
	Client    kubernetes.Interface
	Telemetry Telemetry
	// Users tells what those who put the application under load get; nil if there is no load.
	Users func(ctx context.Context) (*workload.Snapshot, error)
	// Own are programs of the cluster that have pages of their own, which are shown through this site.
	Own []Own
	// Dial connects to an address of the cluster's network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Own is a program of a cluster with pages of its own.
type Own struct {
	Name  string // in the address, as "prometheus"
	Title string
	Host  string // with its port, inside the cluster
}

// own finds one by its name.
func (c *Cluster) own(name string) (Own, bool) {
	for _, o := range c.Own {
		if o.Name == name {
			return o, true
		}
	}
	return Own{}, false
}

// clusterPart is what all pages about the cluster show.
type clusterPart struct {
	App   *app.App
	Tabs  []tab
	Clock string
	Wrong []string // what could not be read, and why
	own   map[string]bool
}

// part begins a page about the cluster.
func (s *Site) part(current string) (clusterPart, error) {
	if s.Cluster == nil {
		return clusterPart{}, fail(http.StatusNotFound,
			"this server is about no cluster; 'aiopslab up --app hotel-reservation' starts one and prints a link")
	}
	p := clusterPart{App: s.Cluster.App, Clock: clock(time.Now()), own: map[string]bool{}}
	for _, t := range [][2]string{{"", "Now"}, {"/metrics", "Metrics"}, {"/logs", "Logs"}, {"/traces", "Traces"}} {
		p.Tabs = append(p.Tabs, tab{t[1], clusterPath + t[0], t[0] == current})
	}
	for _, o := range s.Cluster.Own {
		p.own[o.Name] = true
		path := "/own/" + o.Name
		p.Tabs = append(p.Tabs, tab{o.Title, clusterPath + path, path == current})
	}
	return p, nil
}

// InPrometheus is where Prometheus' own page answers a query, or "".
func (p clusterPart) InPrometheus(query, span string) string {
	if !p.own["prometheus"] {
		return ""
	}
	return ownLink("prometheus", "query&"+url.Values{"expr": {query}, "range": {span}}.Encode())
}

// InJaeger is where Jaeger's own page has a trace, or "".
func (p clusterPart) InJaeger(trace string) string {
	if !p.own["jaeger"] {
		return ""
	}
	return ownLink("jaeger", "trace&"+url.QueryEscape(trace))
}

// AlertRules is where Prometheus' own page has the rules, or "".
func (p clusterPart) AlertRules() string {
	if !p.own["prometheus"] {
		return ""
	}
	return ownLink("prometheus", "alerts")
}

// clusterPage is the cluster as it is now.
type clusterPage struct {
	clusterPart
	*state
	Graph template.HTML
	Calm  string // that nothing is red
}

// showCluster answers with the cluster as it is now.
func (s *Site) showCluster(w http.ResponseWriter, r *http.Request) error {
	part, err := s.part("")
	if err != nil {
		return err
	}
	p := &clusterPage{clusterPart: part, state: s.state.read(r.Context(), s.Cluster)}
	p.Clock, p.Wrong = clock(p.At), p.Unread
	now := &traffic{notes: map[string]string{}, calls: p.calls, link: logsLink}
	for _, row := range p.Services {
		now.notes[row.Name] = row.Note()
	}
	p.Graph = drawGraph(p.App, p.red, now)
	if len(p.Red) == 0 && len(p.Wrong) == 0 {
		p.Calm = fmt.Sprintf("All %s are well.", plural(len(p.App.Services), "service"))
	}
	render(w, r, http.StatusOK, "cluster", view{Title: p.App.Title, Place: "cluster", Poll: 2500, Data: p})
	return nil
}

// logsLink is where the logs of a service are.
func logsLink(service string) string {
	return clusterPath + "/logs?" + url.Values{"service": {service}}.Encode()
}

// span is a time that a page looks back.
type span struct {
	Name   string
	Length time.Duration
}

var spans = []span{
	{"5m", 5 * time.Minute}, {"15m", 15 * time.Minute}, {"1h", time.Hour}, {"6h", 6 * time.Hour},
}

// spanOf is the one that is asked for, by default the first.
func spanOf(name string) span {
	for _, s := range spans {
		if s.Name == name {
			return s
		}
	}
	return spans[0]
}

// spanNames are what can be asked for.
func spanNames() (list []string) {
	for _, s := range spans {
		list = append(list, s.Name)
	}
	return list
}
