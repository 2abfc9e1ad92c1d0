package observe

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
)

// serviceRate is what rates of services are over: three scrapes.
const serviceRate = "15s"

// ServiceMetrics are queries for what each service does, by name: requests and errors a second, and quantiles of the
// time that requests take, in seconds. NAMESPACE and RATE stand for what a query is about.
var ServiceMetrics = map[string]string{
	"http_requests":   `sum by (service) (rate(http_requests_total{namespace=NAMESPACE}[RATE]))`,
	"http_errors":     `sum by (service) (rate(http_requests_total{namespace=NAMESPACE,code=~"5.."}[RATE]))`,
	"http_latency_50": quantileOf("0.5", "http_request_duration_seconds_bucket"),
	"http_latency_90": quantileOf("0.9", "http_request_duration_seconds_bucket"),
	"grpc_requests":   `sum by (service) (rate(grpc_server_handled_total{namespace=NAMESPACE}[RATE]))`,
	"grpc_errors": `sum by (service) (rate(grpc_server_handled_total{namespace=NAMESPACE,grpc_code=~"Unknown|` +
		`DeadlineExceeded|ResourceExhausted|Aborted|Unimplemented|Internal|Unavailable|DataLoss"}[RATE]))`,
	"grpc_latency_50": quantileOf("0.5", "grpc_server_handling_seconds_bucket"),
	"grpc_latency_90": quantileOf("0.9", "grpc_server_handling_seconds_bucket"),
}

func quantileOf(q, buckets string) string {
	return fmt.Sprintf("histogram_quantile(%s, sum by (service, le) (rate(%s{namespace=NAMESPACE}[RATE])))", q, buckets)
}

// exportServices writes the metrics of services, one file each. Their rows have the service for the cmdb_id.
func (o *Observer) exportServices(ctx context.Context, w Window, dir string, f Format) error {
	fill := strings.NewReplacer("NAMESPACE", fmt.Sprintf("%q", w.Namespace), "RATE", serviceRate)
	for _, name := range slices.Sorted(maps.Keys(ServiceMetrics)) {
		var rows []MetricRow
		err := o.queryRange(ctx, w, name, fill.Replace(ServiceMetrics[name]), func(s *model.SampleStream) {
			for _, p := range s.Values {
				rows = append(rows, MetricRow{
					p.Timestamp.Unix(), string(s.Metric["service"]), name, float64(p.Value),
				})
			}
		})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			continue
		}
		if _, err := write(filepath.Join(dir, "kpi_"+name), f, batch(rows)); err != nil {
			return err
		}
	}
	return nil
}
