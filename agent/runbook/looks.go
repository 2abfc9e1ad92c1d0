package runbook

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

func (i *investigation) lookAtAlerts() {
	i.alerts = i.call("I begin with the alerts: they say what the monitoring already noticed.", "get_alerts",
		i.namespace)
	i.next = aboutAlerts(i.alerts) + " Are all pods running and ready?"
}

// aboutAlerts says what the table of alerts shows.
func aboutAlerts(text string) string {
	alerts := map[string][]string{} // by state
	for line := range strings.Lines(text) {
		if f := columns.Split(strings.TrimSpace(line), -1); len(f) >= 4 {
			alerts[f[0]] = append(alerts[f[0]], fmt.Sprintf("%s (%s)", f[1], f[3]))
		}
	}
	switch firing, pending := alerts["firing"], alerts["pending"]; {
	case len(firing) == 1:
		return "An alert is firing: " + firing[0] + "."
	case len(firing) > 1:
		return fmt.Sprintf("%d alerts are firing, such as %s.", len(firing), firing[0])
	case len(pending) > 0:
		return "No alert is firing yet; about to is " + pending[0] + "."
	}
	return "There is no alert."
}

func (i *investigation) lookAtPods() { i.lookAtPodsAfter(0) }

func (i *investigation) lookAtPodsAfter(seconds int) {
	command := fmt.Sprintf("kubectl get pods -n %s -o wide", i.namespace)
	if seconds > 0 {
		command = fmt.Sprintf("sleep %d; ", seconds) + command
	}
	i.rows = readRows(i.ask(i.next, command))
	var ill []string
	for _, r := range i.rows {
		if r.ill() {
			status := r.status
			if status == "Running" {
				status = "running, but not ready"
			}
			ill = append(ill, fmt.Sprintf("%s (%s)", r.name, status))
		}
	}
	if len(ill) == 0 {
		i.next = fmt.Sprintf("All %d pods run and are ready.", len(i.rows))
	} else {
		i.next = "Not well: " + strings.Join(ill, ", ") + "."
	}
}

func (i *investigation) lookAtDeployments() {
	i.objects(i.ask(i.next+" I read how the Deployments are configured.",
		"kubectl get deployments -n "+i.namespace+" -o json | brief deployments"))
	i.next = fmt.Sprintf("%d Deployments are there.", len(i.deployments))
	if list := i.scaledAway(); len(list) > 0 {
		i.next = fmt.Sprintf("%s has no pods at all: %s.", list[0].component, list[0].evidence)
	}
}

func (i *investigation) lookAtServices() {
	text := i.ask(i.next+" Next the Services and volume claims, and where Prometheus is.",
		"kubectl get services,persistentvolumeclaims -n "+i.namespace+
			" -o json | brief services; kubectl get services -A | grep -i prometheus")
	i.objects(text)
	i.prometheus = findPrometheus(text)
	i.next = fmt.Sprintf("%d Services are there.", len(i.services))
	for _, c := range i.claims {
		if c.Status.Phase != "Bound" {
			i.next = fmt.Sprintf("The volume claim %s is %s.", c.Name, c.Status.Phase)
		}
	}
}

// findPrometheus finds its address in kubectl's table of services.
func findPrometheus(text string) string {
	best := ""
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 6 || strings.HasPrefix(line, "{") {
			continue
		}
		port, _, _ := strings.Cut(f[5], "/")
		port, _, _ = strings.Cut(port, ":")
		if n, err := strconv.Atoi(port); err != nil || n != 80 && n != 9090 {
			continue
		}
		if best == "" || strings.Contains(f[1], "server") {
			best = fmt.Sprintf("%s.%s:%s", f[1], f[0], port)
		}
	}
	return best
}

