package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// pods tells of the pods of a namespace.
func (p *player) pods(ctx context.Context, ns string) (facts []string, err error) {
	pods, err := p.client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, pod := range pods.Items {
		add := func(format string, args ...any) {
			facts = append(facts, "pod "+pod.Name+" "+fmt.Sprintf(format, args...))
		}
		s := pod.Status
		add("phase %s, reason %q, message %q, class %s, deleted %v", s.Phase, s.Reason, s.Message, s.QOSClass,
			pod.DeletionTimestamp != nil)
		for _, c := range s.Conditions {
			add("condition %s %s, reason %q, message %q", c.Type, c.Status, c.Reason, c.Message)
		}
		for _, c := range append(s.InitContainerStatuses, s.ContainerStatuses...) {
			add("container %s ready %v, started %v, restarted %v", c.Name, c.Ready, ptr.Deref(c.Started, false),
				c.RestartCount > 0)
			add("container %s is %s", c.Name, state(c.State))
			add("container %s was %s", c.Name, state(c.LastTerminationState))
		}
	}
	return facts, nil
}

func state(s v1.ContainerState) string {
	switch {
	case s.Waiting != nil:
		return fmt.Sprintf("waiting, reason %q, message %q", s.Waiting.Reason, s.Waiting.Message)
	case s.Running != nil:
		return "running"
	case s.Terminated != nil:
		t := s.Terminated
		return fmt.Sprintf("terminated, reason %q, code %d, signal %d, message %q", t.Reason, t.ExitCode, t.Signal,
			t.Message)
	}
	return "nothing"
}

// others tells of events, logs and the status of everything else.
func (p *player) others(ctx context.Context, ns string) (facts []string, err error) {
	all := metav1.ListOptions{}
	events, err := p.client.CoreV1().Events(ns).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, e := range events.Items {
		component := e.Source.Component
		if component == "" {
			component = e.ReportingController
		}
		facts = append(facts, fmt.Sprintf("event %s %s of %s %s by %s: %s", e.Type, e.Reason, e.InvolvedObject.Kind,
			e.InvolvedObject.Name, component, e.Message))
	}
	pods, err := p.client.CoreV1().Pods(ns).List(ctx, all)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods.Items {
		for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			b, err := p.client.CoreV1().Pods(ns).GetLogs(pod.Name, &v1.PodLogOptions{
				Container: c.Name, TailLines: ptr.To[int64](3),
			}).DoRaw(ctx)
			text := string(b)
			if err != nil {
				text = "error: " + err.Error()
			}
			facts = append(facts, fmt.Sprintf("log of %s %s: %q", pod.Name, c.Name, text))
		}
	}
	return p.addStatus(ctx, ns, facts)
}

// addStatus adds the status of what is no pod.
func (p *player) addStatus(ctx context.Context, ns string, facts []string) ([]string, error) {
	all := metav1.ListOptions{}
	apps, core := p.client.AppsV1(), p.client.CoreV1()
	add := func(list runtime.Object, err error) error {
		if err != nil {
			return err
		}
		o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(list)
		if err != nil {
			return err
		}
		items, _ := o["items"].([]any)
		for _, i := range items {
			item := i.(map[string]any)
			meta := item["metadata"].(map[string]any)
			status, ok := item["status"].(map[string]any)
			if !ok { // A slice of endpoints has none.
				status = map[string]any{"endpoints": item["endpoints"], "ports": item["ports"]}
			}
			kind := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", list), "*v1."), "List")
			flatten(&facts, kind+" "+fmt.Sprint(meta["name"]), status)
		}
		return nil
	}
	type lister func() (runtime.Object, error)
	for _, l := range []lister{
		func() (runtime.Object, error) { return apps.Deployments(ns).List(ctx, all) },
		func() (runtime.Object, error) { return apps.ReplicaSets(ns).List(ctx, all) },
		func() (runtime.Object, error) { return apps.StatefulSets(ns).List(ctx, all) },
		func() (runtime.Object, error) { return apps.DaemonSets(ns).List(ctx, all) },
		func() (runtime.Object, error) { return p.client.BatchV1().Jobs(ns).List(ctx, all) },
		func() (runtime.Object, error) { return core.PersistentVolumeClaims(ns).List(ctx, all) },
		func() (runtime.Object, error) { return core.ResourceQuotas(ns).List(ctx, all) },
		func() (runtime.Object, error) { return p.client.PolicyV1().PodDisruptionBudgets(ns).List(ctx, all) },
		func() (runtime.Object, error) { return p.client.DiscoveryV1().EndpointSlices(ns).List(ctx, all) },
	} {
		if err := add(l()); err != nil {
			return facts, err
		}
	}
	return facts, nil
}

// moving are fields that say when, and no more.
var moving = regexp.MustCompile(`(?i)(time|timestamp|uid)$`)

// flatten adds a line for each value. A condition is one.
func flatten(facts *[]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		if kind, ok := v["type"].(string); ok && v["status"] != nil {
			*facts = append(*facts, fmt.Sprintf("%s %s %v, reason %q, message %q", path, kind, v["status"],
				fmt.Sprint(v["reason"]), fmt.Sprint(v["message"])))
			return
		}
		for name, value := range v {
			if !moving.MatchString(name) {
				flatten(facts, path+"."+name, value)
			}
		}
	case []any:
		for _, value := range v {
			flatten(facts, path, value)
		}
	default:
		*facts = append(*facts, fmt.Sprintf("%s %v", path, v))
	}
}

// never are what is never the same twice, and what stands for it.
var never = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`containerd://[0-9a-f]+`), "CONTAINER"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`\b(d|j|ds|web|s)-[0-9a-z]{5,10}(-[0-9a-z]{5})?\b`), "$1-RANDOM"},
	{regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+\b`), "IP"},
	{regexp.MustCompile(`IP:\d{4,5}->`), "IP:PORT->"},
	{regexp.MustCompile(`\b(n1|node-\d)\b`), "NODE"},
	{regexp.MustCompile(`in [0-9.]+m?s \([0-9.]+m?s including waiting\)`), "in a TIME"},
	{regexp.MustCompile(`Image size: \d+ bytes`), "Image size: SIZE"},
	{regexp.MustCompile(`back-off [0-9ms]+ restarting`), "back-off TIME restarting"},
	{regexp.MustCompile(`\(combined from similar events\): `), ""},
	{regexp.MustCompile(`\b(first|second)\b`), "EITHER"},
	{regexp.MustCompile(`kube-api-access-[0-9a-z]{5}`), "kube-api-access-RANDOM"},
}

// normal leaves out what is never the same twice.
func normal(fact, ns string) string {
	fact = strings.ReplaceAll(fact, ns, "NAMESPACE")
	for _, n := range never {
		fact = n.what.ReplaceAllString(fact, n.with)
	}
	return fact
}
