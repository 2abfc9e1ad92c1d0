package cloud

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Chooses reports whether a pod is chosen. The service is the one that the selector names, or nil. Who is over is not
// chosen.
func (s Selector) Chooses(p *v1.Pod, service *v1.Service) bool {
	switch {
	case p.Status.Phase == v1.PodSucceeded, p.Status.Phase == v1.PodFailed,
		s.Namespace != "" && p.Namespace != s.Namespace,
		s.Pod != "" && p.Name != s.Pod,
		s.Node != "" && p.Spec.NodeName != s.Node,
		!labels.SelectorFromSet(s.Labels).Matches(labels.Set(p.Labels)):
		return false
	case s.Service == "":
		return true
	}
	return service != nil && len(service.Spec.Selector) > 0 &&
		labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(p.Labels))
}

// String is as in "labels app=geo, namespace shop".
func (s Selector) String() string {
	var parts []string
	add := func(what, value string) {
		if value != "" {
			parts = append(parts, what+" "+value)
		}
	}
	add("pod", s.Pod)
	add("service", s.Service)
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		pairs = append(pairs, k+"="+s.Labels[k])
	}
	add("labels", strings.Join(pairs, ","))
	add("namespace", s.Namespace)
	add("node", s.Node)
	return strings.Join(parts, ", ")
}
