package aci

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/aiopslab/aiopslab/observe"
)

type topologyArgs struct {
	Namespace string `arg:"namespace" doc:"The namespace of the application."`
}

// topologyWindow is how far back traces tell who calls whom.
const topologyWindow = 10 * time.Minute

var getTopology = define("get_topology", Read,
	"Show the services of a namespace, how many of their pods are ready, what they depend on by design, and who "+
		"called whom in the traces of the last 10 minutes.",
	"str: a table of the services, and the calls that were seen.",
	func(ctx context.Context, i *Interface, a *topologyArgs) Result {
		services, err := i.client.CoreV1().Services(a.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return failed("list the services of %s: %v", a.Namespace, err)
		}
		if len(services.Items) == 0 {
			return failed("there are no services in namespace %q; the application is in %q", a.Namespace,
				i.o.App.Namespace)
		}
		pods, err := i.client.CoreV1().Pods(a.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return failed("list the pods of %s: %v", a.Namespace, err)
		}
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "SERVICE\tKIND\tREADY PODS\tPORTS\tDEPENDS ON")
		for _, s := range services.Items {
			known, _ := i.o.App.Service(s.Name)
			if a.Namespace != i.o.App.Namespace {
				known.Kind, known.Calls = "", nil
			}
			ready, all := readyPods(&s, pods.Items)
			fmt.Fprintf(w, "%s\t%s\t%d/%d\t%s\t%s\n", s.Name, orDash(known.Kind), ready, all, ports(&s),
				orDash(strings.Join(known.Calls, ", ")))
		}
		w.Flush()
		now := i.now()
		links, err := i.o.Observer.Jaeger(a.Namespace).Dependencies(ctx, now.Add(-topologyWindow), now)
		if err != nil {
			fmt.Fprintf(&b, "\nThe traces cannot be read: %v\n", err)
			return Result{Text: b.String()}
		}
		slices.SortFunc(links, func(x, y observe.Link) int {
			return strings.Compare(x.Parent+" "+x.Child, y.Parent+" "+y.Child)
		})
		fmt.Fprintf(&b, "\nCalls in the traces of the last %d minutes:\n", int(topologyWindow.Minutes()))
		for _, l := range links {
			fmt.Fprintf(&b, "  %s -> %s: %d\n", l.Parent, l.Child, l.CallCount)
		}
		if len(links) == 0 {
			b.WriteString("  (none)\n")
		}
		return Result{Text: b.String()}
	})

// readyPods counts the pods a service selects.
func readyPods(s *v1.Service, pods []v1.Pod) (ready, all int) {
	if len(s.Spec.Selector) == 0 {
		return 0, 0
	}
	selector := labels.SelectorFromSet(s.Spec.Selector)
	for _, p := range pods {
		if !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		all++
		if slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
			return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
		}) {
			ready++
		}
	}
	return ready, all
}

// ports are the ports of a service, with the pods' behind them where they differ.
func ports(s *v1.Service) string {
	var list []string
	for _, p := range s.Spec.Ports {
		text := fmt.Sprint(p.Port)
		if target := p.TargetPort.String(); target != text && target != "0" && target != "" {
			text += "->" + target
		}
		list = append(list, text)
	}
	return orDash(strings.Join(list, ","))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
