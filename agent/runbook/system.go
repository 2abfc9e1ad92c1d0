package runbook

import (
	"encoding/json"
	"net"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
)

// system is what is known of the application.
type system struct {
	namespace   string
	names       []string // of components, beside those of Deployments that were seen
	alerts      string
	rows        []row // of pods, as kubectl shows them
	pods        []v1.Pod
	deployments []appsv1.Deployment
	services    []v1.Service
	claims      []v1.PersistentVolumeClaim
	volumes     []v1.PersistentVolume
	histories   map[string][]appsv1.ReplicaSet // by Deployment, the newest first
	prometheus  string                         // its address, host or host:port
	probes      []probe
	samples     []sample
	logs        map[string][]string // lines that speak of trouble, by component
	calls       map[string][]string // who calls whom
}

func newSystem(namespace string) *system {
	return &system{
		namespace: namespace, histories: map[string][]appsv1.ReplicaSet{}, logs: map[string][]string{},
		calls: map[string][]string{},
	}
}

// decodeLines reads JSON values of one type, one a line. Lines that are something else are skipped:
// an observation may begin with a warning and end in the middle of a value.
func decodeLines[T any](text string) (list []T) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var v T
		if json.Unmarshal([]byte(line), &v) == nil {
			list = append(list, v)
		}
	}
	return list
}

// objects sorts what kubectl prints as JSON, one object a line, by kind.
func (s *system) objects(text string) {
	for line := range strings.Lines(text) {
		var head struct {
			Kind string `json:"kind"`
		}
		if json.Unmarshal([]byte(line), &head) != nil {
			continue
		}
		switch head.Kind {
		case "Deployment":
			s.deployments = append(s.deployments, decodeLines[appsv1.Deployment](line)...)
		case "Service":
			s.services = append(s.services, decodeLines[v1.Service](line)...)
		case "PersistentVolumeClaim":
			s.claims = append(s.claims, decodeLines[v1.PersistentVolumeClaim](line)...)
		case "PersistentVolume":
			s.volumes = append(s.volumes, decodeLines[v1.PersistentVolume](line)...)
		case "Pod":
			s.pods = append(s.pods, decodeLines[v1.Pod](line)...)
		}
	}
}

// deployment returns a Deployment by name.
func (s *system) deployment(name string) (*appsv1.Deployment, bool) {
	for i := range s.deployments {
		if s.deployments[i].Name == name {
			return &s.deployments[i], true
		}
	}
	return nil, false
}

// component is what a pod belongs to: its Deployment, or else its name without what controllers add.
func (s *system) component(pod string) string {
	best := ""
	consider := func(name string) {
		if (pod == name || strings.HasPrefix(pod, name+"-") && strings.Count(pod[len(name):], "-") <= 2) &&
			len(name) > len(best) {
			best = name
		}
	}
	for _, d := range s.deployments {
		consider(d.Name)
	}
	for _, n := range s.names {
		consider(n)
	}
	if best != "" {
		return best
	}
	parts := strings.Split(pod, "-")
	return strings.Join(parts[:max(1, len(parts)-2)], "-")
}

// selected is the Deployment whose pods a Service sends to.
func (s *system) selected(svc *v1.Service) (*appsv1.Deployment, bool) {
	if len(svc.Spec.Selector) == 0 {
		return nil, false
	}
	for i := range s.deployments {
		labels := s.deployments[i].Spec.Template.Labels
		match := true
		for k, v := range svc.Spec.Selector {
			match = match && labels[k] == v
		}
		if match {
			return &s.deployments[i], true
		}
	}
	return nil, false
}

// owner is the component that a host belongs to: the name of a Service or an address of it or of a
// pod.
func (s *system) owner(host string) (string, bool) {
	if ip := net.ParseIP(host); ip != nil {
		for _, svc := range s.services {
			if svc.Spec.ClusterIP == host {
				return s.behind(&svc), true
			}
		}
		for _, r := range s.rows {
			if r.ip == host {
				return s.component(r.name), true
			}
		}
		return "", false
	}
	name, _, _ := strings.Cut(host, ".")
	for _, svc := range s.services {
		if svc.Name == name {
			return s.behind(&svc), true
		}
	}
	_, ok := s.deployment(name)
	return name, ok
}

// behind is the component behind a Service.
func (s *system) behind(svc *v1.Service) string {
	if d, ok := s.selected(svc); ok {
		return d.Name
	}
	return svc.Name
}

// dependsOn reports whether a component calls another, directly or not.
func (s *system) dependsOn(a, b string) bool {
	seen := map[string]bool{a: true}
	for queue := []string{a}; len(queue) > 0; queue = queue[1:] {
		for _, c := range s.calls[queue[0]] {
			if c == b {
				return true
			}
			if !seen[c] {
				seen[c] = true
				queue = append(queue, c)
			}
		}
	}
	return false
}

// called notes that a component calls another.
func (s *system) called(a, b string) {
	if a != b && a != "" && b != "" && !slices.Contains(s.calls[a], b) {
		s.calls[a] = append(s.calls[a], b)
	}
}

// claimed is the Deployment that mounts a claim.
func (s *system) claimed(claim string) (string, bool) {
	for _, d := range s.deployments {
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim {
				return d.Name, true
			}
		}
	}
	return "", false
}
