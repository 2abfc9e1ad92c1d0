package controlplane

import (
	"context"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	apiextensionsscheme "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	"k8s.io/apimachinery/pkg/runtime/schema"
	pluginvalidating "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	quotageneric "k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/dynamic"
	k8sscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/validation/spec"
	pkgcontroller "k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/certificates/cleaner"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/certificates/signer"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/endpoint"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/endpointslicemirroring"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	hpametrics "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"k8s.io/kubernetes/pkg/controller/podgc"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/replication"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/servicecidrs"
	"k8s.io/kubernetes/pkg/controller/statefulset"
	"k8s.io/kubernetes/pkg/controller/tainteviction"
	"k8s.io/kubernetes/pkg/controller/ttlafterfinished"
	"k8s.io/kubernetes/pkg/controller/validatingadmissionpolicystatus"
	"k8s.io/kubernetes/pkg/controller/volume/ephemeral"
	"k8s.io/kubernetes/pkg/controller/volume/persistentvolume"
	"k8s.io/kubernetes/pkg/controller/volume/pvcprotection"
	"k8s.io/kubernetes/pkg/controller/volume/pvprotection"
	"k8s.io/kubernetes/pkg/controller/volume/vacprotection"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"
	satoken "k8s.io/kubernetes/pkg/serviceaccount"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"

	"github.com/aiopslab/aiopslab/cloud/embedded/controlplane/definitions"
)

// workers returns the runs of a controller that only wants to know how many workers it has.
func workers(run func(context.Context, int), n int) []func(context.Context) {
	return []func(context.Context){func(ctx context.Context) { run(ctx, n) }}
}

