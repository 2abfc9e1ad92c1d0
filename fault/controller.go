package fault

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/aiopslab/aiopslab/app"
)

// controller is what makes the pods of a service: a Deployment, or else a StatefulSet or a DaemonSet of its name.
type controller struct {
	kind     string // empty if there is none of them
	template *v1.PodTemplateSpec
	replicas *int32
	owns     bool // volumes of its own, which its pods keep
}

// controller returns that of a service; one without a kind, and with an empty template, if the application deploys
// none.
func (p parts) controller(name string) controller {
	if d := typed[appsv1.Deployment](p, "Deployment", name); d.Name != "" {
		return controller{"Deployment", &d.Spec.Template, d.Spec.Replicas, len(volumesOf(&d.Spec.Template)) > 0}
	}
	if s := typed[appsv1.StatefulSet](p, "StatefulSet", name); s.Name != "" {
		owns := len(s.Spec.VolumeClaimTemplates) > 0 || len(volumesOf(&s.Spec.Template)) > 0
		return controller{"StatefulSet", &s.Spec.Template, s.Spec.Replicas, owns}
	}
	if d := typed[appsv1.DaemonSet](p, "DaemonSet", name); d.Name != "" {
		return controller{"DaemonSet", &d.Spec.Template, nil, len(volumesOf(&d.Spec.Template)) > 0}
	}
	return controller{template: &v1.PodTemplateSpec{}}
}

// volumesOf are the claims that pods mount.
func volumesOf(t *v1.PodTemplateSpec) (names []string) {
	for _, v := range t.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

// ref is the workload of a service as kubectl wants it: deployment/geo.
func ref(a *app.App, service string) string {
	kind := "deployment"
	if o, err := read(a); err == nil {
		if w := o.controller(service); w.kind != "" {
			kind = strings.ToLower(w.kind)
		}
	}
	return kind + "/" + service
}

// renewed are the commands after which the pods of a service are made of its template as it is now. A StatefulSet waits
// for a pod that never gets ready, whatever its template has become since: somebody has to delete it.
func renewed(t Target) []string {
	var commands []string
	if strings.HasPrefix(ref(t.App, t.Service), "statefulset/") {
		commands = append(commands, fmt.Sprintf("kubectl delete pod -l %s=%s --wait=false", t.App.Label, t.Service))
	}
	return append(commands, rollout(t.App, t.Service))
}

// RollsBack reports whether rolling back everything would go for a service: it goes for Deployments.
func RollsBack(a *app.App, service string) bool {
	return strings.HasPrefix(ref(a, service), "deployment/")
}
