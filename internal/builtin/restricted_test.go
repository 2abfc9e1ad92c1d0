package builtin

import (
	"io/fs"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/world"
)

// TestRestricted shows that all pods of the applications, of the telemetry and of the life around them have the Pod
// Security level "restricted", by Kubernetes' own rules, and do not leave it to their image who runs them.
func TestRestricted(t *testing.T) {
	restricted := rules(t)
	places := map[string]fs.FS{"telemetry": observe.Manifests()}
	for _, a := range (Parts{}).AllApps() {
		places[a.Name] = a.Manifests
	}
	for place, files := range places {
		objects, err := manifest.Read(files)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, o := range objects {
			switch o.GetKind() {
			case "Deployment":
			case "Pod", "Job", "CronJob", "StatefulSet", "DaemonSet", "ReplicaSet":
				t.Errorf("%s: this test does not know %s", place, o.GetKind())
			default:
				continue
			}
			seen++
			var d appsv1.Deployment
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
				t.Fatal(err)
			}
			if why := restricted(&d.Spec.Template.Spec); why != "" {
				t.Errorf("%s: %s: %s", place, d.Name, why)
			}
			if port := closedPort(&d.Spec.Template.Spec); port != 0 {
				t.Errorf("%s: %s may not listen on port %d where ports are closed to who is not root", place, d.Name, port)
			}
		}
		if seen < 2 {
			t.Errorf("%s: %d workloads", place, seen)
		}
	}
	pod, container := world.Unprivileged()
	if why := restricted(&v1.PodSpec{
		SecurityContext: pod, Containers: []v1.Container{{Name: "c", SecurityContext: container}},
	}); why != "" {
		t.Errorf("jobs: %s", why)
	}
	// The rules have teeth.
	if why := restricted(&v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}); why == "" {
		t.Error("a pod that says nothing is restricted")
	}
}

// closedPort is a port of a pod that a kernel keeps for root, unless the pod opens it: a capability is none that a
// program has which is not root and may not become more. 0 if there is none.
func closedPort(pod *v1.PodSpec) int32 {
	if pod.SecurityContext != nil && slices.Contains(pod.SecurityContext.Sysctls, openPorts) {
		return 0
	}
	for _, c := range pod.Containers {
		for _, p := range c.Ports {
			if p.ContainerPort < 1024 {
				return p.ContainerPort
			}
		}
	}
	return 0
}

// openPorts is the kernel parameter, one of those that are safe, by which any program of a pod may listen on any port.
var openPorts = v1.Sysctl{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}

// rules returns what tells why a pod is not restricted.
func rules(t *testing.T) func(*v1.PodSpec) string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(pod *v1.PodSpec) string {
		level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
		r := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &metav1.ObjectMeta{}, pod))
		switch sc := pod.SecurityContext; {
		case !r.Allowed:
			return r.ForbiddenDetail()
		case sc.RunAsUser == nil || *sc.RunAsUser == 0:
			return "no user is named, and an image may have root"
		}
		for _, v := range pod.Volumes {
			if v.PersistentVolumeClaim != nil && pod.SecurityContext.FSGroup == nil {
				return "its volume may belong to root: it has no fsGroup"
			}
		}
		return ""
	}
}
