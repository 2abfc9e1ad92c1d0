package observe

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/aiopslab/aiopslab/cloud"
)

// wide are the resources that are in no namespace.
var wide = []string{"namespaces", "nodes", "nodes/metrics", "persistentvolumes"}

// confine changes what is deployed for a cluster that others use as well: it watches the tenancy's namespaces and the
// nodes, and has no rights elsewhere. What is in no namespace has a name of its own, and takes no port of the nodes.
func confine(objects []*unstructured.Unstructured, t *cloud.Tenancy) ([]*unstructured.Unstructured, error) {
	var list []*unstructured.Unstructured
	for _, u := range objects {
		u = u.DeepCopy()
		if u.GetNamespace() != "" {
			u.SetNamespace(t.Name(u.GetNamespace()))
		}
		var err error
		switch u.GetKind() {
		case "Namespace":
			u.SetName(t.Name(u.GetName()))
		case "ClusterRole":
			list = append(list, confineRole(u, t.Run))
		case "ClusterRoleBinding":
			list = append(list, confineBinding(u, t)...)
		case "ConfigMap":
			err = confineScrapes(u, t)
		case "Deployment":
			err = confineState(u, t.Namespaces)
		case "Service":
			err = leavePorts(u)
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
func confineBinding(u *unstructured.Unstructured, t *cloud.Tenancy) (list []*unstructured.Unstructured) {
	role, _, _ := unstructured.NestedString(u.Object, "roleRef", "name")
	subjects, _, _ := unstructured.NestedSlice(u.Object, "subjects")
	for _, s := range subjects {
		s := s.(map[string]any)
		s["namespace"] = t.Name(fmt.Sprint(s["namespace"]))
	}
	_ = unstructured.SetNestedSlice(u.Object, subjects, "subjects")
	for _, ns := range t.Namespaces {
		b := u.DeepCopy()
		b.SetKind("RoleBinding")
		b.SetNamespace(ns)
		_ = unstructured.SetNestedField(b.Object, insideRole(role, t.Run), "roleRef", "name")
		list = append(list, b)
	}
	u.SetName(u.GetName() + "-" + t.Run)
	_ = unstructured.SetNestedField(u.Object, role+"-"+t.Run, "roleRef", "name")
	return list
}

// confineScrapes has Prometheus look for pods in the namespaces alone, and keep of the nodes' metrics what is about
// these, or about no namespace.
func confineScrapes(u *unstructured.Unstructured, t *cloud.Tenancy) error {
	const file = "prometheus.yml"
	text, found, _ := unstructured.NestedString(u.Object, "data", file)
	if !found {
		return nil
	}
	text = strings.ReplaceAll(text, "."+Namespace+".svc", "."+t.Name(Namespace)+".svc")
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
				d["namespaces"] = map[string]any{"names": toAny(t.Namespaces)}
				continue
			}
			relabel, _ := scrape["metric_relabel_configs"].([]any)
			scrape["metric_relabel_configs"] = append(relabel, map[string]any{
				"source_labels": []any{"namespace"}, "regex": "|" + strings.Join(t.Namespaces, "|"), "action": "keep",
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

// leavePorts has no port of the nodes asked for by its number: another run may have it.
func leavePorts(u *unstructured.Unstructured) error {
	ports, _, err := unstructured.NestedSlice(u.Object, "spec", "ports")
	if err != nil {
		return err
	}
	for _, p := range ports {
		delete(p.(map[string]any), "nodePort")
	}
	return unstructured.SetNestedSlice(u.Object, ports, "spec", "ports")
}

func toAny(list []string) (out []any) {
	for _, s := range list {
		out = append(out, s)
	}
	return out
}
