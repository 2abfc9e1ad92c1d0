package controlplane

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/filters"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/util/openapi"
	"k8s.io/apiserver/pkg/util/webhook"
	clientgoinformers "k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/kubernetes/pkg/kubeapiserver"

	"github.com/aiopslab/aiopslab/cloud/embedded/loopback"
)

const openAPITitle = "Kubernetes"

// newConfig does what kube-apiserver's app.NewConfig does, except that the server talks to itself
// over the loopback transport. Stock, it makes an RSA certificate for that and shakes hands over
// TCP, which is a good part of its start. Compare with app.NewConfig and with BuildGenericConfig of
// k8s.io/kubernetes/pkg/controlplane/apiserver when the version of Kubernetes changes.
func newConfig(opts options.CompletedOptions, types common.GetOpenAPIDefinitions,
	self *loopback.Transport,
) (*app.Config, error) {
	generic, informers, storage, err := genericConfig(opts, types, self)
	if err != nil {
		return nil, err
	}
	kube, resolver, initializers, err := app.CreateKubeAPIServerConfig(opts, generic, informers, storage)
	if err != nil {
		return nil, err
	}
	cp := &kube.ControlPlane
	authInfo := webhook.NewDefaultAuthenticationInfoResolverWrapper(cp.ProxyTransport, cp.Generic.EgressSelector,
		cp.Generic.LoopbackClientConfig, cp.Generic.TracerProvider)
	extensions, err := controlplaneapiserver.CreateAPIExtensionsConfig(*cp.Generic, cp.VersionedInformers, initializers,
		opts.CompletedOptions, opts.MasterCount, resolver, authInfo)
	if err != nil {
		return nil, err
	}
	aggregator, err := controlplaneapiserver.CreateAggregatorConfig(*cp.Generic, opts.CompletedOptions,
		cp.VersionedInformers, resolver, cp.ProxyTransport, cp.Extra.PeerProxy, initializers)
	if err != nil {
		return nil, err
	}
	return &app.Config{Options: opts, KubeAPIs: kube, ApiExtensions: extensions, Aggregator: aggregator}, nil
}

func genericConfig(s options.CompletedOptions, types common.GetOpenAPIDefinitions,
	self *loopback.Transport) (*genericapiserver.Config, clientgoinformers.SharedInformerFactory,
	*serverstorage.DefaultStorageFactory, error,
) {
	fail := func(err error) (*genericapiserver.Config, clientgoinformers.SharedInformerFactory,
		*serverstorage.DefaultStorageFactory, error,
	) {
		return nil, nil, nil, fmt.Errorf("configure kube-apiserver: %w", err)
	}
	resources := controlplane.DefaultAPIResourceConfigSource()
	genericapiserver.SetHostnameFuncForTests(hostName) // The name of the server's lease is made of it.
	g := genericapiserver.NewConfig(legacyscheme.Codecs)
	g.Flagz = s.Flagz
	g.MergedResourceConfig = resources
	if err := s.GenericServerRunOptions.ApplyTo(g); err != nil {
		return fail(err)
	}
	if err := s.SecureServing.SecureServingOptions.ApplyTo(&g.SecureServing); err != nil {
		return fail(err)
	}
	g.LoopbackClientConfig = self.Config()
	client, err := clientset.NewForConfig(g.LoopbackClientConfig)
	if err != nil {
		return fail(err)
	}
	informers := clientgoinformers.NewSharedInformerFactoryWithOptions(client, 10*time.Minute,
		clientgoinformers.WithTransform(headStart))

	if err := s.Features.ApplyTo(g, client, informers); err != nil {
		return fail(err)
	}
	if err := s.APIEnablement.ApplyTo(g, resources, legacyscheme.Scheme); err != nil {
		return fail(err)
	}
	if err := s.EgressSelector.ApplyTo(g); err != nil {
		return fail(err)
	}
	if err := s.Traces.ApplyTo(g.EgressSelector, g); err != nil {
		return fail(err)
	}
	types = openapi.GetOpenAPIDefinitionsWithoutDisabledFeatures(types)
	namer := openapinamer.NewDefinitionNamer(
		[]*runtime.Scheme{legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme}...)
	g.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(types, namer)
	g.OpenAPIConfig.Info.Title = openAPITitle
	g.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(types, namer)
	g.OpenAPIV3Config.Info.Title = openAPITitle
	g.LongRunningFunc = filters.BasicLongRunningRequestCheck(sets.NewString("watch", "proxy"),
		sets.NewString("attach", "exec", "proxy", "log", "portforward"))

	s.Etcd.StorageConfig.Transport.TracerProvider = g.TracerProvider
	storageConfig := kubeapiserver.NewStorageFactoryConfigEffectiveVersion(g.EffectiveVersion)
	storageConfig.APIResourceConfig = g.MergedResourceConfig
	storageConfig.DefaultResourceEncoding.SetEffectiveVersion(g.EffectiveVersion)
	storage, err := storageConfig.Complete(s.Etcd).New()
	if err != nil {
		return fail(err)
	}
	storage.StorageConfig.StorageObjectCountTracker = g.StorageObjectCountTracker
	if err := s.Etcd.ApplyWithStorageFactoryTo(storage, g); err != nil {
		return fail(err)
	}
	ctx := wait.ContextForChannel(g.DrainedNotify())
	if err := s.Authentication.ApplyTo(ctx, &g.Authentication, g.SecureServing, g.EgressSelector, g.OpenAPIConfig,
		g.OpenAPIV3Config, client, informers, g.APIServerID); err != nil {
		return fail(err)
	}
	g.Authorization.Authorizer, g.RuleResolver, _, err = controlplaneapiserver.BuildAuthorizer(ctx, s.CompletedOptions,
		g.EgressSelector, g.APIServerID, informers)
	if err != nil {
		return fail(err)
	}
	if err := s.Audit.ApplyTo(g); err != nil {
		return fail(err)
	}
	g.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	return g, informers, storage, nil
}

// headStart delays what the API server's own informers tell of a new service. Its address is
// recorded in an object of its own just before; the loop that checks addresses complains in an event
// if it learns of the service first, which over a real wire it never does.
func headStart(obj any) (any, error) {
	const recent, head = 2 * time.Second, 5 * time.Millisecond
	if s, ok := obj.(*v1.Service); ok && time.Since(s.CreationTimestamp.Time) < recent {
		time.Sleep(head)
	}
	return dropManagedFields(obj)
}

// dropManagedFields keeps out of informers what none of their users reads.
func dropManagedFields(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil && m.GetManagedFields() != nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}