// lookAtIllPods reads why pods are not well, if there are any.
func (i *investigation) lookAtIllPods() {
	var names []string
	for _, r := range i.rows {
		switch {
		case r.ill() && r.status == "Pending":
			names = slices.Insert(names, 0, r.name) // The others may only wait for it.
		case r.ill() || r.restarts > 0:
			names = append(names, r.name)
		}
	}
	if len(names) == 0 {
		return
	}
	const most = 14
	names = names[:min(len(names), most)]
	i.objects(i.ask(i.next+" I read what Kubernetes says about the pods that are not well or were restarted.",
		fmt.Sprintf("kubectl get pods -n %s --ignore-not-found -o json %s | brief pods", i.namespace,
			strings.Join(names, " "))))
	i.next = "The pods themselves do not say why."
	for _, f := range append(i.unplaced(), i.containers()...) {
		i.next = fmt.Sprintf("About %s: %s.", f.component, f.evidence)
		break
	}
}

// revisionAnnotation is the number of a pod template of a Deployment.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// lookAtHistory compares the pod templates of those that are ill with those before.
func (i *investigation) lookAtHistory() {
	var names []string
	for _, c := range i.ill() {
		if d, ok := i.deployment(c); ok && revision(d.Annotations) > 1 {
			names = append(names, c)
		}
	}
	if len(names) == 0 {
		return
	}
	text := i.ask(i.next+" "+strings.Join(names, ", ")+" was deployed more than once. What was changed?",
		fmt.Sprintf("kubectl get replicasets -n %s -o json | brief replicasets | of %s", i.namespace,
			strings.Join(names, " ")))
	i.readHistories(text)
	i.next = "The changes do not matter."
	for _, f := range i.notReady() {
		if f.kind == changed {
			i.next = fmt.Sprintf("About %s: %s.", f.component, f.evidence)
		}
	}
}

// readHistories reads the pod templates of Deployments.
func (s *system) readHistories(text string) {
	for _, r := range decodeLines[appsv1.ReplicaSet](text) {
		if len(r.OwnerReferences) > 0 {
			d := r.OwnerReferences[0].Name
			s.histories[d] = append(s.histories[d], r)
		}
	}
	for _, h := range s.histories {
		slices.SortStableFunc(h, func(a, b appsv1.ReplicaSet) int {
			return revision(b.Annotations) - revision(a.Annotations)
		})
	}
}

func revision(annotations map[string]string) int {
	n, _ := strconv.Atoi(annotations[revisionAnnotation])
	return n
}

func (i *investigation) lookAtTopology() {
	i.readTopology(i.call(i.next+" Who calls whom?", "get_topology", i.namespace))
	i.next = "That shows who depends on whom."
}

func (i *investigation) lookAtMetrics() { i.lookAtMetricsOf(30) }

// lookAtMetricsOf looks at the last seconds.
func (i *investigation) lookAtMetricsOf(seconds int) {
	if i.prometheus == "" {
		return
	}
	i.samples = readSamples(i.shell(i.next+fmt.Sprintf(
		" Next the metrics of the last %d seconds: where do requests fail or take long, who is short of CPU or "+
			"memory? Only what is out of bounds is printed.", seconds), i.metricsCommand(seconds), 60))
	if len(i.samples) == 0 {
		i.next = "The metrics show nothing out of bounds so far."
		return
	}
	const most = 3
	var list []string
	for _, m := range i.samples[:min(len(i.samples), most)] {
		list = append(list, m.words())
	}
	i.next = strings.Join(list, "; ")
	if more := len(i.samples) - most; more > 0 {
		i.next += fmt.Sprintf("; and %d more", more)
	}
	i.next += "."
}

func (i *investigation) lookAtConnections() {
	command := i.probeCommand()
	if command == "" {
		return
	}
	i.probes = readProbes(i.shell(i.next+
		" I connect to every port to see who refuses, and who is slow to answer. The columns are the exit code of nc "+
		"and milliseconds.", command, 120))
	i.next = aboutProbes(i.probes)
	for _, f := range append(i.reached(), i.ports()...) {
		i.next = fmt.Sprintf("About %s: %s.", f.component, f.evidence)
	}
}

