package kube

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// The minor versions of Kubernetes 1 that the lab is made for.
const (
	oldestMinor = 30 // Policies for admission are there, and port-forward knows WebSockets.
	newestMinor = 38 // one more than the client's
)

// examination is a look at a cluster.
type examination struct {
	*Cloud
	need       Need
	demand     demand
	nodes      []v1.Node // nil, as the next two, if they cannot be listed
	pods       []v1.Pod  // that run or will
	namespaces []v1.Namespace
	unknown    []Finding // what could not be listed
}

// Examine looks whether the lab can do what is needed on the cluster, and changes nothing in it. It says so of what
// cannot be known.
func (c *Cloud) Examine(ctx context.Context, need Need) []Finding {
	e := &examination{Cloud: c, need: need, demand: need.demand()}
	e.gather(ctx)
	all := []Finding{e.version()}
	all = append(all, e.unknown...)
	all = append(all, e.rights(ctx)...)
	all = append(all, e.wide(ctx)...)
	for _, check := range []func(context.Context) Finding{
		e.name, e.workloads, e.spaces, e.remains, e.capacity, e.storage, e.images, e.metrics, e.policy, e.chaos,
	} {
		if f := check(ctx); f.Check != "" {
			all = append(all, f)
		}
	}
	return all
}

// gather lists what several checks look at.
func (e *examination) gather(ctx context.Context) {
	missing := func(what string, err error) {
		if err != nil {
			e.unknown = append(e.unknown, Finding{
				what, Problem, fmt.Sprintf("they cannot be listed: %v", err), "Ask for the right to list " + what + ".",
			})
		}
	}
	nodes, err := e.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if missing("nodes", err); err == nil {
		e.nodes = append([]v1.Node{}, nodes.Items...)
	}
	pods, err := e.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if missing("pods", err); err == nil {
		e.pods = slices.DeleteFunc(append([]v1.Pod{}, pods.Items...), func(p v1.Pod) bool {
			return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
		})
	}
	spaces, err := e.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if missing("namespaces", err); err == nil {
		e.namespaces = append([]v1.Namespace{}, spaces.Items...)
	}
}

func (e *examination) version() Finding {
	is := fmt.Sprintf("Kubernetes %s", e.Version.GitVersion)
	v, err := version.ParseGeneric(e.Version.GitVersion)
	switch {
	case err != nil:
		return Finding{"version", Warning, fmt.Sprintf("%q is no version that the lab knows", e.Version.GitVersion), ""}
	case v.Major() != 1 || v.Minor() < oldestMinor:
		return Finding{
			"version", Problem, fmt.Sprintf("%s is older than 1.%d", is, oldestMinor), "Choose a newer cluster.",
		}
	case v.Minor() > newestMinor:
		return Finding{
			"version", Warning, fmt.Sprintf("%s is newer than 1.%d, the newest that the lab knows", is, newestMinor),
			"Update the lab if something is odd.",
		}
	}
	return Finding{"version", OK, is, ""}
}

var productive = regexp.MustCompile(`(^|[^a-z0-9])(prod|prd|production|live)[0-9]*([^a-z0-9]|$)`)

// looksProductive reports whether a name has a word in it that stands for production.
func looksProductive(name string) bool {
	words := regexp.MustCompile(`([a-z0-9])([A-Z])`).ReplaceAllString(name, "$1-$2")
	return productive.MatchString(regexp.MustCompile(`\b(non|not)[-_.]?prod`).
		ReplaceAllString(strings.ToLower(words), "test"))
}

func (e *examination) name(context.Context) Finding {
	for _, n := range []struct{ what, name string }{
		{"context", e.Context}, {"cluster", e.cluster}, {"server", e.config.Host},
	} {
		if looksProductive(n.name) {
			return Finding{
				checkName, Warning, fmt.Sprintf("the %s is called %s, which looks like production", n.what, n.name),
				"Choose another with --context; if it is meant, a run wants --i-know.",
			}
		}
	}
	return Finding{checkName, OK, fmt.Sprintf("context %s, cluster %s at %s", e.Context, e.cluster, e.config.Host), ""}
}

// infrastructure are namespaces of what clusters for tests come with, or have installed for the lab.
var infrastructure = []string{
	"calico-apiserver", "calico-system", "cert-manager", "chaos-mesh", "chaos-testing", "ingress-nginx",
	"local-path-storage", "metallb-system", "tigera-operator",
}

