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

// Namespace is where the telemetry of the cluster runs, unless it shares the cluster with that of other runs.
const Namespace = "observe"

// PrometheusHost is where Prometheus answers inside a cluster, at port 80. See [New] for the tenancy.
func PrometheusHost(t *cloud.Tenancy) string {
	return server + "." + t.Name(Namespace) + ".svc.cluster.local"
}

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
	// Registry is the prefix of a registry that has the images which Deploy needs; none if they are where their names
	// say.
	Registry string
	// MaxAnswer is how many bytes of an answer of Prometheus or Jaeger are read; 0 for all. What is longer is cut, and
	// an error. It is for who shows what programs in the cluster say, whatever has become of them.
	MaxAnswer  int64
	tenancy    *cloud.Tenancy // what Deploy may use of the cluster, and watch; nil for all of it
	config     *rest.Config
	client     kubernetes.Interface
	http       *http.Client
	prometheus promv1.API
	external   Traces // instead of the application's own
	loki       *loki  // instead of the cluster's API
}

// New returns an observer of the cluster with the given API and network. In a cluster that is somebody's, it looks no
// further than the tenancy; for one of the lab's own that is nil.
func New(config *rest.Config, dial func(ctx context.Context, network, address string) (net.Conn, error),
	t *cloud.Tenancy,
) (*Observer, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // A query reads the logs of all pods at once.
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext, transport.Proxy = dial, nil
	o := &Observer{tenancy: t, config: config, client: client}
	o.http = &http.Client{Transport: bounded{transport, o}}
	p, err := api.NewClient(api.Config{Address: "http://" + PrometheusHost(t), RoundTripper: o.http.Transport})
	if err != nil {
		return nil, err
	}
	o.prometheus = promv1.NewAPI(p)
	return o, nil
}

// bounded cuts answers that are longer than the observer reads.
type bounded struct {
	*http.Transport
	o *Observer
}

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.Transport.RoundTrip(r)
	if err == nil && b.o.MaxAnswer > 0 {
		res.Body = http.MaxBytesReader(nil, res.Body, b.o.MaxAnswer)
	}
	return res, err
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
	if o.Registry != "" {
		if err := manifest.Under(o.Registry, objects); err != nil {
			return err
		}
	}
	c, err := manifest.NewClient(o.config)
	if err != nil {
		return err
	}
	if t := o.tenancy; t != nil {
		c.Labels = t.Labels
		if objects, err = confine(objects, t); err != nil {
			return err
		}
	}
	namespace := o.tenancy.Name(Namespace)
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
		if err := c.Apply(early, namespace, first); err != nil {
			return err
		}
		return c.WaitReady(early, namespace, first)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	if err := c.Apply(ctx, namespace, last); err != nil {
		return err
	}
	return c.WaitReady(ctx, namespace, last)
}

// Prometheus is the HTTP API of the cluster's Prometheus: PromQL, series, labels, targets and rules.
func (o *Observer) Prometheus() promv1.API { return o.prometheus }
