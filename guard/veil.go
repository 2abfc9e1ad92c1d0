package guard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// object is something in the API that may be hidden.
type object struct {
	group, resource, namespace, name string
	version                          string // of the API, where it is looked up
	raw                              []byte // its JSON, in full or metadata alone; nil if unknown
}

// labels are empty if they are unknown.
func (o object) labels() labels.Set {
	var m struct {
		Metadata struct{ Labels map[string]string }
	}
	_ = json.Unmarshal(o.raw, &m) // What is no object has no labels.
	return m.Metadata.Labels
}

// veil decides what is hidden. It is safe for concurrent use.
type veil struct {
	groups, namespaces, users, sources, images []string
	rules                                      []rule
	// events remembers what is known of the objects that events refer to.
	events *referred
}

// newVeil makes a veil of rules. look reads an object with the lab's rights; it returns nil if there
// is none.
func newVeil(rules []Rule, look func(object) []byte) (*veil, error) {
	v := &veil{events: newReferred(look)}
	for _, r := range rules {
		kind, err := r.kind()
		if err != nil {
			return nil, err
		}
		switch kind {
		case "group":
			v.groups = append(v.groups, r.Group)
		case "namespace":
			v.namespaces = append(v.namespaces, r.Namespace)
		case "user":
			v.users = append(v.users, r.User)
		case "source":
			v.sources = append(v.sources, r.Source)
		case "image":
			v.images = append(v.images, r.Image)
		default:
			c, err := r.compile()
			if err != nil {
				return nil, fmt.Errorf("rule %+v: %w", r, err)
			}
			v.rules = append(v.rules, c)
		}
	}
	return v, nil
}

func (v *veil) hidesGroup(group string) bool { return slices.Contains(v.groups, group) }

func (v *veil) hidesNamespace(ns string) bool {
	return v.hides(object{resource: "namespaces", name: ns})
}

// needsObject reports whether names do not suffice to decide about objects of a resource.
func (v *veil) needsObject(group, resource string) bool {
	return v.needsSpec(group, resource) ||
		slices.ContainsFunc(v.rules, func(r rule) bool { return r.selector != nil && r.covers(group, resource) })
}

// needsSpec reports whether metadata does not suffice to decide about objects of a resource.
func (v *veil) needsSpec(group, resource string) bool {
	return references[groupResource{group, resource}] != nil
}

// hides reports whether an object is hidden, as far as what is given of it tells.
func (v *veil) hides(o object) bool {
	namespace := o.namespace
	if o.group == "" && o.resource == "namespaces" {
		namespace = o.name
	}
	switch {
	case v.hidesGroup(o.group):
		return true
	case namespace != "" && slices.Contains(v.namespaces, namespace):
		return true
	case o.namespace != "" && v.matches(object{resource: "namespaces", name: o.namespace}):
		return true
	case v.matches(o):
		return true
	case v.describesGroup(o):
		return true
	}
	refers := references[groupResource{o.group, o.resource}]
	return refers != nil && o.raw != nil && refers(v, o.raw)
}

func (v *veil) matches(o object) bool {
	for _, r := range v.rules {
		if r.matches(o) {
			if r.selector != nil {
				v.events.remember(o.raw)
			}
			return true
		}
	}
	return false
}

// describesGroup reports whether an object exists to serve a hidden group. Its name ends in the
// group's then.
func (v *veil) describesGroup(o object) bool {
	switch (groupResource{o.group, o.resource}) {
	case groupResource{"apiextensions.k8s.io", "customresourcedefinitions"},
		groupResource{"apiregistration.k8s.io", "apiservices"}:
		return slices.ContainsFunc(v.groups, func(g string) bool { return strings.HasSuffix(o.name, "."+g) })
	}
	return false
}
