package page

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/aiopslab/aiopslab/observe"
)

// dependencies asks who calls whom.
func (g *gathering) dependencies(ctx context.Context) error {
	if _, ok := g.c.App.Service("jaeger"); !ok {
		return nil
	}
	links, err := g.c.Telemetry.Jaeger(g.c.App.Namespace).Dependencies(ctx, g.At.Add(-callsOver), g.At)
	if err != nil {
		return err
	}
	g.calls = map[[2]string]float64{}
	for _, l := range links {
		g.calls[[2]string{l.Parent, l.Child}] += float64(l.CallCount) / callsOver.Seconds()
	}
	return nil
}

// query asks Prometheus for values of now, by a label.
func (c *Cluster) query(ctx context.Context, query, label string) (map[string]float64, error) {
	query = strings.NewReplacer("NAMESPACE", fmt.Sprintf("%q", c.App.Namespace), "RATE", stateRate).Replace(query)
	v, _, err := c.Telemetry.Prometheus().Query(ctx, query, time.Time{})
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	values := map[string]float64{}
	list, _ := v.(model.Vector)
	for _, s := range list {
		if f := float64(s.Value); f == f { // No number says nothing.
			values[string(s.Metric[model.LabelName(label)])] += f
		}
	}
	return values, nil
}

// requests asks what services are asked for, over HTTP and gRPC.
func (g *gathering) requests(ctx context.Context) error {
	for _, protocol := range []string{"http", "grpc"} {
		for _, name := range []string{"requests", "errors", "latency_90"} {
			values, err := g.c.query(ctx, observe.ServiceMetrics[protocol+"_"+name], "service")
			if err != nil {
				return err
			}
			g.mu.Lock()
			for service, v := range values {
				r, ok := g.rows[service]
				switch {
				case !ok:
				case name == "requests":
					r.asked = true
					r.Rate += v
				case name == "errors":
					r.Errors += v
				default:
					r.latency = true
					r.P90 = max(r.P90, v)
				}
			}
			g.mu.Unlock()
		}
	}
	return nil
}

// What pods use.
const (
	cpuQuery    = `sum by (pod) (rate(container_cpu_usage_seconds_total{namespace=NAMESPACE,container!=""}[RATE]))`
	memoryQuery = `sum by (pod) (container_memory_working_set_bytes{namespace=NAMESPACE,container!=""})`
)

func (g *gathering) usage(ctx context.Context) (map[string]map[string]float64, error) {
	cpu, err := g.c.query(ctx, cpuQuery, "pod")
	if err != nil {
		return nil, err
	}
	memory, err := g.c.query(ctx, memoryQuery, "pod")
	return map[string]map[string]float64{"cpu": cpu, "memory": memory}, err
}

// spread gives services what their pods use.
func (g *gathering) spread(usage map[string]map[string]float64) {
	for pod, service := range g.whose {
		r, ok := g.rows[service]
		if _, known := usage["memory"][pod]; !ok || !known {
			continue
		}
		r.metered = true
		r.CPU += usage["cpu"][pod]
		r.Memory += usage["memory"][pod]
	}
}
