package runbook

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// findings applies all rules to what is known.
func (s *system) findings() []finding {
	var list []finding
	for _, rule := range []func(*system) []finding{
		(*system).scaledAway, (*system).unplaced, (*system).containers, (*system).notReady, (*system).ports,
		(*system).reached, (*system).spoken, (*system).resources, (*system).requests,
	} {
		list = append(list, rule(s)...)
	}
	return list
}

// scaledAway finds Deployments that nobody wants a pod of, though a Service sends to them.
func (s *system) scaledAway() (list []finding) {
	for _, d := range s.deployments {
		if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
			list = append(list, finding{kind: scaledToZero, component: d.Name, evidence: "its Deployment asks for 0 replicas"})
		}
	}
	return list
}

// unplaced finds pods that no node takes, because of their volumes or otherwise.
func (s *system) unplaced() (list []finding) {
	for _, claim := range s.claims {
		c, ok := s.claimed(claim.Name)
		if !ok || claim.Status.Phase == v1.ClaimBound || s.ready(c) {
			continue // A claim may wait for its first pod.
		}
		f := finding{kind: volumeUnbound, component: c, object: claim.Spec.VolumeName, evidence: fmt.Sprintf("its volume claim %s is %s", claim.Name, claim.Status.Phase)}
		if claim.Spec.VolumeName != "" {
			f.evidence += " and asks for volume " + claim.Spec.VolumeName
		}
		list = append(list, f)
	}
	for _, p := range s.pods {
		if p.DeletionTimestamp != nil || p.Status.Phase != v1.PodPending {
			continue
		}
		c := s.component(p.Name)
		for _, cond := range p.Status.Conditions {
			if cond.Type == v1.PodScheduled && cond.Status == v1.ConditionFalse {
				list = append(list, finding{kind: unschedulable, component: c, evidence: "no node takes its pod: " + quote(cond.Message)})
			}
		}
	}
	return list
}

// ready reports whether a component has a pod that is ready.
func (s *system) ready(component string) bool {
	return slices.ContainsFunc(s.rows, func(r row) bool { return r.ready && s.component(r.name) == component })
}

// exitKilled is the exit code of a process that SIGKILL ended.
const exitKilled = 137

// containers finds containers that end when they should not.
func (s *system) containers() (list []finding) {
	for _, p := range s.pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		c := s.component(p.Name)
		for _, st := range p.Status.ContainerStatuses {
			if w := st.State.Waiting; w != nil && (strings.Contains(w.Reason, "Image") || w.Reason == "CreateContainerConfigError") {
				list = append(list, finding{kind: badImage, component: c, evidence: fmt.Sprintf("its container waits: %s", w.Reason)})
				continue
			}
			end := st.State.Terminated
			if end == nil {
				end = st.LastTerminationState.Terminated
			}
			if end == nil || st.RestartCount == 0 && st.State.Terminated == nil {
				continue
			}
			f := finding{component: c, node: p.Spec.NodeName}
			switch {
			case end.Reason == "OOMKilled":
				f.kind, f.evidence = outOfMemory, "its container was OOMKilled and restarted "+times(int(st.RestartCount))
			case end.ExitCode == exitKilled:
				f.kind, f.evidence = killed, "its container was killed (exit code 137) and restarted "+times(int(st.RestartCount))
			case !st.Ready:
				f.kind, f.evidence = crashing, fmt.Sprintf("its container ends with exit code %d and was restarted %s", end.ExitCode, times(int(st.RestartCount)))
			default:
				continue // It failed while it waited for others to start, and works now.
			}
			list = append(list, f)
		}
	}
	return list
}

// times is how often something happened.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// notReady finds components without a ready pod, and whether their Deployment was changed.
func (s *system) notReady() (list []finding) {
	for _, c := range s.ill() {
		if now, before, ok := s.lastChange(c); ok {
			if what := difference(before, now); what != "" {
				list = append(list, finding{kind: changed, component: c, evidence: "its Deployment was changed (" + what + ") and it has not become ready since"})
			}
		}
		list = append(list, finding{kind: silent, component: c, evidence: "its pod is not ready"})
	}
	return list
}

// ill are the components with pods that are not as they should be.
func (s *system) ill() (names []string) {
	for _, r := range s.rows {
		if c := s.component(r.name); r.ill() && !slices.Contains(names, c) {
			names = append(names, c)
		}
	}
	return names
}

// lastChange returns the newest pod template of a Deployment and the one before.
func (s *system) lastChange(component string) (now, before *v1.PodTemplateSpec, ok bool) {
	h := s.histories[component]
	if len(h) < 2 {
		return nil, nil, false
	}
	return &h[0].Spec.Template, &h[1].Spec.Template, true
}

