package runbook

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ports finds Services that send to a port on which no container says it listens, and where
// connections are refused, while a port on which one listens gets nothing. A Service may well have
// further ports that nobody uses.
func (s *system) ports() (list []finding) {
	for _, svc := range s.services {
		d, ok := s.selected(&svc)
		if !ok {
			continue
		}
		declared := containerPorts(d)
		forgotten := slices.DeleteFunc(slices.Clone(declared), func(c v1.ContainerPort) bool {
			return slices.ContainsFunc(svc.Spec.Ports, func(p v1.ServicePort) bool {
				return listens([]v1.ContainerPort{c}, p.TargetPort, p.Port)
			})
		})
		for i, p := range svc.Spec.Ports {
			if len(forgotten) == 0 || listens(declared, p.TargetPort, p.Port) || !s.refused(svc.Name, int(p.Port)) {
				continue
			}
			list = append(list, finding{
				kind: wrongPort, component: d.Name, object: svc.Name, port: i, value: rightPort(forgotten, p),
				evidence: fmt.Sprintf("its Service sends port %d to %s, but its container listens on %s, and "+
					"connections are refused", p.Port, p.TargetPort.String(), portList(declared)),
			})
		}
	}
	return list
}

func containerPorts(d *appsv1.Deployment) (list []v1.ContainerPort) {
	if d == nil {
		return nil
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		list = append(list, c.Ports...)
	}
	return list
}

func listens(declared []v1.ContainerPort, target intstr.IntOrString, port int32) bool {
	return slices.ContainsFunc(declared, func(c v1.ContainerPort) bool {
		if target.Type == intstr.String {
			return c.Name == target.StrVal
		}
		if target.IntVal == 0 {
			return c.ContainerPort == port
		}
		return c.ContainerPort == target.IntVal
	})
}

// rightPort is the container's port that a Service's port is most likely meant for: the one of the
// same number or name, or else the first.
func rightPort(declared []v1.ContainerPort, p v1.ServicePort) int {
	for _, c := range declared {
		if c.ContainerPort == p.Port || c.Name != "" && c.Name == p.Name {
			return int(c.ContainerPort)
		}
	}
	return int(declared[0].ContainerPort)
}

func portList(declared []v1.ContainerPort) string {
	var list []string
	for _, c := range declared {
		list = append(list, fmt.Sprint(c.ContainerPort))
	}
	return strings.Join(list, ", ")
}

// refused reports whether connections to a Service's port were refused.
func (s *system) refused(service string, port int) bool {
	return slices.ContainsFunc(s.probes, func(p probe) bool {
		return p.service == service && p.port == port && p.closed()
	})
}

// reached finds components that can hardly be connected to, or not at all.
func (s *system) reached() (list []finding) {
	for _, svc := range s.services {
		open := slices.ContainsFunc(s.probes, func(p probe) bool { return p.service == svc.Name && !p.closed() })
		tried := slices.ContainsFunc(s.probes, func(p probe) bool { return p.service == svc.Name })
		if tried && !open {
			c := s.behind(&svc)
			list = append(list, finding{
				kind: silent, component: c, node: s.nodeOf(c),
				evidence: "its Service refuses connections",
			})
		}
	}
	for _, p := range s.probes {
		if !p.unreachable() {
			continue
		}
		c, ok := s.owner(p.service)
		if !ok {
			continue
		}
		f := finding{kind: networkFailing, component: c, node: s.nodeOf(c)}
		if p.timeout > 0 {
			f.evidence = fmt.Sprintf("%d of %d connections to its port %d timed out", p.timeout, p.tries, p.port)
		} else {
			f.evidence = fmt.Sprintf("%d of %d connections to its port %d took more than %v ms", p.slow, p.tries,
				p.port, slowConnect)
		}
		list = append(list, f)
	}
	return list
}

// nodeOf is where a component's first pod runs.
func (s *system) nodeOf(component string) string {
	for _, r := range s.rows {
		if s.component(r.name) == component {
			return r.node
		}
	}
	return ""
}
