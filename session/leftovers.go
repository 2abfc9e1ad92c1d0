package session

import (
	"context"
	"fmt"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/guard"
)

// How long a system must be well if the agent left something behind that acts by itself. It finds out
// what strikes soon; what waits for an hour cannot be waited for.
const (
	leftHold = 30 * time.Second
	cronHold = 75 * time.Second // a CronJob acts on the minute
	// maxProbeHold bounds what a probe can ask for.
	maxProbeHold = 3 * time.Minute
)

// actor is something that acts by itself.
type actor struct {
	hold time.Duration // for which it must be watched
	runs bool          // it runs programs, and can keep a machine busy
}

var (
	runner  = actor{leftHold, true}
	trigger = actor{leftHold, false}
)

// actors are what acts in a cluster by itself.
type actors struct {
	// left are those outside the application's own workloads, by name: Jobs, autoscalers, pods nobody
	// knows.
	left map[string]actor
	// templates are what the pods of the application are made of, by kind and name.
	templates map[string]v1.PodSpec
	pods      int // that run, of all namespaces
}

// morePods is how many pods more than before are no mere change of the application.
const morePods = manyReplicas

// actors lists what acts by itself.
func (s *Stage) actors(ctx context.Context) (actors, error) {
	a := actors{left: map[string]actor{}, templates: map[string]v1.PodSpec{}}
	namespaces := s.namespaces
	if namespaces == nil {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, ns := range namespaces {
		if err := s.addActors(ctx, ns, &a); err != nil {
			return a, err
		}
	}
	workloads, err := s.workloads(ctx)
	for _, w := range workloads {
		a.templates[w.Kind+" "+w.Name] = w.template
	}
	return a, err
}

// addActors adds those of a namespace.
func (s *Stage) addActors(ctx context.Context, ns string, a *actors) error {
	all := metav1.ListOptions{}
	jobs, err := s.client.BatchV1().Jobs(ns).List(ctx, all)
	if err != nil {
		return err
	}
	for _, j := range jobs.Items {
		if !slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
			return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == v1.ConditionTrue
		}) {
			a.left["job "+j.Namespace+"/"+j.Name] = runner
		}
	}
	crons, err := s.client.BatchV1().CronJobs(ns).List(ctx, all)
	if err != nil {
		return err
	}
	for _, c := range crons.Items {
		a.left["cronjob "+c.Namespace+"/"+c.Name] = actor{cronHold, true}
	}
	scalers, err := s.client.AutoscalingV2().HorizontalPodAutoscalers(ns).List(ctx, all)
	if err != nil {
		return err
	}
	for _, h := range scalers.Items {
		a.left["autoscaler "+h.Namespace+"/"+h.Name] = trigger
	}
	return s.addPods(ctx, ns, a)
}

// addPods adds who runs pods: each controller by name, and each pod that has none. Jobs are listed already.
func (s *Stage) addPods(ctx context.Context, ns string, a *actors) error {
	left := a.left
	pods, err := s.client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, p := range pods.Items {
		if p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed {
			continue
		}
		a.pods++
		owner := metav1.GetControllerOf(&p)
		switch {
		case owner == nil:
			left["pod "+p.Namespace+"/"+p.Name] = runner
		case owner.Kind == "ReplicaSet":
			name := strings.TrimSuffix(owner.Name, "-"+p.Labels[appsv1.DefaultDeploymentUniqueLabelKey])
			left["pods of "+p.Namespace+"/"+name] = runner
		case owner.Kind != "Job":
			left["pods of "+p.Namespace+"/"+owner.Name] = runner
		}
		for _, c := range p.Spec.EphemeralContainers {
			left["the debugging container "+c.Name+" in "+p.Name] = runner
		}
	}
	return nil
}

// since are the actors that were not there when the agent began, and what of the application acts
// otherwise than in the healthy system, and than when the agent began: a release of others may have changed it.
func (a actors) since(healthy, begun actors) map[string]actor {
	left := map[string]actor{}
	for name, what := range a.left {
		if _, old := begun.left[name]; old {
			continue
		}
		if _, old := healthy.left[name]; !old {
			left[name] = what
		}
	}
	for name, now := range a.templates {
		was, ok := healthy.templates[name]
		found, there := begun.templates[name]
		if !ok || reflect.DeepEqual(now, found) { // What a fault changed is not the agent's doing.
			continue
		}
		lately := actsOtherwise(found, now)
		for what, a := range actsOtherwise(was, now) {
			if _, changed := lately[what]; changed || !there {
				left[what+" of "+name] = a
			}
		}
	}
	if more := a.pods - max(healthy.pods, begun.pods); more >= morePods {
		left[fmt.Sprintf("%d more pods", more)] = runner
	}
	return left
}

