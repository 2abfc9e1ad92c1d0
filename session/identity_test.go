package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/grade"
)

func TestServing(t *testing.T) {
	pod := func(name, owner, hash string, containers ...v1.Container) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-template-hash": hash}}, Spec: v1.PodSpec{Containers: containers}}
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: owner, Controller: ptr.To(true)}}
		}
		return p
	}
	geo := v1.Container{Image: "aiopslab/hotel-reservation:v1", Command: []string{"geo", "-v"}}
	pods := map[string]*v1.Pod{
		"10.0.0.1": pod("geo-5d-1", "geo-5d", "5d", geo),
		"10.0.0.2": pod("geo-5d-2", "geo-5d", "5d", geo),
		"10.0.0.4": pod("geo-5d-4", "geo-5d", "5d", v1.Container{Image: "docker.io/" + geo.Image, Command: geo.Command}),
		"10.0.0.3": pod("mine", "", "", v1.Container{Image: "hashicorp/http-echo"}),
	}
	slice := func(service string, ready bool, addresses ...string) discoveryv1.EndpointSlice {
		s := discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{discoveryv1.LabelServiceName: service}}}
		for _, a := range addresses {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
		}
		return s
	}
	application := grade.Server{Workload: "deployment/geo", Programs: []grade.Program{{Image: geo.Image, Command: "geo"}}}
	for _, tt := range []struct {
		name   string
		spec   v1.ServiceSpec
		slices []discoveryv1.EndpointSlice
		want   []grade.Server
	}{
		{"two pods of a Deployment", v1.ServiceSpec{}, []discoveryv1.EndpointSlice{slice("geo", true, "10.0.0.1", "10.0.0.2")}, []grade.Server{application}},
		{"an image by its full name", v1.ServiceSpec{}, []discoveryv1.EndpointSlice{slice("geo", true, "10.0.0.1", "10.0.0.4")}, []grade.Server{application}},
		{"others' and those that are not ready", v1.ServiceSpec{}, []discoveryv1.EndpointSlice{slice("rate", true, "10.0.0.1"), slice("geo", false, "10.0.0.1")}, nil},
		{"a pod of its own beside", v1.ServiceSpec{}, []discoveryv1.EndpointSlice{slice("geo", true, "10.0.0.1"), slice("geo", true, "10.0.0.3")}, []grade.Server{
			application, {Workload: "pod/mine", Programs: []grade.Program{{Image: "hashicorp/http-echo"}}},
		}},
		{"no pod", v1.ServiceSpec{}, []discoveryv1.EndpointSlice{slice("geo", true, "10.9.9.9")}, []grade.Server{{Address: "10.9.9.9"}}},
		{"outside", v1.ServiceSpec{Type: v1.ServiceTypeExternalName, ExternalName: "example.com"}, nil, []grade.Server{{Address: "example.com"}}},
	} {
		tt.spec.Ports = []v1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8083)}}
		got := serving(&v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "geo"}, Spec: tt.spec}, tt.slices, pods)
		if d := cmp.Diff(grade.Serving{Service: "geo", Ports: []string{"80 to 8083"}, By: tt.want}, got); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}