// controllers are the loops of kube-controller-manager with its default settings. Left out are
// those for clouds, CSI attachment, node address management and bootstrap tokens, which have no
// object here, and device claims. Numbers of workers are smaller than stock: a loop that waits
// still costs its stack.
var controllers = []controller{
	{"deployment", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		apps := k.informers.Apps().V1()
		c, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(),
			k.informers.Core().V1().Pods(), k.client)
		if err != nil {
			return nil, err
		}
		return workers(c.Run, 4), nil
	}},
	{"replicaset", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		c := replicaset.NewReplicaSetController(ctx, k.informers.Apps().V1().ReplicaSets(),
			k.informers.Core().V1().Pods(), k.client, replicaset.BurstReplicas)
		return workers(c.Run, 4), nil
	}},
	{"replicationcontroller", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		core := k.informers.Core().V1()
		c := replication.NewReplicationManager(ctx, core.Pods(), core.ReplicationControllers(), k.client,
			replication.BurstReplicas)
		return workers(c.Run, 1), nil
	}},
	{"statefulset", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		core, apps := k.informers.Core().V1(), k.informers.Apps().V1()
		c := statefulset.NewStatefulSetController(ctx, core.Pods(), apps.StatefulSets(), core.PersistentVolumeClaims(),
			apps.ControllerRevisions(), k.client)
		return workers(c.Run, 4), nil
	}},
	{"daemonset", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		core, apps := k.informers.Core().V1(), k.informers.Apps().V1()
		c, err := daemon.NewDaemonSetsController(ctx, apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(),
			core.Nodes(), k.client, flowcontrol.NewBackOff(time.Second, 15*time.Minute))
		if err != nil {
			return nil, err
		}
		return workers(c.Run, 2), nil
	}},
	{"job", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		c, err := job.NewController(ctx, k.client, k.informers.Core().V1().Pods(), k.informers.Batch().V1().Jobs(), nil,
			nil)
		if err != nil {
			return nil, err
		}
		return workers(c.Run, 2), nil
	}},
	{"cronjob", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		c, err := cronjob.NewControllerV2(ctx, k.informers.Batch().V1().Jobs(), k.informers.Batch().V1().CronJobs(),
			k.client)
		if err != nil {
			return nil, err
		}
		return workers(c.Run, 2), nil
	}},
	{"ttl-after-finished", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		return workers(ttlafterfinished.New(ctx, k.informers.Batch().V1().Jobs(), k.client).Run, 1), nil
	}},

	{"endpoints", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		core := k.informers.Core().V1()
		return workers(endpoint.NewEndpointController(ctx, core.Pods(), core.Services(), core.Endpoints(), k.client,
			0).Run, 2), nil
	}},
	{"endpointslice", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		core := k.informers.Core().V1()
		c := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(),
			k.informers.Discovery().V1().EndpointSlices(), 100, k.client, 0)
		return workers(c.Run, 4), nil
	}},
	{"endpointslice-mirroring", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		core := k.informers.Core().V1()
		c := endpointslicemirroring.NewController(ctx, core.Endpoints(), k.informers.Discovery().V1().EndpointSlices(),
			core.Services(), 1000, k.client, 0)
		return workers(c.Run, 1), nil
	}},
	{"service-cidr", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		net := k.informers.Networking().V1()
		return workers(servicecidrs.NewController(ctx, net.ServiceCIDRs(), net.IPAddresses(), k.client).Run, 1), nil
	}},

	{"namespace", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		c := namespace.NewNamespaceController(ctx, k.client, k.metadata,
			k.client.Discovery().ServerPreferredNamespacedResources, k.informers.Core().V1().Namespaces(),
			5*time.Minute, v1.FinalizerKubernetes)
		return workers(c.Run, 5), nil
	}},
	{"garbage-collector", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		ignored := map[schema.GroupResource]struct{}{
			{Resource: "events"}:                         {},
			{Group: "events.k8s.io", Resource: "events"}: {},
		}
		graph := garbagecollector.NewDependencyGraphBuilder(ctx, k.metadata, k.mapper, ignored, k.objects, k.started)
		c, err := garbagecollector.NewComposedGarbageCollector(ctx, k.client, k.metadata, k.mapper, graph)
		if err != nil {
			return nil, err
		}
		return []func(context.Context){
			func(ctx context.Context) { c.Run(ctx, 10, 30*time.Second) },
			func(ctx context.Context) { c.Sync(ctx, k.client.Discovery(), 30*time.Second) },
		}, nil
	}},
	{"pod-garbage-collector", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		core := k.informers.Core().V1()
		return []func(context.Context){podgc.NewPodGC(ctx, k.client, core.Pods(), core.Nodes(), 12500).Run}, nil
	}},
	{"node-lifecycle", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		core := k.informers.Core().V1()
		c, err := nodelifecycle.NewNodeLifecycleController(ctx, k.informers.Coordination().V1().Leases(), core.Pods(),
			core.Nodes(), k.informers.Apps().V1().DaemonSets(), k.client,
			k.timing.NodeMonitorPeriod, time.Minute, k.timing.NodeMonitorGrace, 0.1, 0.01, 50, 0.55)
		if err != nil {
			return nil, err
		}
		return []func(context.Context){c.Run}, nil
	}},
	{"taint-eviction", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		core := k.informers.Core().V1()
		c, err := tainteviction.New(ctx, k.client, core.Pods(), core.Nodes(), "taint-eviction-controller")
		if err != nil {
			return nil, err
		}
		return []func(context.Context){c.Run}, nil
	}},

	{"serviceaccount", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		core := k.informers.Core().V1()
		c, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(),
			core.Namespaces(), k.client, serviceaccount.DefaultServiceAccountsControllerOptions())
		if err != nil {
			return nil, err
		}
		return workers(c.Run, 1), nil
	}},
	{"serviceaccount-token", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		key, err := keyutil.ParsePrivateKeyPEM(k.pki.SAKey)
		if err != nil {
			return nil, err
		}
		generator, err := satoken.JWTTokenGenerator(satoken.LegacyIssuer, key)
		if err != nil {
			return nil, err
		}
		core := k.informers.Core().V1()
		c, err := serviceaccount.NewTokensController(klog.FromContext(ctx), core.ServiceAccounts(), core.Secrets(),
			k.client, serviceaccount.TokensControllerOptions{TokenGenerator: generator, RootCA: k.pki.CACert})
		if err != nil {
			return nil, err
		}
		return workers(c.Run, 1), nil
	}},
	{"root-ca-publisher", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		core := k.informers.Core().V1()
		c, err := rootcacertpublisher.NewPublisher(core.ConfigMaps(), core.Namespaces(), k.client, k.pki.CACert)
		if err != nil {
			return nil, err
		}
		return workers(c.Run, 1), nil
	}},
	// Of the signers of Kubernetes the only one is that of clients. Certificates of kubelets would let
	// whoever can approve them pass for a node; they are made when nodes are.
	{"certificatesigningrequest-signing", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		c, err := signer.NewKubeAPIServerClientCSRSigningController(ctx, k.client,
			k.informers.Certificates().V1().CertificateSigningRequests(),
			filepath.Join(k.dir, "ca.crt"), filepath.Join(k.dir, "ca.key"), 365*24*time.Hour)
		if err != nil {
			return nil, err
		}
		return workers(c.Run, 1), nil
	}},
	{"certificatesigningrequest-cleaner", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		requests := k.informers.Certificates().V1().CertificateSigningRequests()
		return workers(cleaner.NewCSRCleanerController(k.client.CertificatesV1().CertificateSigningRequests(),
			requests).Run, 1), nil
	}},
	{"clusterrole-aggregation", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		return workers(clusterroleaggregation.NewClusterRoleAggregation(k.informers.Rbac().V1().ClusterRoles(),
			k.client.RbacV1()).Run, 1), nil
	}},
	{"validatingadmissionpolicy-status", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		checker := &pluginvalidating.TypeChecker{
			RestMapper:     k.mapper,
			SchemaResolver: &lazySchemas{client: resolver.ClientDiscoveryResolver{Discovery: k.client.Discovery()}},
		}
		c, err := validatingadmissionpolicystatus.NewController(
			k.informers.Admissionregistration().V1().ValidatingAdmissionPolicies(),
			k.client.AdmissionregistrationV1().ValidatingAdmissionPolicies(), checker)
		if err != nil {
			return nil, err
		}
		return workers(c.Run, 1), nil
	}},

	{"horizontal-pod-autoscaler", newAutoscaler},
	{"resourcequota", newQuota},
	{"disruption", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		sc, err := k.scaleClient()
		if err != nil {
			return nil, err
		}
		core, apps := k.informers.Core().V1(), k.informers.Apps().V1()
		c := disruption.NewDisruptionController(ctx, core.Pods(), k.informers.Policy().V1().PodDisruptionBudgets(),
			core.ReplicationControllers(), apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(), k.client,
			k.mapper, sc, k.client.Discovery())
		return workers(c.Run, 1), nil
	}},

	{"persistentvolume-binder", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		core := k.informers.Core().V1()
		c, err := persistentvolume.NewController(ctx, persistentvolume.ControllerParameters{
			KubeClient: k.client, SyncPeriod: 15 * time.Second, VolumeInformer: core.PersistentVolumes(),
			ClaimInformer: core.PersistentVolumeClaims(), ClassInformer: k.informers.Storage().V1().StorageClasses(),
			PodInformer: core.Pods(), NodeInformer: core.Nodes(), EnableDynamicProvisioning: true,
		})
		if err != nil {
			return nil, err
		}
		return []func(context.Context){c.Run}, nil
	}},
	{"persistentvolumeclaim-protection", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		core := k.informers.Core().V1()
		c, err := pvcprotection.NewPVCProtectionController(klog.FromContext(ctx), core.PersistentVolumeClaims(),
			core.Pods(), k.client)
		if err != nil {
			return nil, err
		}
		return workers(c.Run, 1), nil
	}},
	{"persistentvolume-protection", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		c, err := pvprotection.NewPVProtectionController(klog.FromContext(ctx),
			k.informers.Core().V1().PersistentVolumes(), k.client)
		if err != nil {
			return nil, err
		}
		return workers(c.Run, 1), nil
	}},
	{"volumeattributesclass-protection", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		core := k.informers.Core().V1()
		c, err := vacprotection.NewVACProtectionController(klog.FromContext(ctx), k.client,
			core.PersistentVolumeClaims(), core.PersistentVolumes(),
			k.informers.Storage().V1().VolumeAttributesClasses())
		if err != nil {
			return nil, err
		}
		return workers(c.Run, 1), nil
	}},
	{"ephemeral-volume", func(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
		core := k.informers.Core().V1()
		c, err := ephemeral.NewController(ctx, k.client, core.Pods(), core.PersistentVolumeClaims())
		if err != nil {
			return nil, err
		}
		return workers(c.Run, 1), nil
	}},
}