// actsOtherwise is what makes pods act otherwise than before, some time after their start.
func actsOtherwise(was, now v1.PodSpec) map[string]actor {
	list := map[string]actor{}
	if !reflect.DeepEqual(was.Tolerations, now.Tolerations) {
		list["other tolerations"] = trigger
	}
	containers := func(s v1.PodSpec) []v1.Container { return append(slices.Clone(s.InitContainers), s.Containers...) }
	for _, c := range containers(now) {
		i := slices.IndexFunc(containers(was), func(o v1.Container) bool { return o.Name == c.Name })
		if i < 0 {
			list["a container "+c.Name] = runner
			continue
		}
		o := containers(was)[i]
		if o.Image != c.Image {
			list["another image"] = runner
		}
		if !slices.Equal(o.Command, c.Command) || !slices.Equal(o.Args, c.Args) {
			if mayLast(append(slices.Clone(c.Command), c.Args...)) {
				list["another command"] = runner
			}
		}
		if !reflect.DeepEqual(o.Lifecycle, c.Lifecycle) {
			list["other hooks"] = runner
		}
		for _, p := range [][2]*v1.Probe{
			{o.LivenessProbe, c.LivenessProbe},
			{o.ReadinessProbe, c.ReadinessProbe},
			{o.StartupProbe, c.StartupProbe},
		} {
			if p[1] != nil && !reflect.DeepEqual(p[0], p[1]) {
				strikes := probeTime(p[1], func(p *v1.Probe) int32 { return p.FailureThreshold }) + settleTime
				known := list["other probes"]
				list["other probes"] = actor{
					min(max(known.hold, leftHold, strikes), maxProbeHold),
					known.runs || p[1].Exec != nil,
				}
			}
		}
	}
	return list
}

// plainPrograms are programs that do one thing and end.
var plainPrograms = strings.Fields(
	`awk cat chmod chown cp curl cut date df dig du echo env find free getent grep head host hostname id
	ip jq kill ls memcached-tool mkdir mongo mongod mongodump mongorestore mongosh mount mv nc netstat nginx nslookup ping printenv ps pwd
	redis-cli rm sed sort ss stat tail tar test top touch true uname uniq uptime wc wget whoami`)

// shells are programs whose arguments are programs.
var shells = strings.Fields(`sh ash bash dash busybox`)

var (
	// sleepers is what a script has in it that leaves something behind or waits.
	sleepers = regexp.MustCompile(
		`(?i)\b(sleep|nohup|setsid|crontab|while|until|trap|disown|coproc|setTimeout|setInterval)\b`)
	// inBackground is an & that is no && and redirects nothing.
	inBackground = regexp.MustCompile(`(^|[^&><])&($|[^&>0-9])`)
)

// mayLast reports whether a command may go on by itself after the agent is done, as far as its text
// tells.
func mayLast(command []string) bool {
	if len(command) == 0 {
		return false
	}
	text, program := strings.Join(command, " "), path.Base(command[0])
	switch {
	case sleepers.MatchString(text):
		return true
	case slices.Contains(shells, program):
		return inBackground.MatchString(text) || slices.ContainsFunc(command[1:], func(s string) bool {
			return strings.HasSuffix(s, ".sh")
		})
	}
	return !slices.Contains(plainPrograms, program)
}

// runsOn reports whether a write is a command in a container that may go on by itself.
func runsOn(e guard.Entry) bool {
	return e.Verb == "connect" && e.Status < 300 &&
		(e.Subresource == "attach" || e.Subresource == "exec" && mayLast(e.Command))
}

// holding is how long the system must be well after the agent is done.
func (l *Local) holding(ctx context.Context) grade.Holding {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var h grade.Holding
	for _, f := range l.faults {
		h.Extend(fault.HoldOf(f))
	}
	now, err := l.stage.actors(ctx)
	if err != nil {
		h.Extend(leftHold, fmt.Sprintf("what the agent left behind could not be listed: %v", err))
	}
	left := now.since(l.healthyActors, l.found)
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if a := left[name]; a.runs {
			h.Leave(a.hold, name)
		} else {
			h.Extend(a.hold, "of "+name)
		}
	}
	if n := l.runOn.Load(); n > 0 {
		h.Leave(leftHold, fmt.Sprintf("%d commands in containers that may go on", n))
	}
	return h
}
