package runbook

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// maxRepairs is how many causes are worked on before the agent gives up.
const maxRepairs = 4

// repair sets right what was found, one cause after another, and checks whether that helped.
func (i *investigation) repair() {
	var tried []string
	for range maxRepairs {
		untried := slices.DeleteFunc(i.causes(), func(f finding) bool {
			return f.vague() || slices.Contains(tried, f.component+fmt.Sprint(f.kind))
		})
		if len(untried) == 0 || i.left() < 4 {
			return
		}
		var volumes []finding
		for _, f := range untried {
			tried = append(tried, f.component+fmt.Sprint(f.kind))
			if f.kind == volumeUnbound {
				volumes = append(volumes, f)
			} else {
				i.fix(f)
			}
		}
		i.fixVolumes(volumes)
		i.helpOthers(untried)
		if i.well = i.better(); i.well {
			return
		}
	}
}

// fix sets one cause right.
func (i *investigation) fix(f finding) {
	because := fmt.Sprintf("%s is at fault: %s.", f.component, f.evidence)
	switch f.kind {
	case wrongPort:
		i.fixPorts(f, because)
	case scaledToZero:
		i.change(because+" I give it a replica again.", "kubectl scale deployment/%[2]s -n %[1]s --replicas=1",
			f.component)
	case unschedulable:
		i.change(because+" I remove the node selector.",
			`kubectl patch deployment %[2]s -n %[1]s --type=json -p '[{"op": "remove", "path": "/spec/template/spec/nodeSelector"}]'`, f.component)
	case changed, badImage:
		i.change(because+" I go back to what was deployed before.", "kubectl rollout undo deployment/%[2]s -n %[1]s",
			f.component)
	case loginRefused:
		i.fixUsers(f, because)
	case tlsRequired:
		i.fixTLS(f, because)
	case networkFailing, diskFailing, kernelFailing, killed, replaced:
		i.move(f, because)
	case silent, crashing:
		i.change(because+" I do not know why, so I restart it.", "kubectl rollout restart deployment/%[2]s -n %[1]s",
			f.component)
	case cpuStarved, outOfMemory:
		i.raise(f, because)
	}
}

// change runs a command with the namespace and a Deployment, and waits until that is rolled out.
func (i *investigation) change(thought, format, deployment string) {
	i.shell(thought, fmt.Sprintf(format+" && kubectl rollout status deployment/%[2]s -n %[1]s --timeout=40s",
		i.namespace, deployment), 60)
}

// fixPorts has the Service send to the ports of the container.
func (i *investigation) fixPorts(f finding, because string) {
	var ops []string
	for _, g := range i.ports() {
		if g.object == f.object {
			ops = append(ops, fmt.Sprintf(`{"op": "replace", "path": "/spec/ports/%d/targetPort", "value": %d}`, g.port,
				g.value))
		}
	}
	i.shell(because+" I set the target port to the one that the container listens on.",
		fmt.Sprintf("kubectl patch service %s -n %s --type=json -p '[%s]'", f.object, i.namespace,
			strings.Join(ops, ", ")), 30)
}

// fixVolumes frees volumes that still belong to claims which are gone. The data in them stays.
func (i *investigation) fixVolumes(list []finding) {
	var names []string
	for _, f := range list {
		if f.object != "" {
			names = append(names, f.object)
		}
	}
	if len(names) == 0 {
		return
	}
	i.objects(i.ask(summary(list)+". What is the matter with the volumes?",
		"kubectl get pv "+strings.Join(names, " ")+" -o json | brief volumes"))
	var released []string
	for _, v := range i.volumes {
		if slices.Contains(names, v.Name) && v.Status.Phase == v1.VolumeReleased {
			released = append(released, v.Name)
		}
	}
	if len(released) == 0 {
		return
	}
	i.shell("The volumes are Released: each still belongs to a claim that was deleted. I clear that, so that the new "+
		"claims can have them with their data.",
		fmt.Sprintf(
			`for v in %s; do kubectl patch pv $v --type=merge -p '{"spec": {"claimRef": null}}'; done; kubectl rollout status deployment/%s -n %s --timeout=40s`, strings.Join(released, " "), list[0].component, i.namespace), 60)
}