func (k *controllerKit) scaleClient() (scale.ScalesGetter, error) {
	kinds := scale.NewDiscoveryScaleKindResolver(k.client.Discovery())
	return scale.NewForConfig(k.config, k.mapper, dynamic.LegacyAPIPathResolverFunc, kinds)
}

func newAutoscaler(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
	sc, err := k.scaleClient()
	if err != nil {
		return nil, err
	}
	resources, err := resourceclient.NewForConfig(k.config)
	if err != nil {
		return nil, err
	}
	external, err := external_metrics.NewForConfig(k.config)
	if err != nil {
		return nil, err
	}
	apis := custom_metrics.NewAvailableAPIsGetter(k.client.Discovery())
	metrics := hpametrics.NewRESTMetricsClient(resources, custom_metrics.NewForConfig(k.config, k.mapper, apis),
		external)
	c := podautoscaler.NewHorizontalController(ctx, k.client.CoreV1(), sc, k.client.AutoscalingV2(), k.mapper, metrics,
		k.informers.Autoscaling().V2().HorizontalPodAutoscalers(), k.informers.Core().V1().Pods(),
		k.timing.AutoscalerSync, 5*time.Minute, 0.1, k.timing.AutoscalerCPUInitialization, 30*time.Second)
	return []func(context.Context){
		func(ctx context.Context) { c.Run(ctx, 2) },
		func(ctx context.Context) {
			custom_metrics.PeriodicallyInvalidate(apis, k.timing.AutoscalerSync, ctx.Done())
		},
	}, nil
}

