package controlplane

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/emicklei/go-restful/v3"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/cluster/ports"
	"k8s.io/kubernetes/pkg/probe"
	"k8s.io/kubernetes/pkg/registry/core/componentstatus"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// component is a part of the control plane that componentstatuses tell of.
type component struct {
	port    int // where it would serve its health
	running atomic.Bool
}

// DoServerCheck implements componentstatus.Server.
func (c *component) DoServerCheck() (probe.Result, string, error) {
	if c.running.Load() {
		return probe.Success, "ok", nil
	}
	at := fmt.Sprintf("127.0.0.1:%d", c.port)
	return probe.Failure, fmt.Sprintf(`Get "https://%s/healthz": dial tcp %s: connect: connection refused`, at, at), nil
}

// components are the parts of the control plane, without the API server itself.
type components struct{ manager, scheduler component }

func newComponents() *components {
	return &components{
		manager:   component{port: ports.KubeControllerManagerPort},
		scheduler: component{port: schedulerconfig.DefaultKubeSchedulerPort},
	}
}

// install has the API server say of componentstatuses how these components are. Stock, it asks
// whoever listens on their ports of the machine, where they do not listen.
func (c *components) install(server genericapiserver.DelegationTarget, etcds []storagebackend.Config) error {
	servers := map[string]componentstatus.Server{"controller-manager": &c.manager, "scheduler": &c.scheduler}
	for i, etcd := range etcds {
		servers[fmt.Sprintf("etcd-%d", i)] = &componentstatus.EtcdServer{Config: etcd}
	}
	storage := componentstatus.NewStorage(func() map[string]componentstatus.Server { return servers })
	gv, scheme := v1.SchemeGroupVersion, legacyscheme.Scheme
	scope := &handlers.RequestScope{
		Namer:      handlers.ContextBasedNaming{Namer: meta.NewAccessor(), ClusterScoped: true},
		Serializer: legacyscheme.Codecs, ParameterCodec: legacyscheme.ParameterCodec,
		Creater: scheme, Convertor: scheme, Defaulter: scheme, Typer: scheme, UnsafeConvertor: scheme,
		TableConvertor: storage, Resource: gv.WithResource("componentstatuses"), Kind: gv.WithKind("ComponentStatus"),
		HubGroupVersion: core.SchemeGroupVersion, MetaGroupVersion: metav1.SchemeGroupVersion,
	}
	const path = "/api/v1/componentstatuses"
	for path, h := range map[string]http.HandlerFunc{
		path:             handlers.ListResource(storage, nil, scope, false, 0),
		path + "/{name}": handlers.GetResource(storage, scope),
	} {
		if err := replaceRoute(server, path, h); err != nil {
			return err
		}
	}
	return nil
}

// replaceRoute has a handler answer GET requests for a path of a server that does not run yet.
func replaceRoute(server genericapiserver.DelegationTarget, path string, h http.HandlerFunc) error {
	s, ok := server.(*genericapiserver.GenericAPIServer)
	if !ok {
		return fmt.Errorf("the server of %s is a %T", path, server)
	}
	for _, ws := range s.Handler.GoRestfulContainer.RegisteredWebServices() {
		routes := ws.Routes()
		for i := range routes {
			if routes[i].Path == path && routes[i].Method == http.MethodGet {
				routes[i].Function = func(req *restful.Request, res *restful.Response) {
					warning.AddWarning(req.Request.Context(), "", "v1 ComponentStatus is deprecated in v1.19+")
					h(res.ResponseWriter, req.Request)
				}
				return nil
			}
		}
	}
	return fmt.Errorf("the API server has no route %s", path)
}
