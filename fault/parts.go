package fault

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/manifest"
)

// parts are the objects an application is deployed from.
type parts []*unstructured.Unstructured

func read(a *app.App) (parts, error) {
	key := [...]string{a.Name, a.Registry}
	if p, ok := partsOf.Load(key); ok {
		return p.(parts), nil
	}
	objects, err := manifest.Read(a.Manifests)
	if err != nil {
		return nil, fmt.Errorf("the manifests of %s: %w", a.Name, err)
	}
	partsOf.Store(key, parts(objects))
	return objects, nil
}

// partsOf are the applications' parts by name and registry: a catalog asks for them hundreds of times.
var partsOf sync.Map

// object returns a copy of an object that goes to the application's namespace.
func (p parts) object(a *app.App, kind, name string) (*unstructured.Unstructured, error) {
	i := slices.IndexFunc(p, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == kind && u.GetName() == name
	})
	if i < 0 {
		return nil, fmt.Errorf("the manifests of %s have no %s %s", a.Name, kind, name)
	}
	u := p[i].DeepCopy()
	u.SetNamespace(a.Namespace)
	return u, nil
}

// deployment returns a Deployment by name; an empty one if there is none.
func (p parts) deployment(name string) *appsv1.Deployment {
	return typed[appsv1.Deployment](p, "Deployment", name)
}

// service returns a Service by name; an empty one if there is none.
func (p parts) service(name string) *v1.Service { return typed[v1.Service](p, "Service", name) }

// configMap returns a ConfigMap by name; an empty one if there is none.
func (p parts) configMap(name string) *v1.ConfigMap { return typed[v1.ConfigMap](p, "ConfigMap", name) }

// typed returns an object by kind and name, which is not to be changed; an empty one if there is none.
func typed[T any](p parts, kind, name string) *T {
	for _, u := range p {
		if u.GetKind() != kind || u.GetName() != name {
			continue
		}
		if v, ok := typedOf.Load(u); ok {
			return v.(*T)
		}
		v := new(T)
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, v) == nil {
			typedOf.Store(u, v)
			return v
		}
	}
	return new(T)
}

// typedOf are the parts of applications with their types: converting them would be half of what reading a catalog
// takes.
var typedOf sync.Map

// containers of a service's pods, without those that run before.
func (p parts) containers(name string) []v1.Container {
	return p.controller(name).template.Spec.Containers
}

// port returns the port of a Service that clients use: the first over TCP whose target a container
// declares.
func (p parts) port(name string) (int32, bool) {
	for _, port := range p.service(name).Spec.Ports {
		if port.Protocol != "" && port.Protocol != v1.ProtocolTCP {
			continue
		}
		for _, c := range p.containers(name) {
			if slices.ContainsFunc(c.Ports, func(cp v1.ContainerPort) bool { return leadsTo(port, cp) }) {
				return port.Port, true
			}
		}
	}
	return 0, false
}

// leadsTo reports whether a port of a Service has a container's port as its target, by its number or its name. The
// target is the port itself if nothing else is said.
func leadsTo(port v1.ServicePort, cp v1.ContainerPort) bool {
	if name := port.TargetPort.StrVal; name != "" {
		return cp.Name == name
	}
	return cp.ContainerPort == cmp.Or(port.TargetPort.IntVal, port.Port)
}

// metrics returns the port on which a service's pods are deployed to serve their metrics, or "".
func (p parts) metrics(name string) string {
	annotations := p.controller(name).template.Annotations
	if annotations["prometheus.io/scrape"] != "true" {
		return ""
	}
	return annotations["prometheus.io/port"]
}

// claims are the persistent volume claims that a Deployment's pods mount. Those of a StatefulSet are its own.
func (p parts) claims(name string) []string { return volumesOf(&p.deployment(name).Spec.Template) }

// mounted returns the ConfigMap that the first container of a service's pods has at a path, or "".
func (p parts) mounted(name, path string) string {
	spec := p.controller(name).template.Spec
	if len(spec.Containers) == 0 {
		return ""
	}
	for _, m := range spec.Containers[0].VolumeMounts {
		for _, v := range spec.Volumes {
			if m.MountPath == path && v.Name == m.Name && v.ConfigMap != nil {
				return v.ConfigMap.Name
			}
		}
	}
	return ""
}
