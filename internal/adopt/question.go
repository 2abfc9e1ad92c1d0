package adopt

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// question is what a service is asked, as app.yaml has it.
type question struct {
	HTTP   string `yaml:"http,omitempty"`
	Answer string `yaml:"answer,omitempty"`
	Any    bool   `yaml:"any,omitempty"`
	GRPC   string `yaml:"grpc,omitempty"`
	TCP    bool   `yaml:"tcp,omitempty"`
}

// weak reports whether somebody else in its place could answer, too.
func (q *question) weak() bool { return q != nil && (q.Any || q.TCP) }

// findQuestion finds where a workload is asked, and what: the entry what its users ask, others what their probes ask.
func (y *system) findQuestion(w *part) {
	s := y.service(w.Name)
	if s == nil || !slices.Contains(y.behind(s), w) {
		if s != nil { // It leads to others, so it must not be asked in the workload's place.
			y.note("the Service %s does not lead to the %s %s", s.Name, w.set, w.Name)
		}
		return
	}
	tcp := slices.IndexFunc(s.Spec.Ports, overTCP)
	if tcp < 0 {
		if w.kind == "service" && len(s.Spec.Ports) > 0 {
			w.kind = "infrastructure" // Nobody can ask it over TCP.
		}
		return
	}
	w.port, w.headless = int(s.Spec.Ports[tcp].Port), s.Spec.ClusterIP == v1.ClusterIPNone
	if w.kind != "service" {
		return
	}
	if s == y.entry {
		w.port = y.port
		if w.ask = y.usersQuestion(); w.ask != nil {
			return
		}
	}
	c := w.template.Spec.Containers[0]
	for _, p := range []*v1.Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe} {
		if w.ask = w.probed(s, c, p); w.ask != nil {
			return
		}
	}
	w.ask = &question{TCP: true}
}

func overTCP(p v1.ServicePort) bool { return p.Protocol == "" || p.Protocol == v1.ProtocolTCP }

// usersQuestion is a page that users ask for, with what they expect in it; nil if that is not a text.
func (y *system) usersQuestion() *question {
	for _, o := range y.mix.Operations {
		plain := (o.Method == "" || o.Method == "GET") && o.Body == "" && len(o.Query)+len(o.Form)+len(o.Headers) == 0
		if !plain || o.Expect.Body == "" || strings.Contains(o.Path+o.Expect.Body, "{{") {
			continue
		}
		if re, err := regexp.Compile(o.Expect.Body); err == nil && !re.MatchString("") {
			return &question{HTTP: o.Path, Answer: o.Expect.Body}
		}
	}
	return nil
}

// probed is what a probe asks, if clients can ask that, too.
func (w *part) probed(s *v1.Service, c v1.Container, p *v1.Probe) *question {
	if p == nil {
		return nil
	}
	switch {
	case p.HTTPGet != nil && p.HTTPGet.Scheme != v1.URISchemeHTTPS && len(p.HTTPGet.HTTPHeaders) == 0:
		if !w.through(s, c, p.HTTPGet.Port.StrVal, p.HTTPGet.Port.IntVal) {
			return nil
		}
		return &question{HTTP: cmp.Or(p.HTTPGet.Path, "/"), Any: true}
	case p.GRPC != nil && p.GRPC.Service != nil && *p.GRPC.Service != "":
		if !w.through(s, c, "", p.GRPC.Port) {
			return nil
		}
		return &question{GRPC: *p.GRPC.Service}
	}
	return nil
}

// through finds the port of a Service that leads to a container's port, and has the workload asked there.
func (w *part) through(s *v1.Service, c v1.Container, name string, number int32) bool {
	for _, cp := range c.Ports {
		if name != "" && cp.Name == name {
			number = cp.ContainerPort
		}
	}
	for _, p := range s.Spec.Ports {
		target := cmp.Or(p.TargetPort.IntVal, p.Port)
		if p.TargetPort.StrVal != "" {
			target = 0
			for _, cp := range c.Ports {
				if cp.Name == p.TargetPort.StrVal {
					target = cp.ContainerPort
				}
			}
		}
		if overTCP(p) && target == number && number != 0 {
			w.port = int(p.Port)
			return true
		}
	}
	return false
}
