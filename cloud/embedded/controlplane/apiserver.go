package controlplane

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	crdopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/admission"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/aiopslab/aiopslab/cloud/embedded/controlplane/definitions"
	"github.com/aiopslab/aiopslab/cloud/embedded/loopback"
)

// Dialer opens connections into the cluster's network.
type Dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// apiServer is a running kube-apiserver.
type apiServer struct {
	self    *loopback.Transport
	config  *rest.Config // the server's own identity, over self
	doors   *doors
	parts   *components
	stopped chan error // receives one value when the server has shut down
}

// slowHooks are post-start hooks that poll with a leading second of sleep; bootstrap does their work.
var slowHooks = []string{"rbac/bootstrap-roles", "scheduling/bootstrap-system-priority-classes"}

// startAPIServer runs kube-apiserver, with the definitions of its types, until ctx ends. It serves
// before it is ready.
func startAPIServer(ctx context.Context, cfg Config, endpoint string,
	types common.GetOpenAPIDefinitions,
) (*apiServer, error) {
	opts, err := apiServerOptions(ctx, cfg, endpoint)
	if err != nil {
		return nil, err
	}
	self := &loopback.Transport{Log: cfg.Log}
	c, err := newConfig(opts, types, self)
	if err != nil {
		return nil, err
	}
	for _, g := range []*genericapiserver.Config{
		c.KubeAPIs.ControlPlane.Generic, &c.ApiExtensions.GenericConfig.Config,
		&c.Aggregator.GenericConfig.Config,
	} {
		g.DisabledPostStartHooks.Insert(slowHooks...)
	}
	useNetwork(c, cfg.Dial)
	documents := useLazyOpenAPI(c)
	d := &doors{}
	d.open(c)

	completed, err := c.Complete()
	if err != nil {
		return nil, err
	}
	aggregator, err := app.CreateServerChain(completed)
	if err != nil {
		return nil, fmt.Errorf("create kube-apiserver: %w", err)
	}
	documents.install(aggregator.GenericAPIServer)
	parts := newComponents()
	if err := parts.install(aggregator.GenericAPIServer.NextDelegate(),
		c.KubeAPIs.ControlPlane.StorageFactory.Configs()); err != nil {
		return nil, fmt.Errorf("create kube-apiserver: %w", err)
	}
	prepared, err := aggregator.PrepareRun()
	if err != nil {
		return nil, fmt.Errorf("prepare kube-apiserver: %w", err)
	}
	// All routes are installed. The definitions are big; they are made again for whoever asks for
	// documents.
	for _, v3 := range openAPIConfigs(c) {
		v3.Definitions = nil
	}
	s := &apiServer{
		self: self, doors: d, parts: parts, config: c.KubeAPIs.ControlPlane.Generic.LoopbackClientConfig,
		stopped: make(chan error, 1),
	}
	self.Serve(aggregator.GenericAPIServer.Handler)
	go func() { s.stopped <- prepared.Run(ctx) }()
	return s, nil
}

// useNetwork makes everything the API server dials go through the cluster's network: kubelets, the
// proxy subresources, webhooks and aggregated APIs. The transport is changed in place, because the
// webhook clients hold on to it too.
func useNetwork(c *app.Config, dial Dialer) {
	c.KubeAPIs.Extra.KubeletClientConfig.Lookup = func(egressselector.NetworkContext) (utilnet.DialFunc, error) {
		return dial, nil
	}
	c.KubeAPIs.ControlPlane.ProxyTransport.DialContext = dial
}

// useLazyOpenAPI takes the documents of the built-in groups out of the servers' start. The CRD
// server keeps its own: without it CRDs get no documents at all. Its and the aggregator's are made of
// their own few definitions instead of everybody's.
func useLazyOpenAPI(c *app.Config) *lazyOpenAPI {
	kube, aggregator, crds := c.KubeAPIs.ControlPlane.Generic, c.Aggregator.GenericConfig, c.ApiExtensions.GenericConfig
	l := newLazyOpenAPI(kube.OpenAPIConfig, kube.OpenAPIV3Config)
	l.v2.Info.Version = Version // Who completes the configuration does not see it, and protobuf requires one.
	kube.OpenAPIConfig, aggregator.OpenAPIConfig = nil, nil
	kube.SkipOpenAPIInstallation = true
	namer := openapinamer.NewDefinitionNamer(apiextensionsapiserver.Scheme)
	crds.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(crdopenapi.GetOpenAPIDefinitions, namer)
	crds.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(crdopenapi.GetOpenAPIDefinitions, namer)
	crds.OpenAPIConfig.Info.Title, crds.OpenAPIV3Config.Info.Title = openAPITitle, openAPITitle
	aggregator.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions.Aggregator,
		openapinamer.NewDefinitionNamer(aggregatorscheme.Scheme))
	aggregator.OpenAPIV3Config.Info.Title = openAPITitle
	for _, v3 := range openAPIConfigs(c) {
		v3.GetOperationIDAndTagsFromRoute = operationIDAndTags
	}
	chain := aggregator.BuildHandlerChainFunc
	aggregator.BuildHandlerChainFunc = func(h http.Handler, g *genericapiserver.Config) http.Handler {
		return chain(l.wrap(h), g)
	}
	return l
}

