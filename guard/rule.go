package guard

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Rule names something that an agent cannot see. Every field that is set must match. A rule is one
// of these:
//
//   - Group alone: an API group, with its discovery, its documents, its resource definitions and
//     annotations in its name, or that begin with the first part of it and a hyphen.
//   - Namespace alone: a namespace, all in it, and what elsewhere serves only it.
//   - User alone: a user's certificate requests, and the bindings that are for nobody else.
//   - Source alone: events from a component.
//   - Image alone: container images in the list that a node has of them.
//   - any of Group, Resource, Namespace, Name and Labels: objects.
//
// Events that refer to what is hidden are hidden too.
type Rule struct {
	Group     string `json:"group,omitempty"`     // empty is any
	Resource  string `json:"resource,omitempty"`  // plural, as "pods"; empty is any
	Namespace string `json:"namespace,omitempty"` // empty is any
	Name      string `json:"name,omitempty"`      // may have wildcards, as path.Match; empty is any
	Labels    string `json:"labels,omitempty"`    // a label selector, as "app=loadgen,tier!=web"
	User      string `json:"user,omitempty"`
	Source    string `json:"source,omitempty"` // may have wildcards
	Image     string `json:"image,omitempty"`  // a part of the image's name
}

// Builtin returns the rules that every guard has: for Chaos Mesh, by which disturbances get into a
// cluster, and for the namespaces in which the lab can keep what it runs there.
func Builtin() []Rule {
	return []Rule{
		{Namespace: "aiopslab"},
		{Resource: "namespaces", Name: "aiopslab-*"},
		{Group: "chaos-mesh.org"},
		{Namespace: "chaos-mesh"},
		{Namespace: "chaos-testing"},
		{Group: "rbac.authorization.k8s.io", Name: "chaos-mesh-*"},
		{Group: "admissionregistration.k8s.io", Name: "chaos-mesh-*"},
		{Image: "chaos-mesh/"},
	}
}

// rule is one for objects, ready for use.
type rule struct {
	Rule
	selector labels.Selector // nil for any
}

// kind is which of the kinds of rules r is, by the only field that is set; "object" is the rest.
func (r Rule) kind() (string, error) {
	if r == (Rule{}) {
		return "", errors.New("a rule that says nothing would hide everything")
	}
	for _, k := range []struct {
		name, value string
		only        Rule
		alone       bool // whether it goes with nothing else
	}{
		{"group", r.Group, Rule{Group: r.Group}, false},
		{"namespace", r.Namespace, Rule{Namespace: r.Namespace}, false},
		{"user", r.User, Rule{User: r.User}, true},
		{"source", r.Source, Rule{Source: r.Source}, true},
		{"image", r.Image, Rule{Image: r.Image}, true},
	} {
		switch {
		case k.value == "":
		case r == k.only:
			return k.name, nil
		case k.alone:
			return "", fmt.Errorf("a rule for the %s %q can say nothing else: make it two rules", k.name, k.value)
		}
	}
	return "object", nil
}

func (r Rule) compile() (rule, error) {
	c := rule{Rule: r}
	if _, err := path.Match(r.Name, ""); err != nil {
		return c, fmt.Errorf("the name %q: %w", r.Name, err)
	}
	if r.Labels == "" {
		return c, nil
	}
	var err error
	c.selector, err = labels.Parse(r.Labels)
	return c, err
}

// covers reports whether objects of a resource can match.
func (r rule) covers(group, resource string) bool {
	return (r.Group == "" || r.Group == group) && (r.Resource == "" || r.Resource == resource)
}

func (r rule) matches(o object) bool {
	switch {
	case !r.covers(o.group, o.resource):
		return false
	case r.Namespace != "" && r.Namespace != o.namespace:
		return false
	case r.Name != "" && !glob(r.Name, o.name):
		return false
	}
	return r.selector == nil || o.raw != nil && r.selector.Matches(o.labels())
}

// glob matches a name. Names with slashes do not exist.
func glob(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// inDomain reports whether a name is a domain or below it.
func inDomain(name, domain string) bool {
	return name == domain || strings.HasSuffix(name, "."+domain)
}
