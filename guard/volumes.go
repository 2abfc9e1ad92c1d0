package guard

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
)

// boundBy is the annotation of who has bound a volume. What takes a volume from a claim may remove it.
const boundBy = "pv.kubernetes.io/bound-by-controller"

// ofRun has the agent change no more of the cluster's volumes than whose they are: nobody's, or a claim's in the
// agent's own namespaces. Which volumes it may write to, its rights say. The volumes are on storage of somebody else's,
// with fields that decide what becomes of that, and a volume that were given to a claim elsewhere would be in
// somebody's pods. It reports false if it has refused.
func (x *exchange) ofRun(w http.ResponseWriter, r *http.Request) bool {
	t := x.target
	if t.Group != "" || t.Resource != "persistentvolumes" || t.Subresource != "" ||
		!slices.Contains([]string{"update", "patch"}, t.Verb) || !slices.Contains(x.guard.opts.Volumes, t.Name) {
		return true // It has no right to any other.
	}
	is := x.guard.fetch(r.Context(), t, nil)
	would, ok := x.dryRun(w, r)
	if !ok {
		return false
	}
	if !onlyClaim(is, would, x.guard.opts.Namespaces) {
		x.refuse(w, forbidden(x.from.name(r.Context()), t.Verb,
			"anything but the claimRef of the persistent volume "+t.Name,
			"remove the claimRef, or name a claim of your namespaces there"))
		return false
	}
	return true
}

// onlyClaim reports whether nothing but the claim of a volume differs, and that is none, or in one of the namespaces.
func onlyClaim(before, after []byte, namespaces []string) bool {
	type volume struct {
		Metadata map[string]any `json:"metadata"`
		Spec     map[string]any `json:"spec"`
	}
	var a, b volume
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(after, &b) != nil || a.Spec == nil || b.Spec == nil {
		return false
	}
	switch claim := b.Spec["claimRef"].(type) {
	case nil:
	case map[string]any:
		if ns, _ := claim["namespace"].(string); !slices.Contains(namespaces, ns) {
			return false
		}
	default:
		return false
	}
	for _, v := range []volume{a, b} {
		delete(v.Spec, "claimRef")
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			delete(v.Metadata, field)
		}
		if list, ok := v.Metadata["annotations"].(map[string]any); ok {
			delete(list, boundBy)
			if len(list) == 0 {
				delete(v.Metadata, "annotations")
			}
		}
	}
	return reflect.DeepEqual(a, b)
}
