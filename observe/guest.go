package observe

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// wide are the resources that are in no namespace.
var wide = []string{"namespaces", "nodes", "nodes/metrics", "persistentvolumes"}

// confine changes what is deployed for a cluster that others use as well: it watches the given namespaces and the
// nodes, and has no rights elsewhere. What is in no namespace has a name of its own.
func confine(objects []*unstructured.Unstructured, namespaces []string, run string,
) ([]*unstructured.Unstructured, error) {
	var list []*unstructured.Unstructured
	for _, u := range objects {
		u = u.DeepCopy()
		var err error
		switch u.GetKind() {
		case "ClusterRole":
			list = append(list, confineRole(u, run))
		case "ClusterRoleBinding":
			list = append(list, confineBinding(u, namespaces, run)...)
		case "ConfigMap":
			err = confineScrapes(u, namespaces)
		case "Deployment":
			err = confineState(u, namespaces)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
		list = append(list, u)
	}
	return list, nil
}

// confineRole leaves a role what is in no namespace, and returns one for the rest.
func confineRole(u *unstructured.Unstructured, run string) *unstructured.Unstructured {
	rules, _, _ := unstructured.NestedSlice(u.Object, "rules")
	var outside, inside []any
	for _, r := range rules {
		rule := r.(map[string]any)
		resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
		if len(resources) == 0 { // It is about paths.
			outside = append(outside, rule)
			continue
		}
		isWide := func(s string) bool { return slices.Contains(wide, s) }
		add := func(to *[]any, left func(string) bool) {
			if some := slices.DeleteFunc(slices.Clone(resources), left); len(some) > 0 {
				part := (&unstructured.Unstructured{Object: rule}).DeepCopy().Object
				_ = unstructured.SetNestedStringSlice(part, some, "resources")
				*to = append(*to, part)
			}
		}
		add(&outside, func(s string) bool { return !isWide(s) })
		add(&inside, isWide)
	}
	within := u.DeepCopy()
	within.SetName(insideRole(u.GetName(), run))
	within.Object["rules"] = inside
	u.SetName(u.GetName() + "-" + run)
	u.Object["rules"] = outside
	return within
}

// insideRole is the name of the role that is bound in namespaces.
func insideRole(name, run string) string { return name + "-" + run + "-namespace" }

// confineBinding binds the role for what is in no namespace, and returns bindings of the other in each.
func confineBinding(u *unstructured.Unstructured, namespaces []string, run string) (list []*unstructured.Unstructured) {
	role, _, _ := unstructured.NestedString(u.Object, "roleRef", "name")
	for _, ns := range namespaces {
		b := u.DeepCopy()
		b.SetKind("RoleBinding")
		b.SetNamespace(ns)
		_ = unstructured.SetNestedField(b.Object, insideRole(role, run), "roleRef", "name")
		list = append(list, b)
	}
	u.SetName(u.GetName() + "-" + run)
	_ = unstructured.SetNestedField(u.Object, role+"-"+run, "roleRef", "name")
	return list
}

// confineScrapes has Prometheus look for pods in the namespaces alone, and keep of the nodes' metrics what is about
// these, or about no namespace.
func confineScrapes(u *unstructured.Unstructured, namespaces []string) error {
	const file = "prometheus.yml"
	text, found, _ := unstructured.NestedString(u.Object, "data", file)
	if !found {
		return nil
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	scrapes, _, _ := unstructured.NestedSlice(config, "scrape_configs")
	for _, s := range scrapes {
		scrape := s.(map[string]any)
		discoveries, _ := scrape["kubernetes_sd_configs"].([]any)
		for _, d := range discoveries {
			if d := d.(map[string]any); d["role"] != "node" {
				d["namespaces"] = map[string]any{"names": toAny(namespaces)}
				continue
			}
			relabel, _ := scrape["metric_relabel_configs"].([]any)
			scrape["metric_relabel_configs"] = append(relabel, map[string]any{
				"source_labels": []any{"namespace"}, "regex": "|" + strings.Join(namespaces, "|"), "action": "keep",
			})
		}
	}
	config["scrape_configs"] = scrapes
	b, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(u.Object, string(b), "data", file)
}

// confineState has kube-state-metrics tell of the namespaces alone.
func confineState(u *unstructured.Unstructured, namespaces []string) error {
	if u.GetName() != stateMetrics {
		return nil
	}
	containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		return fmt.Errorf("it has %d containers: %w", len(containers), err)
	}
	c := containers[0].(map[string]any)
	args, _, _ := unstructured.NestedStringSlice(c, "args")
	c["args"] = toAny(append(args, "--namespaces="+strings.Join(namespaces, ",")))
	return unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
}

func toAny(list []string) (out []any) {
	for _, s := range list {
		out = append(out, s)
	}
	return out
}