// aboutProbes says what connecting showed, where that is no reason to worry: a Service may have ports on
// which nobody ever listens.
func aboutProbes(list []probe) string {
	var closed []string
	for _, p := range list {
		if p.closed() {
			closed = append(closed, fmt.Sprintf("%s:%d", p.service, p.port))
		}
	}
	if len(closed) == 0 {
		return "Every port can be reached."
	}
	return fmt.Sprintf("Every service can be reached, though not by each of its ports: %s %s connections.",
		strings.Join(closed, ", "), map[bool]string{true: "refuses", false: "refuse"}[len(closed) == 1])
}

func (i *investigation) lookAtLogs() {
	label := i.commonLabel()
	if label == "" {
		return
	}
	i.readLogs(i.shell(i.next+" What do the logs complain about?", logsCommand(i.namespace, label), 60))
	i.learnCalls()
	switch n := len(i.logs); n {
	case 0:
		i.next = "Nobody complains."
	case 1:
		i.next = "The logs of one component complain; that alone does not say that it is at fault."
	default:
		i.next = fmt.Sprintf("The logs of %d components complain; that alone does not say who is at fault.", n)
	}
	for _, f := range i.spoken() {
		i.next = fmt.Sprintf("About %s: %s.", f.component, f.evidence)
	}
}

// learnCalls notes who calls whom from addresses in logs.
func (i *investigation) learnCalls() {
	for c, lines := range i.logs {
		for _, line := range lines {
			for _, other := range i.named(c, line) {
				if i.isStore(c) {
					i.called(other, c) // A server names its clients.
				} else {
					i.called(c, other)
				}
			}
		}
	}
}

// lookAtLastWords reads what containers that crash said before they ended, unless their logs are
// known.
func (i *investigation) lookAtLastWords() {
	for _, f := range i.containers() {
		if f.kind != crashing || len(i.logs[f.component]) > 0 {
			continue
		}
		text := i.call(fmt.Sprintf("%s What did %s say before it ended?", i.next, f.component), "get_logs", i.namespace,
			f.component, 15, 0, true)
		for line := range strings.Lines(text) {
			i.note(f.component, strings.TrimSpace(line))
		}
		i.learnCalls()
		i.next = "That does not say why."
		for _, g := range i.spoken() {
			i.next = fmt.Sprintf("About %s: %s.", g.component, g.evidence)
		}
	}
}

// replacedOften is how many pods a ReplicaSet makes lately if something does away with them.
const replacedOften = 3

// lookAtEvents counts how often pods were made anew, if nothing explains yet what is wrong.
func (i *investigation) lookAtEvents() {
	if slices.ContainsFunc(i.all(), func(f finding) bool { return f.rank() >= certain }) {
		return
	}
	text := i.ask(i.next+" The events: warnings, and how many pods each ReplicaSet had to make.",
		fmt.Sprintf("kubectl get events -n %[1]s --field-selector type=Warning --sort-by=.lastTimestamp | tail -n 12; "+
			"kubectl get events -n %[1]s -o json | recent", i.namespace))
	i.next = "Nothing else of note."
	i.countCreated(text)
}

// countCreated finds pods that were made anew often.
func (i *investigation) countCreated(text string) {
	made := map[string]int{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "created" {
			continue
		}
		n, _ := strconv.Atoi(f[2])
		made[f[1]] += n
	}
	for set, n := range made {
		if c := i.component(set + "-x"); n >= replacedOften {
			i.found = append(i.found, finding{
				kind: replaced, component: c, node: i.nodeOf(c), over: i.ready(c),
				evidence: "its pod was made anew " + times(n),
			})
			i.next = fmt.Sprintf("The pod of %s was made anew %s.", c, times(n))
		}
	}
	slices.SortFunc(i.found, func(a, b finding) int { return strings.Compare(a.component, b.component) })
}
