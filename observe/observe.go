package observe

import (
	"context"
	"embed"
	"io/fs"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/internal/manifest"
)

// Namespace is where the telemetry of the cluster runs.
const Namespace = "observe"

// PrometheusHost is where Prometheus answers inside the cluster, at port 80.
const PrometheusHost = "prometheus-server." + Namespace + ".svc.cluster.local"

//go:embed manifests/*.yaml
var manifests embed.FS

// Manifests returns what Deploy applies.
func Manifests() fs.FS {
	sub, err := fs.Sub(manifests, "manifests")
	if err != nil {
		panic(err) // The directory is embedded.
	}
	return sub
}

// Observer reads the telemetry of one cluster. It is safe for concurrent use.
type Observer struct {
	// Tenancy is what Deploy may use of the cluster, and watch; nil for all of it.
	Tenancy    *cloud.Tenancy
	config     *rest.Config
	client     kubernetes.Interface
	http       *http.Client
	prometheus promv1.API
}

// New returns an observer of the cluster with the given API and network.
func New(config *rest.Config, dial func(ctx context.Context, network, address string) (net.Conn,
	error),
) (*Observer, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // A query reads the logs of all pods at once.
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext, transport.Proxy = dial, nil
	p, err := api.NewClient(api.Config{Address: "http://" + PrometheusHost, RoundTripper: transport})
	if err != nil {
		return nil, err
	}
	return &Observer{
		config: config, client: client, http: &http.Client{Transport: transport},
		prometheus: promv1.NewAPI(p),
	}, nil
}

// Close closes idle connections.
func (o *Observer) Close() { o.http.CloseIdleConnections() }

// The names of the Deployments.
const (
	server       = "prometheus-server"
	stateMetrics = "prometheus-kube-state-metrics"
)

// Deploy applies the manifests and waits until Prometheus and kube-state-metrics are ready. Prometheus is started
// after watched has returned. So it does not see, and alert on, pods that are not ready because they have just
// started. Watched may be nil. Deploy may be called again.
func (o *Observer) Deploy(ctx context.Context, watched func(context.Context) error) error {
	objects, err := manifest.Read(Manifests())
	if err != nil {
		return err
	}
	c, err := manifest.NewClient(o.config)
	if err != nil {
		return err
	}
	if t := o.Tenancy; t != nil {
		c.Labels = t.Labels
		if objects, err = confine(objects, t.Namespaces, t.Run); err != nil {
			return err
		}
	}
	var first, last []*unstructured.Unstructured
	for _, u := range objects {
		if u.GetKind() == "Deployment" && u.GetName() == server {
			last = append(last, u)
		} else {
			first = append(first, u)
		}
	}
	g, early := errgroup.WithContext(ctx)
	if watched != nil {
		g.Go(func() error { return watched(early) })
	}
	g.Go(func() error {
		if err := c.Apply(early, Namespace, first); err != nil {
			return err
		}
		return c.WaitReady(early, Namespace, first)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	if err := c.Apply(ctx, Namespace, last); err != nil {
		return err
	}
	return c.WaitReady(ctx, Namespace, last)
}

// Prometheus is the HTTP API of the cluster's Prometheus: PromQL, series, labels, targets and rules.
func (o *Observer) Prometheus() promv1.API { return o.prometheus }
