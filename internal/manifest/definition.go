package manifest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file is about kinds that manifests define themselves.

// established waits, after the stage in which they are applied, until definitions are served: only then can there be
// objects of them.
func (c *Client) established(ctx context.Context, stage int, objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		if u.GetKind() != definitionKind || order(u) != stage {
			continue
		}
		r, u, err := c.resource("", u)
		if err == nil {
			served := func(u *unstructured.Unstructured) bool { return is(u, "Established") }
			err = watchUntil(ctx, r, u.GetName(), served)
		}
		if err == nil {
			err = c.discovered(ctx, u)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

// discoverEvery is how often a cluster is asked whether it tells of a new kind.
const discoverEvery = 50 * time.Millisecond

// discovered waits until the cluster tells of the kind that a definition defines: that is a little later.
func (c *Client) discovered(ctx context.Context, definition *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	for {
		_, err := c.mapper.RESTMapping(schema.GroupKind{Group: group, Kind: kind})
		if err == nil || !meta.IsNoMatchError(err) {
			return err
		}
		c.mapper.Reset()
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-time.After(discoverEvery):
		}
	}
}

// definitionKind is the kind of what defines other kinds.
const definitionKind = "CustomResourceDefinition"

// defined reports whether an object is of a kind that one of the others defines.
func defined(u *unstructured.Unstructured, objects []*unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, func(d *unstructured.Unstructured) bool {
		kind, _, _ := unstructured.NestedString(d.Object, "spec", "names", "kind")
		group, _, _ := unstructured.NestedString(d.Object, "spec", "group")
		return d.GetKind() == definitionKind && kind == u.GetKind() && group == u.GroupVersionKind().Group
	})
}

// is reports whether an object has a condition.
func is(u *unstructured.Unstructured, condition string) bool {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return slices.ContainsFunc(list, func(v any) bool {
		m, _ := v.(map[string]any)
		return m["type"] == condition && m["status"] == "True"
	})
}

// Defined are the objects of kinds that others of them define.
func Defined(objects []*unstructured.Unstructured) (list []*unstructured.Unstructured) {
	for _, u := range objects {
		if defined(u, objects) {
			list = append(list, u)
		}
	}
	return list
}

// Resources are what definitions among the objects define in namespaces.
func Resources(objects []*unstructured.Unstructured) (list []schema.GroupResource) {
	for _, u := range objects {
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
		scope, _, _ := unstructured.NestedString(u.Object, "spec", "scope")
		if u.GetKind() == definitionKind && plural != "" && scope != "Cluster" {
			list = append(list, schema.GroupResource{Group: group, Resource: plural})
		}
	}
	return list
}
