package undo

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// decode reads an object. Numbers stay as they are written.
func decode(raw []byte) map[string]any {
	if len(raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var o map[string]any
	if d.Decode(&o) != nil {
		return nil
	}
	return o
}

func metadata(o map[string]any) map[string]any {
	m, _ := o["metadata"].(map[string]any)
	return m
}

// meta is a text of an object's metadata.
func meta(o map[string]any, key string) string {
	s, _ := metadata(o)[key].(string)
	return s
}

func uid(o map[string]any) string          { return meta(o, "uid") }
func terminating(o map[string]any) bool    { return meta(o, "deletionTimestamp") != "" }
func finalizers(o map[string]any) []any    { l, _ := metadata(o)["finalizers"].([]any); return l }
func owners(o map[string]any) []any        { l, _ := metadata(o)["ownerReferences"].([]any); return l }
func spec(o map[string]any) map[string]any { s, _ := o["spec"].(map[string]any); return s }

// controller is the kind and name of what made an object and looks after it, or "".
func controller(o map[string]any) string {
	for _, v := range owners(o) {
		ref, _ := v.(map[string]any)
		if ref["controller"] == true {
			kind, _ := ref["kind"].(string)
			name, _ := ref["name"].(string)
			return kind + " " + name
		}
	}
	return ""
}

// serverFields are those of the metadata that the API server and its parts write.
var serverFields = []string{
	"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "deletionTimestamp",
	"deletionGracePeriodSeconds",
}

// bookkeeping are annotations that controllers keep for themselves.
var bookkeeping = []string{
	"deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history",
	"deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas",
	"deprecated.daemonset.template.generation", "control-plane.alpha.kubernetes.io/leader",
	"endpoints.kubernetes.io/last-change-trigger-time",
}

// plain is an object as somebody would write it: without what the API server adds, and without its status.
func plain(o map[string]any) map[string]any {
	if o == nil {
		return nil
	}
	out := maps.Clone(o)
	delete(out, "status")
	m := maps.Clone(metadata(o))
	for _, f := range serverFields {
		delete(m, f)
	}
	out["metadata"] = m
	return out
}

// judged is what is compared of an object: as plain, without the accounts of controllers.
func judged(o map[string]any) map[string]any {
	out := plain(o)
	if out == nil {
		return nil
	}
	if a, ok := metadata(out)["annotations"].(map[string]any); ok {
		a = maps.Clone(a)
		for _, key := range bookkeeping {
			delete(a, key)
		}
		metadata(out)["annotations"] = a
	}
	return out
}

// fresh is an object to be created anew, after what it was before. Uids tells of owners that were created anew, too.
func fresh(o map[string]any, kind string, uids map[string]string) map[string]any {
	out := plain(o)
	m := metadata(out)
	delete(m, "generateName")
	if refs := owners(o); len(refs) > 0 {
		m["ownerReferences"] = adopted(refs, uids)
	}
	if kind == "jobs" {
		out["spec"] = jobSpec(spec(o))
	}
	return out
}

// adopted are references to owners with the uids that those have now.
func adopted(refs []any, uids map[string]string) []any {
	out := make([]any, 0, len(refs))
	for _, v := range refs {
		ref, _ := v.(map[string]any)
		ref = maps.Clone(ref)
		if id, _ := ref["uid"].(string); uids[id] != "" {
			ref["uid"] = uids[id]
		}
		out = append(out, ref)
	}
	return out
}

// jobSpec is the spec of a Job without the selector and the labels that the API server generates from its uid.
func jobSpec(s map[string]any) map[string]any {
	if s["manualSelector"] == true {
		return s
	}
	out := maps.Clone(s)
	delete(out, "selector")
	template, _ := out["template"].(map[string]any)
	template = maps.Clone(template)
	m := maps.Clone(metadata(template))
	labels, _ := m["labels"].(map[string]any)
	labels = maps.Clone(labels)
	maps.DeleteFunc(labels, func(key string, _ any) bool { return strings.HasSuffix(key, "controller-uid") })
	if template != nil {
		m["labels"] = labels
		template["metadata"] = m
		out["template"] = template
	}
	return out
}

// protected are finalizers of Kubernetes' own: who has them goes when Kubernetes says so.
func protected(finalizer any) bool {
	s, _ := finalizer.(string)
	return strings.HasPrefix(s, "kubernetes.io/") ||
		slices.Contains([]string{"kubernetes", "foregroundDeletion", "orphan"}, s)
}

// ended reports whether a Job is over.
func ended(job map[string]any) bool {
	status, _ := job["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	return slices.ContainsFunc(list, func(v any) bool {
		c, _ := v.(map[string]any)
		return (c["type"] == "Complete" || c["type"] == "Failed") && c["status"] == "True"
	})
}