// workloads looks for what other people run.
func (e *examination) workloads(context.Context) Finding {
	if e.pods == nil || e.namespaces == nil {
		return Finding{
			checkWorkloads, Warning, "whether others run anything here is not known",
			"Look for yourself; if it is a cluster for tests, a run wants --i-know.",
		}
	}
	theirs := map[string]int{}
	for _, p := range e.pods {
		theirs[p.Namespace]++
	}
	var names []string
	pods := 0
	for _, ns := range e.namespaces {
		_, _, ours := ownerOf(&ns.ObjectMeta)
		if theirs[ns.Name] == 0 || ours || strings.HasPrefix(ns.Name, "kube-") ||
			slices.Contains(infrastructure, ns.Name) {
			continue
		}
		names, pods = append(names, ns.Name), pods+theirs[ns.Name]
	}
	if len(names) == 0 {
		return Finding{checkWorkloads, OK, "nobody else runs anything here", ""}
	}
	return Finding{
		checkWorkloads, Warning, fmt.Sprintf("others run %s in %s", count(pods, "pod"), shorten(names)),
		"Faults take nodes and capacity from them too: choose a cluster for tests; if it is one, a run wants --i-know.",
	}
}

// spaces looks whether the namespaces that are needed are free.
func (e *examination) spaces(context.Context) Finding {
	for _, ns := range e.namespaces {
		if !slices.Contains(e.need.Namespaces, ns.Name) {
			continue
		}
		run, o, ours := ownerOf(&ns.ObjectMeta)
		switch {
		case !ours:
			return Finding{
				"namespaces", Warning, fmt.Sprintf("namespace %s exists already, and the lab did not make it", ns.Name),
				fmt.Sprintf("A run takes one with a number behind the name. If nobody needs it, run "+
					"'kubectl delete namespace %s'.", ns.Name),
			}
		case e.clock.now().Before(o.Until):
			return Finding{
				"namespaces", Warning, fmt.Sprintf("namespace %s is in use (%s)", ns.Name, describe(run, o)),
				"A run beside it takes one with a number behind the name.",
			}
		}
	}
	if len(e.need.Namespaces) == 0 {
		return Finding{}
	}
	return Finding{"namespaces", OK, shorten(e.need.Namespaces) + " can be made", ""}
}

// remains looks for what dead runs have left behind.
func (e *examination) remains(ctx context.Context) Finding {
	all, err := e.Remains(ctx)
	if err != nil {
		return Finding{"remains", Warning, fmt.Sprintf("what dead runs have left is not known: %v", err), ""}
	}
	var dead []string
	for _, r := range all {
		if !r.Alive {
			dead = append(dead, r.Run)
		}
	}
	if len(dead) == 0 {
		return Finding{"remains", OK, "no dead run has left anything behind", ""}
	}
	return Finding{
		"remains", Warning, fmt.Sprintf("dead runs have left something behind: %s", shorten(dead)),
		"Run 'aiopslab cleanup'.",
	}
}

func (e *examination) metrics(ctx context.Context) Finding {
	err := e.client.Discovery().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/nodes").Do(ctx).Error()
	do := "Install metrics-server if you need them."
	switch {
	case apierrors.IsNotFound(err):
		return Finding{"metrics", Warning, "there is no metrics API: kubectl top and autoscaling do not work", do}
	case err != nil:
		return Finding{"metrics", Warning, fmt.Sprintf("the metrics API does not answer: %v", err), do}
	}
	return Finding{"metrics", OK, "the metrics API answers", ""}
}

// meshRights are what the lab does with Chaos Mesh, where there is one.
var meshRights = []right{
	{"list,create,delete", meshVersion.Group, podChaos},
	{"list,create,delete", meshVersion.Group, networkChaos},
	{"list,create,delete", meshVersion.Group, stressChaos},
	{"list,create,delete", meshVersion.Group, ioChaos},
}

func (e *examination) chaos(ctx context.Context) Finding {
	const check = "chaos-mesh"
	m := e.findMesh(ctx)
	switch {
	case m.err != nil:
		return Finding{check, Warning, fmt.Sprintf("whether Chaos Mesh is installed is not known: %v", m.err), ""}
	case len(m.resources) == 0:
		return Finding{
			check, Warning, "Chaos Mesh is not installed: problems that disturb pods need it, but for those that " +
				"kill them",
			"Install it (https://chaos-mesh.org) if you want those; 'aiopslab problems --cloud kubeconfig' lists them.",
		}
	case m.idle:
		return Finding{
			check, Warning, "Chaos Mesh's definitions are there, but its controller does not run",
			"Look at its pods, or remove it.",
		}
	case !slices.Contains(m.resources, meshSecond):
		return Finding{
			check, Warning, "Chaos Mesh is older than version 2", "Update it if you want problems that disturb pods.",
		}
	}
	if missing, err := e.lacks(ctx, meshRights); err == nil && len(missing) > 0 {
		return Finding{
			check, Warning, "Chaos Mesh is installed, but you may not " + shorten(missing),
			"Ask for it if you want problems that disturb pods.",
		}
	}
	return Finding{check, OK, "Chaos Mesh is installed", ""}
}

// shorten lists names, but not too many.
func shorten(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
