package aci

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/aiopslab/aiopslab/observe"
)

type logsArgs struct {
	Namespace string `arg:"namespace" doc:"The namespace in which the service is running."`
	Service   string `arg:"service" doc:"The name of the service, or of one of its pods."`
	Tail      int    `arg:"tail" default:"200" doc:"How many of the newest lines to show; 0 shows all."`
	Since     int    `arg:"since" default:"0" doc:"Only lines of the last so many minutes; 0 is from the start."`
	Previous  bool   `arg:"previous" default:"False" doc:"Also the lines of containers before their last restart."`
	Level     string `arg:"level" default:"" enum:"debug,info,warn,error,fatal" doc:"Only lines of this level or worse."`
}

var getLogs = define("get_logs", Read,
	"Collect the log lines of all pods of a service, in the order of time. "+
		"Of lines that follow one another and differ in their times only, the latest is shown with how often it came.",
	"str: the log lines, and what was left out.",
	func(ctx context.Context, i *Interface, a *logsArgs) Result {
		if a.Tail < 0 || a.Since < 0 {
			return failed("tail and since must not be negative")
		}
		pods, err := i.client.CoreV1().Pods(a.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return failed("list the pods of %s: %v", a.Namespace, err)
		}
		list := slices.DeleteFunc(pods.Items, func(p v1.Pod) bool { return !i.isOf(&p, a.Service) })
		if len(list) == 0 {
			return Result{Failed: true, Text: "Error: " + i.noPods(ctx, a.Namespace, a.Service)}
		}
		q := observe.LogQuery{Namespace: a.Namespace, Service: a.Service, Level: a.Level, Previous: a.Previous}
		if a.Since > 0 {
			q.From = i.now().Add(-time.Duration(a.Since) * time.Minute)
		}
		lines, err := i.o.Observer.Logs(ctx, q)
		if err != nil {
			return failed("%v", err)
		}
		// What the agent may not see, it does not see here either.
		lines = slices.DeleteFunc(lines, func(l observe.LogLine) bool {
			return !slices.ContainsFunc(list, func(p v1.Pod) bool { return p.Name == l.Pod })
		})
		return Result{Text: showLogs(a, list, lines)}
	})

// serviceLabels are the labels of a pod that may name its service, besides the application's own.
var serviceLabels = []string{
	"service", "io.kompose.service", "app", "app.kubernetes.io/name", "name", "k8s-app", "job-name",
}

// isOf reports whether a pod is one of a service's, or the one that was named.
func (i *Interface) isOf(p *v1.Pod, service string) bool {
	return p.Name == service || slices.ContainsFunc(append([]string{i.o.App.Label}, serviceLabels...),
		func(l string) bool { return l != "" && p.Labels[l] == service })
}

// showLogs writes the newest lines, without repetitions, and what there is to know of the pods.
func showLogs(a *logsArgs, pods []v1.Pod, lines []observe.LogLine) string {
	total := len(lines)
	if a.Tail > 0 && total > a.Tail {
		lines = lines[total-a.Tail:]
	}
	containers := map[string]bool{}
	for _, l := range lines {
		containers[l.Pod+"/"+l.Container] = true
	}
	texts := make([]string, len(lines))
	for n, l := range lines {
		if texts[n] = l.Text; len(containers) > 1 {
			texts[n] = fmt.Sprintf("[%s/%s] %s", l.Pod, l.Container, l.Text)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Logs of %s in %s, %s:\n", a.Service, a.Namespace, count(len(pods), "pod"))
	for _, p := range pods {
		b.WriteString(podState(&p, a))
	}
	b.WriteByte('\n')
	entries := dedup(texts, maxBlock)
	for _, e := range entries {
		b.WriteString(e.String() + "\n")
	}
	switch {
	case total == 0 && (a.Level != "" || a.Since > 0):
		b.WriteString("(no line is of that level and time)\n")
	case total == 0:
		b.WriteString("(no lines)\n")
	}
	if shown := len(lines); shown < total {
		fmt.Fprintf(&b, "[The newest %d of %d lines. get_logs(%q, %q, tail=%d) shows more; level=\"error\" and "+
			"since=MINUTES show less.]\n", shown, total, a.Namespace, a.Service, total)
	}
	return b.String()
}

// podState says in a line what a pod is at, if it is not simply running.
func podState(p *v1.Pod, a *logsArgs) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %s: %s", p.Name, p.Status.Phase)
	if p.Status.Reason != "" {
		fmt.Fprintf(&b, ", %s", p.Status.Reason)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			fmt.Fprintf(&b, ", not scheduled: %s", c.Message)
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil {
			fmt.Fprintf(&b, ", container %s waits: %s", c.Name, w.Reason)
			if w.Message != "" {
				fmt.Fprintf(&b, " (%s)", w.Message)
			}
		}
		if c.RestartCount > 0 {
			fmt.Fprintf(&b, ", container %s restarted %s", c.Name, count(int(c.RestartCount), "time"))
			if t := c.LastTerminationState.Terminated; t != nil {
				fmt.Fprintf(&b, ", last with exit code %d (%s)", t.ExitCode, t.Reason)
			}
			if !a.Previous {
				b.WriteString("; previous=True shows the log before")
			}
		}
	}
	return b.String() + "\n"
}

// noPods says why a service has no pods, and so no logs.
func (i *Interface) noPods(ctx context.Context, namespace, service string) string {
	if _, err := i.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		if _, err := i.client.CoreV1().Namespaces().Get(ctx, service, metav1.GetOptions{}); err == nil {
			return fmt.Sprintf("the namespace comes first: get_logs(%q, %q).", service, namespace)
		}
		return fmt.Sprintf("Your service/namespace does not exist. Use kubectl to check. There is no namespace %q; "+
			"the application is in %q.", namespace, i.o.App.Namespace)
	}
	set := func(kind string, replicas *int32) string {
		if replicas != nil && *replicas == 0 {
			return fmt.Sprintf("%s %s in %s is scaled to 0 replicas: it has no pods, so there are no logs.", kind,
				service, namespace)
		}
		return fmt.Sprintf("%s %s in %s has no pods. Use `kubectl describe %s %s -n %s` to see why.", kind, service,
			namespace, strings.ToLower(kind), service, namespace)
	}
	if d, err := i.client.AppsV1().Deployments(namespace).Get(ctx, service, metav1.GetOptions{}); err == nil {
		return set("Deployment", d.Spec.Replicas)
	}
	if s, err := i.client.AppsV1().StatefulSets(namespace).Get(ctx, service, metav1.GetOptions{}); err == nil {
		return set("StatefulSet", s.Spec.Replicas)
	}
	if _, err := i.client.AppsV1().DaemonSets(namespace).Get(ctx, service, metav1.GetOptions{}); err == nil {
		return set("DaemonSet", nil)
	}
	names := i.serviceNames(ctx, namespace)
	if slices.Contains(names, service) {
		return fmt.Sprintf("Service %s in %s exists, but no pod has its name. Use `kubectl describe service %s -n "+
			"%s` to see what it selects.", service, namespace, service, namespace)
	}
	text := fmt.Sprintf("Your service/namespace does not exist. Use kubectl to check. There is no service %q in %s.",
		service, namespace)
	if len(names) > 0 {
		text += fmt.Sprintf("%s The services are %s.", didYouMean(service, names), strings.Join(names, ", "))
	}
	return text
}

// serviceNames are the names of the services of a namespace.
func (i *Interface) serviceNames(ctx context.Context, namespace string) (names []string) {
	list, err := i.client.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for _, s := range list.Items {
		names = append(names, s.Name)
	}
	return names
}
