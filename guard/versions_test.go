package guard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// versions is what a fake's objects were, as a store keeps it.
type versions struct {
	revision atomic.Int64
	past     map[string]map[int64]string // objects as JSON, by path and revision
	hook     func(*http.Request)         // is called for each request before it is answered
	broken   atomic.Bool                 // whether the past cannot be read
}

func newVersions() *versions { return &versions{past: map[string]map[int64]string{}} }

func (v *versions) put(path string, o map[string]any) {
	n := v.revision.Add(1)
	o["metadata"].(map[string]any)["resourceVersion"] = strconv.FormatInt(n, 10)
	doc, _ := json.Marshal(o)
	if v.past[path] == nil {
		v.past[path] = map[int64]string{}
	}
	v.past[path][n] = string(doc)
}

// at is an object as it was at a revision, or "".
func (v *versions) at(path string, revision int64) string {
	for n := revision; n > 0; n-- {
		if doc := v.past[path][n]; doc != "" {
			return doc
		}
	}
	return ""
}

// serve answers a request that only a store with versions can. It reports false for others.
func (v *versions) serve(f *fake, w http.ResponseWriter, r *http.Request, path string, in map[string]any) bool {
	query := r.URL.Query()
	now := f.objects[path]
	switch {
	case query.Get("resourceVersionMatch") == "Exact" && v.broken.Load():
		f.answer(w, 410, map[string]any{"kind": "Status", "apiVersion": "v1", "code": 410})
	case query.Get("resourceVersionMatch") == "Exact":
		n, _ := strconv.ParseInt(query.Get("resourceVersion"), 10, 64)
		items := []json.RawMessage{}
		if doc := v.at(path+"/"+strings.TrimPrefix(query.Get("fieldSelector"), "metadata.name="), n); doc != "" {
			items = append(items, json.RawMessage(doc))
		}
		f.answer(w, 200, map[string]any{"kind": "ConfigMapList", "apiVersion": "v1", "items": items})
	case r.Method != http.MethodPut && r.Method != http.MethodPatch || now == nil:
		return false
	case conflicts(in, now):
		f.answer(w, 409, map[string]any{"kind": "Status", "apiVersion": "v1", "code": 409, "message": "it was changed"})
	case fmt.Sprint(in["data"]) == fmt.Sprint(now["data"]):
		f.answer(w, 200, now)
	default:
		return false
	}
	return true
}

// conflicts reports whether a body names another version than that of the object.
func conflicts(in, now map[string]any) bool {
	m, _ := in["metadata"].(map[string]any)
	return m["resourceVersion"] != nil && m["resourceVersion"] != now["metadata"].(map[string]any)["resourceVersion"]
}
