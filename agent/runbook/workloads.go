package runbook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// functionLabel is the label of pods that a serverless layer runs: there are none while nobody needs one.
const functionLabel = "openwhisk.apache.org/action"

// scaledAway finds Deployments that nobody wants a pod of.
func (s *system) scaledAway() (list []finding) {
	for _, d := range s.deployments {
		if d.Spec.Template.Labels[functionLabel] == "" && d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
			list = append(list, finding{
				kind: scaledToZero, component: d.Name,
				evidence: "its Deployment asks for 0 replicas",
			})
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
		f := finding{
			kind: volumeUnbound, component: c, object: claim.Spec.VolumeName,
			evidence: fmt.Sprintf("its volume claim %s is %s", claim.Name, claim.Status.Phase),
		}
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
				list = append(list, finding{
					kind: unschedulable, component: c,
					evidence: "no node takes its pod: " + quote(cond.Message),
				})
			}
		}
	}
	return list
}

// ready reports whether a component has a pod that is ready.
func (s *system) ready(component string) bool {
	return slices.ContainsFunc(s.rows, func(r row) bool { return r.ready && s.component(r.name) == component })
}

// longAgo is how long ago a container ended that does not matter any more.
const longAgo = 15 * time.Minute

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
			if w := st.State.Waiting; w != nil &&
				(strings.Contains(w.Reason, "Image") || w.Reason == "CreateContainerConfigError") {
				list = append(list, finding{
					kind: badImage, component: c,
					evidence: fmt.Sprintf("its container waits: %s", w.Reason),
				})
				continue
			}
			end := st.State.Terminated
			if end == nil {
				end = st.LastTerminationState.Terminated
			}
			if end == nil || st.RestartCount == 0 && st.State.Terminated == nil {
				continue
			}
			if st.Ready && !end.FinishedAt.IsZero() && time.Since(end.FinishedAt.Time) > longAgo {
				continue // Whatever that was, it is over.
			}
			f := finding{component: c, node: p.Spec.NodeName, over: st.Ready}
			switch {
			case end.Reason == "OOMKilled":
				f.kind, f.evidence = outOfMemory,
					"its container was OOMKilled and restarted "+times(int(st.RestartCount))
			case end.ExitCode == exitKilled:
				f.kind, f.evidence = killed,
					"its container was killed (exit code 137) and restarted "+times(int(st.RestartCount))
			case !st.Ready:
				f.kind, f.evidence = crashing,
					fmt.Sprintf("its container ends with exit code %d and was restarted %s", end.ExitCode,
						times(int(st.RestartCount)))
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
				list = append(list, finding{
					kind: changed, component: c,
					evidence: "its Deployment was changed (" + what + ") and it has not become ready since",
				})
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