// openAPIConfigs are those of all servers.
func openAPIConfigs(c *app.Config) []*common.OpenAPIV3Config {
	return []*common.OpenAPIV3Config{
		c.KubeAPIs.ControlPlane.Generic.OpenAPIV3Config, c.ApiExtensions.GenericConfig.OpenAPIV3Config,
		c.Aggregator.GenericConfig.OpenAPIV3Config,
	}
}

// operationIDAndTags adapts what the servers are configured with. Where it is left to the builder of
// documents, that makes a closure which keeps all definitions in memory.
func operationIDAndTags(r common.Route) (string, []string, error) {
	route, ok := r.(*restfuladapter.RouteAdapter)
	if !ok {
		return "", nil, fmt.Errorf("a %T is not a route of the API server", r)
	}
	return openapinamer.GetOperationIDAndTags(route.Route)
}

func apiServerOptions(ctx context.Context, cfg Config, endpoint string) (options.CompletedOptions, error) {
	fail := func(err error) (options.CompletedOptions, error) {
		return options.CompletedOptions{}, fmt.Errorf("configure kube-apiserver: %w", err)
	}
	file, err := cfg.PKI.files(cfg.Dir, map[string]Identity{
		"apiserver": {
			Name: "kube-apiserver",
			DNS: []string{
				"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc.cluster.local",
			},
			IPs: append([]net.IP{net.IPv4(127, 0, 0, 1), cfg.Address}, cfg.ServiceIP),
		},
		"kubelet-client": {
			Name:   "kube-apiserver-kubelet-client",
			Groups: []string{"kubeadm:cluster-admins", "system:masters"},
		},
		"front-proxy": {Name: "front-proxy-client"},
	})
	if err != nil {
		return fail(err)
	}
	s := options.NewServerRunOptions()
	// A registry of its own lets a process start another plane after this one.
	registry := basecompatibility.NewComponentGlobalsRegistry()
	if err := registry.Register(basecompatibility.DefaultKubeComponent, compatibility.DefaultBuildEffectiveVersion(),
		utilfeature.DefaultMutableFeatureGate.DeepCopy()); err != nil {
		return fail(err)
	}
	s.GenericServerRunOptions.ComponentGlobalsRegistry = registry
	s.Admission.GenericAdmission.Decorators = append(s.Admission.GenericAdmission.Decorators,
		admission.DecoratorFunc(decorateAdmission))
	s.SecureServing.Listener = cfg.Listener
	s.SecureServing.BindAddress, s.SecureServing.BindPort = net.IPv4(127, 0, 0, 1), cfg.Port
	// The address pods reach the server at. A loopback address is not allowed here.
	s.GenericServerRunOptions.AdvertiseAddress = cfg.Address
	flags := []string{
		"--etcd-servers=" + endpoint,
		"--tls-cert-file=" + file("apiserver.crt"), "--tls-private-key-file=" + file("apiserver.key"),
		"--client-ca-file=" + file("ca.crt"),
		"--kubelet-client-certificate=" + file("kubelet-client.crt"),
		"--kubelet-client-key=" + file("kubelet-client.key"),
		"--kubelet-certificate-authority=" + file("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + file("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client", "--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + file("front-proxy.crt"), "--proxy-client-key-file=" + file("front-proxy.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + file("sa.pub"), "--service-account-signing-key-file=" + file("sa.key"),
		"--service-cluster-ip-range=" + cfg.ServiceCIDR,
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--profiling=false",
	}
	set := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, f := range s.Flags().FlagSets {
		set.AddFlagSet(f)
	}
	if err := set.Parse(flags); err != nil {
		return fail(err)
	}
	if err := registry.Set(); err != nil {
		return fail(err)
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	completed, err := s.Complete(ctx)
	if err != nil {
		return fail(err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return fail(utilerrors.NewAggregate(errs))
	}
	return completed, nil
}

// waitReady returns when the server says it is ready, or with what it still lacks.
func (s *apiServer) waitReady(ctx context.Context, c rest.Interface) error {
	const poll = 5 * time.Millisecond
	for {
		b, err := c.Get().AbsPath("/readyz").DoRaw(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(poll):
		case err := <-s.stopped:
			s.stopped <- err
			return fmt.Errorf("kube-apiserver stopped while it started: %w", err)
		case <-ctx.Done():
			var missing []string
			for line := range strings.Lines(string(b)) {
				if name, ok := strings.CutPrefix(line, "[-]"); ok {
					missing = append(missing, strings.Fields(name)[0])
				}
			}
			return fmt.Errorf("kube-apiserver is not ready (%s): %w", strings.Join(missing, ", "), ctx.Err())
		}
	}
}
