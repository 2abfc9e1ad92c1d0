package agnhost

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// externalMetrics serves the API external.metrics.k8s.io from values that are set over HTTP.
type externalMetrics struct {
	*program
	mu      sync.Mutex
	metrics map[string]*externalMetric // by key
}

type externalMetric struct {
	name   string
	labels map[string]string
	value  int
	fails  bool
}

func (p *program) newExternalMetrics() *cobra.Command {
	var port int
	c := command("external-metrics", "Starts an external metrics server for testing", func(ctx context.Context) error {
		cert, key, err := localhostCertificate()
		if err != nil {
			return p.klog.fatalf("Error creating self-signed certs: %v", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return p.klog.fatalf("Error creating self-signed certs: %v", err)
		}
		m := &externalMetrics{program: p, metrics: map[string]*externalMetric{}}
		m.create(&externalMetric{name: "queue_messages_ready", value: 100})
		m.create(&externalMetric{name: "http_requests_total", value: 500})
		p.klog.infof("\"Starting server on\" address=\":%d\"", port)
		return together(ctx, p.serve(fmt.Sprintf(":%d", port), &http.Server{
			Handler:   m.routes(),
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
		}))
	})
	c.Flags().IntVar(&port, "port", 6443, "Port number.")
	c.Flags().String("service-name", "external-metrics-server", "Name of the external metrics service.")
	c.Flags().String("service-namespace", "default", "Namespace of the external metrics service.")
	return c
}

func (m *externalMetrics) routes() http.Handler {
	mux := http.NewServeMux()
	const group = "/apis/external.metrics.k8s.io"
	mux.HandleFunc("/healthz", ok)
	mux.HandleFunc("/readyz", ok)
	mux.HandleFunc(group, m.handleGroup)
	mux.HandleFunc(group+"/{$}", m.handleGroup)
	mux.HandleFunc(group+"/v1beta1", m.handleResources)
	mux.HandleFunc(group+"/v1beta1/{$}", m.handleResources)
	mux.HandleFunc(group+"/v1beta1/namespaces/{namespace}/{metric}", m.handleValues)
	mux.HandleFunc("/fail/{metric}", m.handleFail)
	mux.HandleFunc("/set/{metric}", m.handleSet)
	mux.HandleFunc("/create/{metric}", m.handleCreate)
	return mux
}

type document = map[string]any

func (m *externalMetrics) reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		m.klog.errorS(err, "failed to encode response")
	}
}

func (m *externalMetrics) handleGroup(w http.ResponseWriter, _ *http.Request) {
	version := document{"groupVersion": "external.metrics.k8s.io/v1beta1", "version": "v1beta1"}
	m.reply(w, http.StatusOK, document{
		"kind": "APIGroup", "apiVersion": "v1", "name": "external.metrics.k8s.io",
		"versions": []document{version}, "preferredVersion": version,
	})
}

func (m *externalMetrics) handleResources(w http.ResponseWriter, _ *http.Request) {
	m.reply(w, http.StatusOK, document{
		"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "external.metrics.k8s.io/v1beta1",
		"resources": []document{{"name": "*", "namespaced": true, "kind": "ExternalMetricValueList", "verbs": []string{"get"}}},
	})
}

func (m *externalMetrics) handleValues(w http.ResponseWriter, r *http.Request) {
	name, selector := r.PathValue("metric"), parseLabels(r.URL.Query().Get("labelSelector"))
	m.mu.Lock()
	defer m.mu.Unlock()
	items := []document{}
	for _, key := range slices.Sorted(maps.Keys(m.metrics)) {
		metric := m.metrics[key]
		if metric.name != name || !metric.matches(selector) {
			continue
		}
		if metric.fails {
			http.Error(w, fmt.Sprintf("metric %s is configured to fail", name), http.StatusInternalServerError)
			return
		}
		items = append(items, document{
			"metricName": metric.name, "metricLabels": metric.labels,
			"timestamp": time.Now().UTC().Format(time.RFC3339), "value": strconv.Itoa(metric.value),
		})
	}
	if len(items) == 0 {
		http.Error(w, fmt.Sprintf("no metric name called %s with labels %v", name, selector), http.StatusNotFound)
		return
	}
	m.reply(w, http.StatusOK, document{
		"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1",
		"metadata": document{}, "items": items,
	})
}

func (m *externalMetrics) handleFail(w http.ResponseWriter, r *http.Request) {
	fails, err := strconv.ParseBool(r.URL.Query().Get("fail"))
	if err != nil {
		http.Error(w, "fail param should be true or false", http.StatusBadRequest)
		return
	}
	m.change(w, r, func(metric *externalMetric) { metric.fails = fails })
}

func (m *externalMetrics) handleSet(w http.ResponseWriter, r *http.Request) {
	value, err := strconv.Atoi(r.URL.Query().Get("value"))
	if err != nil {
		http.Error(w, "value param must be an integer", http.StatusBadRequest)
		return
	}
	m.change(w, r, func(metric *externalMetric) { metric.value = value })
}

// change alters a metric that exists.
func (m *externalMetrics) change(w http.ResponseWriter, r *http.Request, f func(*externalMetric)) {
	labels := parseLabels(r.URL.Query().Get("labels"))
	key := metricKey(r.PathValue("metric"), labels)
	m.mu.Lock()
	defer m.mu.Unlock()
	metric := m.metrics[key]
	if metric == nil {
		http.Error(w, fmt.Sprintf("metric %s not found", key), http.StatusNotFound)
		return
	}
	f(metric)
	m.reply(w, http.StatusOK, document{
		"status": "success", "metric": metric.name, "labels": labels, "value": metric.value, "failing": metric.fails,
	})
}

func (m *externalMetrics) handleCreate(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	value, err := strconv.Atoi(q.Get("value"))
	if err != nil {
		http.Error(w, "value param must be an integer", http.StatusBadRequest)
		return
	}
	metric := &externalMetric{name: r.PathValue("metric"), labels: parseLabels(q.Get("labels")), value: value, fails: q.Get("fail") == "true"}
	m.create(metric)
	m.reply(w, http.StatusCreated, document{
		"status": "created", "metric": metric.name, "labels": metric.labels, "value": value, "failing": metric.fails,
	})
}

func (m *externalMetrics) create(metric *externalMetric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.metrics[metricKey(metric.name, metric.labels)] = metric
}

func (e *externalMetric) matches(selector map[string]string) bool {
	for k, v := range selector {
		if e.labels[k] != v {
			return false
		}
	}
	return true
}

// metricKey tells metrics of the same name apart by their labels.
func metricKey(name string, labels map[string]string) string {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		name += "," + k + "=" + labels[k]
	}
	return name
}

// parseLabels reads a list such as "env=prod,region=west".
func parseLabels(list string) map[string]string {
	labels := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if k, v, ok := strings.Cut(pair, "="); ok {
			labels[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	return labels
}