// move has the pod of a component run on another node. What is bound to the node stays behind.
func (i *investigation) move(f finding, because string) {
	pods := i.podsOf(f.component)
	if f.node == "" || f.node == "<none>" || len(pods) == 0 {
		return
	}
	i.shell(fmt.Sprintf("%s Nothing in its configuration explains that, so I suspect node %s. I keep pods off that "+
		"node and have this one start elsewhere.", because, f.node),
		fmt.Sprintf("kubectl cordon %s && kubectl delete pod -n %s %s --wait=false && sleep 2 && kubectl rollout "+
			"status deployment/%s -n %[2]s --timeout=40s", f.node, i.namespace, strings.Join(pods, " "), f.component),
		60)
}

// podsOf are the names of a component's pods.
func (i *investigation) podsOf(component string) (names []string) {
	for _, r := range i.rows {
		if i.component(r.name) == component && r.status != "Terminating" {
			names = append(names, r.name)
		}
	}
	return names
}

// raise gives a component more of what it lacks.
func (i *investigation) raise(f finding, because string) {
	what := "memory=2Gi"
	if f.kind == cpuStarved {
		what = "cpu=8"
	}
	i.change(because+" I raise its limit.", "kubectl set resources deployment %[2]s -n %[1]s --limits="+what,
		f.component)
}

// helpOthers restarts those who gave up while what they need was away: Kubernetes waits ever longer
// before it starts them again.
func (i *investigation) helpOthers(fixed []finding) {
	var pods []string
	i.next = "That is done. How are the pods now?"
	i.lookAtPods()
	for _, r := range i.rows {
		c := i.component(r.name)
		own := slices.ContainsFunc(fixed, func(f finding) bool { return f.component == c })
		if r.ill() && (!own || r.status == "CrashLoopBackOff") {
			pods = append(pods, r.name)
		}
	}
	if len(pods) > 0 {
		i.shell("Some pods gave up while they waited. I have them start at once rather than wait for "+
			"Kubernetes' back-off.", fmt.Sprintf("kubectl delete pod -n %s --ignore-not-found --wait=false %s",
			i.namespace, strings.Join(pods, " ")), 30)
	}
}

// better waits until all is available, and looks whether requests succeed again.
func (i *investigation) better() bool {
	i.shell("I wait until every Deployment is available again.",
		fmt.Sprintf("kubectl wait deployment --all -n %s --for=condition=Available --timeout=60s", i.namespace), 75)
	i.forget()
	i.next = "Is it better?"
	for _, look := range []func(){i.lookAtPods, i.lookAtDeployments, i.lookAtConnections} {
		look()
	}
	i.next += " And do requests succeed, after a moment?"
	for range 2 {
		if i.prometheus != "" {
			i.samples = readSamples(i.shell(i.next, "sleep 15\n"+i.metricsCommand(15), 60))
		}
		list := i.causes()
		if len(list) == 0 {
			return true
		}
		if !list[0].vague() {
			break
		}
		i.next = "Requests still fail or are slow, but nothing is broken any more. I give it another moment."
	}
	i.next = "It is not well yet."
	for _, look := range []func(){i.lookAtIllPods, i.lookAtHistory, i.lookAtLogs, i.lookAtLastWords} {
		look()
	}
	return false
}

// forget drops what a repair may have changed.
func (i *investigation) forget() {
	fresh := newSystem(i.namespace)
	fresh.calls, fresh.services, fresh.claims, fresh.prometheus = i.calls, i.services, i.claims, i.prometheus
	i.system, i.found = fresh, nil
}
