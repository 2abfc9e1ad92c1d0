package noise

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/manifest"
)

// part is what of an application belongs to one service and can be applied again.
type part struct {
	service string
	// objects are its ConfigMaps, Service and workload; what a person would not write again is left out.
	objects    []*unstructured.Unstructured
	deployment *unstructured.Unstructured // nil if it has none
	// rolls says that its pods can be replaced while users are served: it keeps nothing that is not elsewhere, too.
	rolls bool
	// scales says that it can have a pod more: how many it has is not the application's own to say.
	scales bool
}

// partsOf takes an application apart, in the order of its manifests.
func partsOf(a *app.App) ([]*part, error) {
	objects, err := manifest.Read(a.Manifests)
	if err != nil {
		return nil, err
	}
	var list []*part
	by := map[string]*part{}
	add := func(name string) *part {
		if by[name] == nil {
			by[name] = &part{service: name}
			list = append(list, by[name])
		}
		return by[name]
	}
	defined := manifest.Defined(objects)
	for _, u := range objects {
		custom := slices.Contains(defined, u)
		u = u.DeepCopy()
		u.SetNamespace(a.Namespace)
		if custom { // What is released with it, its operator decides.
			p := add(u.GetName())
			p.objects = append(p.objects, u)
			continue
		}
		switch u.GetKind() {
		case "Deployment":
			p := add(u.GetName())
			of, _ := a.Service(p.service)
			p.objects, p.deployment = append(p.objects, u), u
			// Two of what is no service might be at odds, as two operators would.
			p.scales = slices.Contains(rolling, of.Kind) && replaceable(u) && !of.Elastic
			p.rolls = (of.Worker || slices.Contains(rolling, of.Kind)) && replaceable(u)
		case "StatefulSet", "DaemonSet", "Service":
			p := add(u.GetName())
			p.objects = append(p.objects, u)
		case "ConfigMap":
			p := add(mounter(objects, u.GetName()))
			p.objects = append(p.objects, u)
		}
	}
	return list, nil
}

// Rolling are the Deployments, as they are deployed, whose pods a release replaces.
func Rolling(a *app.App) (list []*unstructured.Unstructured, err error) {
	parts, err := partsOf(a)
	for _, p := range parts {
		if p.rolls {
			list = append(list, p.deployment)
		}
	}
	return list, err
}

// has reports whether one of the named objects, as "Service/geo", is of the part.
func (p *part) has(names []string) bool {
	return slices.ContainsFunc(p.objects, func(u *unstructured.Unstructured) bool {
		return slices.Contains(names, u.GetKind()+"/"+u.GetName())
	})
}

// mounter is the first Deployment that mounts a ConfigMap; the ConfigMap's own name if none does.
func mounter(objects []*unstructured.Unstructured, name string) string {
	for _, u := range objects {
		if u.GetKind() != "Deployment" {
			continue
		}
		for _, v := range volumes(u) {
			if m, _, _ := unstructured.NestedString(v, "configMap", "name"); m == name {
				return u.GetName()
			}
		}
	}
	return name
}

func volumes(u *unstructured.Unstructured) (list []map[string]any) {
	all, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "volumes")
	for _, v := range all {
		if m, ok := v.(map[string]any); ok {
			list = append(list, m)
		}
	}
	return list
}

// rolling are the kinds of services of which nothing is lost with their pods. Services have their data in stores. What
// is in memcached is in a database as well; whoever does not find it, or nobody to ask, looks there. Redis and MongoDB
// have the only copy, and who finds others by Consul, or looks at traces, would notice as well.
var rolling = []string{"service", "memcached"}

// replaceable reports whether a Deployment's pods can be replaced one by one.
func replaceable(u *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(u.Object, "spec", "strategy", "type")
	return strategy != "Recreate" && replicas(u) > 0 &&
		!slices.ContainsFunc(volumes(u), func(v map[string]any) bool { return v["persistentVolumeClaim"] != nil })
}

// replicas is how many pods a manifest asks for.
func replicas(u *unstructured.Unstructured) int64 {
	if n, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); found {
		return n
	}
	return 1
}

// callers are the services that call another.
func callers(a *app.App, service string) (names []string) {
	for _, s := range a.Services {
		if slices.Contains(s.Calls, service) {
			names = append(names, s.Name)
		}
	}
	return names
}
