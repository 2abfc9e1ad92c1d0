package kubestatemetrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/kube-state-metrics/v2/pkg/allowdenylist"
	"k8s.io/kube-state-metrics/v2/pkg/builder"
	generator "k8s.io/kube-state-metrics/v2/pkg/metric_generator"
	"k8s.io/kube-state-metrics/v2/pkg/metricshandler"
	"k8s.io/kube-state-metrics/v2/pkg/optin"
	"k8s.io/kube-state-metrics/v2/pkg/options"

	"github.com/aiopslab/aiopslab/image/incluster"
	"github.com/aiopslab/aiopslab/kit"
)

// Version is the version of kube-state-metrics that is linked in.
const Version = "v2.20.0"

// Image returns the image.
func Image() kit.Image {
	return kit.Image{
		Names:      []string{"registry.k8s.io/kube-state-metrics/kube-state-metrics"},
		Tags:       `v2\.\d+\.\d+`,
		Entrypoint: []string{"/kube-state-metrics"},
		Programs:   map[string]kit.Program{"/kube-state-metrics": Main},
		User:       "65534",
		Memory:     32 << 20,
		Size:       16_000_000,
	}
}

func parseFlags(env *kit.Env) (*options.Options, error) {
	o := options.NewOptions()
	o.TotalShards = 1
	f := pflag.NewFlagSet("kube-state-metrics", pflag.ContinueOnError)
	f.SetOutput(env.Stderr)
	f.StringVar(&o.Host, "host", "::", "Host to expose metrics on.")
	f.IntVar(&o.Port, "port", 8080, "Port to expose metrics on.")
	f.StringVar(&o.TelemetryHost, "telemetry-host", "::", "Host to expose kube-state-metrics self metrics on.")
	f.IntVar(&o.TelemetryPort, "telemetry-port", 8081, "Port to expose kube-state-metrics self metrics on.")
	f.BoolVar(&o.UseAPIServerCache, "use-apiserver-cache", false, "Sets resourceVersion=0 for ListWatch requests.")
	f.Var(&o.Resources, "resources", "Comma-separated list of resources to be enabled.")
	f.Var(&o.Namespaces, "namespaces", "Comma-separated list of namespaces to be enabled.")
	f.Var(&o.NamespacesDenylist, "namespaces-denylist", "Comma-separated list of namespaces not to be enabled.")
	f.Var(&o.MetricAllowlist, "metric-allowlist", "Comma-separated list of metrics to be exposed.")
	f.Var(&o.MetricDenylist, "metric-denylist", "Comma-separated list of metrics not to be enabled.")
	f.Var(&o.MetricOptInList, "metric-opt-in-list", "Comma-separated list of metrics which are opt-in.")
	f.Var(&o.LabelsAllowList, "metric-labels-allowlist", "Comma-separated list of additional Kubernetes label keys.")
	f.Var(&o.AnnotationsAllowList, "metric-annotations-allowlist",
		"Comma-separated list of Kubernetes annotation keys.")
	if err := f.Parse(env.Args[1:]); err != nil {
		fmt.Fprintln(env.Stderr, err)
		return nil, kit.Exit(2)
	}
	if len(o.Resources) == 0 {
		o.Resources = options.DefaultResources
	}
	return o, nil
}

// Main is the program.
func Main(ctx context.Context, env *kit.Env) error {
	opts, err := parseFlags(env)
	if err != nil {
		return err
	}
	config, err := incluster.Config(env)
	if err != nil {
		return fmt.Errorf("failed to create client: %w", err)
	}
	config.UserAgent = "kube-state-metrics/" + Version
	config.ContentType = kruntime.ContentTypeProtobuf
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("failed to create client: %w", err)
	}
	reg := prometheus.NewRegistry()
	store, err := newStore(opts, client, reg)
	if err != nil {
		return err
	}
	metrics := metricshandler.New(opts, client, store, false)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = metrics.Run(ctx) })
	var failed error
	for _, s := range []struct {
		name, host string
		port       int
		metrics    http.Handler
	}{
		{"telemetry", opts.TelemetryHost, opts.TelemetryPort, promhttp.HandlerFor(reg, promhttp.HandlerOpts{})},
		{"metrics", opts.Host, opts.Port, metrics},
	} {
		ln, err := env.Net.Listen("tcp", net.JoinHostPort(s.host, strconv.Itoa(s.port)))
		if err != nil {
			failed = err
			cancel()
			break
		}
		logf(env, "Started %s server at %s", s.name, ln.Addr())
		srv := &http.Server{Handler: routes(s.metrics)}
		context.AfterFunc(ctx, func() { srv.Close() })
		wg.Go(func() { _ = srv.Serve(ln) })
	}
	<-ctx.Done()
	return failed
}

// logf writes a line as klog does.
func logf(env *kit.Env, format string, args ...any) {
	fmt.Fprintf(env.Stderr, "I%s       1 server.go:1] %s\n", time.Now().UTC().Format("0102 15:04:05.000000"),
		fmt.Sprintf(format, args...))
}

// newStore makes what turns objects into metrics.
func newStore(o *options.Options, client clientset.Interface, reg prometheus.Registerer) (*builder.Builder, error) {
	b := builder.NewBuilder()
	b.WithMetrics(reg)
	if err := b.WithEnabledResources(o.Resources.AsSlice()); err != nil {
		return nil, fmt.Errorf("failed to set up resources: %w", err)
	}
	namespaces := o.Namespaces.GetNamespaces()
	b.WithNamespaces(namespaces)
	b.WithFieldSelectorFilter(namespaces.GetExcludeNSFieldSelector(o.NamespacesDenylist))
	allowed, err := allowdenylist.New(o.MetricAllowlist, o.MetricDenylist)
	if err == nil {
		err = allowed.Parse()
	}
	if err != nil {
		return nil, fmt.Errorf("error initializing the allowdeny list: %w", err)
	}
	optIn, err := optin.NewMetricFamilyFilter(o.MetricOptInList)
	if err != nil {
		return nil, fmt.Errorf("error initializing the opt-in metric list: %w", err)
	}
	b.WithFamilyGeneratorFilter(generator.NewCompositeFamilyGeneratorFilter(allowed, optIn))
	b.WithUsingAPIServerCache(o.UseAPIServerCache)
	b.WithGenerateStoresFunc(b.DefaultGenerateStoresFunc())
	b.WithKubeClient(client)
	b.WithSharding(0, 1)
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "kube_state_metrics_build_info", Help: "A metric with a constant '1' value.",
		ConstLabels: prometheus.Labels{"version": Version, "goversion": runtime.Version()},
	}, func() float64 { return 1 }))
	return b, errors.Join(b.WithAllowAnnotations(o.AnnotationsAllowList), b.WithAllowLabels(o.LabelsAllowList))
}

func routes(metrics http.Handler) http.Handler {
	m := http.NewServeMux()
	m.Handle("GET /metrics", metrics)
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		m.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "OK") })
	}
	m.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "kube-state-metrics "+Version+": see /metrics")
	})
	return m
}
