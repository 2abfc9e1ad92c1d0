package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/aiopslab/aiopslab/app/everytest"
	"github.com/aiopslab/aiopslab/internal/manifest"
)

// TestPorts does what linters of manifests do: each port of a Service leads to a port that the pods
// which it selects declare. A sound system gives a linter nothing to say.
func TestPorts(t *testing.T) {
	dirs, err := filepath.Glob("*/manifests")
	if err != nil || len(dirs) != len(everytest.Apps()) {
		t.Fatalf("%q, %v: want those of all applications", dirs, err)
	}
	for _, dir := range append(dirs, "../observe/manifests", "../cloud/embedded/manifests", "../examples/shop/manifests") {
		t.Run(dir, func(t *testing.T) {
			objects, err := manifest.Read(os.DirFS(dir))
			if err != nil {
				t.Fatal(err)
			}
			services := 0
			for _, u := range objects {
				if u.GetKind() != "Service" {
					continue
				}
				services++
				for _, complaint := range lintPorts(t, u, objects) {
					t.Errorf("service %s: %s", u.GetName(), complaint)
				}
			}
			if services == 0 {
				t.Error("no services")
			}
		})
	}
}

// lintPorts says what is wrong with the ports of a Service.
func lintPorts(t *testing.T, service *unstructured.Unstructured, objects []*unstructured.Unstructured) (complaints []string) {
	t.Helper()
	var s v1.Service
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(service.Object, &s); err != nil {
		t.Fatal(err)
	}
	selected := 0
	for _, u := range objects {
		raw, ok, _ := unstructured.NestedMap(u.Object, "spec", "template")
		if !ok || u.GetNamespace() != s.Namespace {
			continue
		}
		var pod v1.PodTemplateSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &pod); err != nil {
			t.Fatal(err)
		}
		if !labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			continue
		}
		selected++
		for _, port := range s.Spec.Ports {
			if !declares(pod.Spec, port) {
				complaints = append(complaints, fmt.Sprintf("port %s leads to %s, which %s does not declare", port.Name, port.TargetPort.String(), u.GetName()))
			}
		}
	}
	if selected == 0 {
		complaints = append(complaints, "it selects no pods")
	}
	return complaints
}

// declares reports whether a container of the pod has the port that a port of a Service leads to.
func declares(pod v1.PodSpec, port v1.ServicePort) bool {
	protocol := func(p v1.Protocol) v1.Protocol {
		if p == "" {
			return v1.ProtocolTCP
		}
		return p
	}
	target := port.TargetPort
	if target == (intstr.IntOrString{}) {
		target = intstr.FromInt32(port.Port)
	}
	for _, c := range pod.Containers {
		for _, p := range c.Ports {
			same := target.Type == intstr.String && p.Name == target.StrVal || target.Type == intstr.Int && p.ContainerPort == target.IntVal
			if same && protocol(p.Protocol) == protocol(port.Protocol) {
				return true
			}
		}
	}
	return false
}