func newQuota(ctx context.Context, k *controllerKit) ([]func(context.Context), error) {
	discover := k.client.Discovery().ServerPreferredNamespacedResources
	quotas, err := quotainstall.NewQuotaConfigurationForControllers(
		quotageneric.ListerFuncForResourceFunc(k.informers.ForResource), k.informers)
	if err != nil {
		return nil, err
	}
	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient: k.client.CoreV1(), ResourceQuotaInformer: k.informers.Core().V1().ResourceQuotas(),
		ResyncPeriod: pkgcontroller.StaticResyncPeriodFunc(5 * time.Minute), InformerFactory: k.objects,
		ReplenishmentResyncPeriod: pkgcontroller.StaticResyncPeriodFunc(informerResync), DiscoveryFunc: discover,
		IgnoredResourcesFunc: quotas.IgnoredResources, InformersStarted: k.started,
		Registry: quotageneric.NewRegistry(quotas.Evaluators()), UpdateFilter: quotainstall.DefaultUpdateFilter(),
	})
	if err != nil {
		return nil, err
	}
	return []func(context.Context){
		func(ctx context.Context) { c.Run(ctx, 2) },
		func(ctx context.Context) { c.Sync(ctx, discover, 30*time.Second) },
	}, nil
}

// lazySchemas resolves the types that admission policies are checked against. The definitions are
// many megabytes, so they are built when the first policy is.
type lazySchemas struct {
	client resolver.ClientDiscoveryResolver
	inner  resolver.SchemaResolver
}

// ResolveSchema is called by one worker only.
func (l *lazySchemas) ResolveSchema(gvk schema.GroupVersionKind) (*spec.Schema, error) {
	if l.inner == nil {
		l.inner = resolver.NewDefinitionsSchemaResolver(definitions.Get, k8sscheme.Scheme,
			apiextensionsscheme.Scheme).Combine(&l.client)
	}
	return l.inner.ResolveSchema(gvk)
}