// difference says what was changed in a pod template, as far as it can break a service.
func difference(a, b *v1.PodTemplateSpec) string {
	var list []string
	note := func(what string, x, y any) {
		if from, to := fmt.Sprint(x), fmt.Sprint(y); from != to {
			list = append(list, fmt.Sprintf("%s from %s to %s", what, from, to))
		}
	}
	note("node selector", a.Spec.NodeSelector, b.Spec.NodeSelector)
	for i := range min(len(a.Spec.Containers), len(b.Spec.Containers)) {
		x, y := a.Spec.Containers[i], b.Spec.Containers[i]
		note("image", x.Image, y.Image)
		note("command", x.Command, y.Command)
		note("arguments", x.Args, y.Args)
		note("environment", x.Env, y.Env)
	}
	return strings.Join(list, ", ")
}

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
			return slices.ContainsFunc(svc.Spec.Ports, func(p v1.ServicePort) bool { return listens([]v1.ContainerPort{c}, p.TargetPort, p.Port) })
		})
		for i, p := range svc.Spec.Ports {
			if len(forgotten) == 0 || listens(declared, p.TargetPort, p.Port) || !s.refused(svc.Name, int(p.Port)) {
				continue
			}
			list = append(list, finding{
				kind: wrongPort, component: d.Name, object: svc.Name, port: i, value: rightPort(forgotten, p),
				evidence: fmt.Sprintf("its Service sends port %d to %s, but its container listens on %s, and connections are refused", p.Port, p.TargetPort.String(), portList(declared)),
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
	return slices.ContainsFunc(s.probes, func(p probe) bool { return p.service == service && p.port == port && p.closed() })
}

// reached finds components that can hardly be connected to, or not at all.
func (s *system) reached() (list []finding) {
	for _, svc := range s.services {
		open := slices.ContainsFunc(s.probes, func(p probe) bool { return p.service == svc.Name && !p.closed() })
		tried := slices.ContainsFunc(s.probes, func(p probe) bool { return p.service == svc.Name })
		if tried && !open {
			c := s.behind(&svc)
			list = append(list, finding{kind: silent, component: c, node: s.nodeOf(c), evidence: "its Service refuses connections"})
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
			f.evidence = fmt.Sprintf("%d of %d connections to its port %d took more than %v ms", p.slow, p.tries, p.port, slowConnect)
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

// stores are the images of servers that keep data for others.
var stores = regexp.MustCompile(`(?i)(mongo|redis|valkey|memcached|postgres|mysql|mariadb|cassandra|etcd|elasticsearch|opensearch)`)

// isStore reports whether a component keeps data for others.
func (s *system) isStore(component string) bool {
	d, ok := s.deployment(component)
	if !ok {
		return false
	}
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c v1.Container) bool {
		image := c.Image[strings.LastIndex(c.Image, "/")+1:]
		return stores.MatchString(image)
	})
}

// spoken finds causes that logs name.
func (s *system) spoken() (list []finding) {
	for c := range s.logs {
		for _, rule := range []struct {
			kind  kind
			what  *regexp.Regexp
			store bool // it is the store that the line is about, not its client
		}{
			{loginRefused, speaksOfLogin, true},
			{tlsRequired, speaksOfTLS, true},
			{diskFailing, speaksOfDisk, true},
			{kernelFailing, speaksOfKern, false},
		} {
			line, ok := s.said(c, rule.what)
			if !ok {
				continue
			}
			at := c
			if rule.store && !s.isStore(c) {
				at = s.storeOf(c, line, rule.what)
			}
			list = append(list, finding{kind: rule.kind, component: at, evidence: fmt.Sprintf("the log of %s says %s", c, excerpt(line, rule.what)), node: s.nodeOf(at)})
		}
	}
	slices.SortFunc(list, func(a, b finding) int { return strings.Compare(a.component+a.evidence, b.component+b.evidence) })
	return list
}

// storeOf is the store that a client's line is about: the one it names, or the one that says the
// same, or the only one it calls; or else the client itself.
func (s *system) storeOf(client, line string, what *regexp.Regexp) string {
	for _, n := range s.named(client, line) {
		if s.isStore(n) {
			return n
		}
	}
	var called []string
	for _, n := range s.calls[client] {
		if !s.isStore(n) {
			continue
		}
		if _, ok := s.said(n, what); ok {
			return n
		}
		called = append(called, n)
	}
	if len(called) == 1 {
		return called[0]
	}
	return client
}

// resources finds pods that have no CPU or memory left.
func (s *system) resources() (list []finding) {
	for _, m := range s.samples {
		c := s.component(m.who)
		switch m.name {
		case cpuThrottled:
			list = append(list, finding{kind: cpuStarved, component: c, node: s.nodeOf(c), evidence: fmt.Sprintf("its container is throttled in %.0f %% of its CPU periods", 100*m.value)})
		case memoryUsed:
			list = append(list, finding{kind: outOfMemory, component: c, node: s.nodeOf(c), evidence: fmt.Sprintf("its container uses %.0f %% of its memory limit", 100*m.value)})
		}
	}
	return list
}

// requests finds services whose requests fail or take long.
func (s *system) requests() (list []finding) {
	for _, m := range s.samples {
		c, _ := s.owner(m.who)
		if c == "" {
			c = m.who
		}
		switch m.name {
		case httpErrors, rpcErrors:
			list = append(list, finding{kind: failing, component: c, evidence: fmt.Sprintf("%.0f %% of the requests to it fail", 100*m.value)})
		case storeErrors:
			list = append(list, finding{kind: failing, component: c, evidence: fmt.Sprintf("%.0f %% of its requests to stores fail", 100*m.value)})
		case httpLatency, rpcLatency:
			list = append(list, finding{kind: slow, component: c, evidence: fmt.Sprintf("one in twenty requests to it takes more than %.1f s", m.value)})
		case storeLatency:
			list = append(list, finding{kind: slow, component: c, evidence: fmt.Sprintf("one in twenty of its requests to stores takes more than %.1f s", m.value)})
		}
	}
	return list
}
