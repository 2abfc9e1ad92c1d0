package cloudtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// resources are the kinds of objects that there are, by group and version.
var resources = map[string][]metav1.APIResource{
	"v1": {
		{Name: "namespaces", Kind: "Namespace"},
		{Name: "nodes", Kind: "Node"},
		{Name: "configmaps", Kind: "ConfigMap", Namespaced: true},
		{Name: "pods", Kind: "Pod", Namespaced: true},
		{Name: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true},
		{Name: "secrets", Kind: "Secret", Namespaced: true},
		{Name: "services", Kind: "Service", Namespaced: true},
		{Name: "serviceaccounts", Kind: "ServiceAccount", Namespaced: true},
	},
	"apps/v1": {
		{Name: "daemonsets", Kind: "DaemonSet", Namespaced: true},
		{Name: "deployments", Kind: "Deployment", Namespaced: true},
		{Name: "statefulsets", Kind: "StatefulSet", Namespaced: true},
	},
	"autoscaling/v2": {{Name: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true}},
	"batch/v1": {
		{Name: "cronjobs", Kind: "CronJob", Namespaced: true}, {Name: "jobs", Kind: "Job", Namespaced: true},
	},
	"discovery.k8s.io/v1": {{Name: "endpointslices", Kind: "EndpointSlice", Namespaced: true}},
	"rbac.authorization.k8s.io/v1": {
		{Name: "clusterrolebindings", Kind: "ClusterRoleBinding"}, {Name: "clusterroles", Kind: "ClusterRole"},
	},
}

// place is what a path is about.
type place struct {
	version   string // group and version
	namespace string
	name      string // empty for a collection
	metav1.APIResource
}

// find reads a path.
func find(path string) (p place, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		p.version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		p.version, parts = parts[1]+"/"+parts[2], parts[3:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		p.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) > 1 {
		p.name = parts[1]
	}
	i := slices.IndexFunc(resources[p.version], func(r metav1.APIResource) bool { return r.Name == parts[0] })
	if i < 0 || len(parts) > 2 {
		return p, false
	}
	p.APIResource = resources[p.version][i]
	return p, true
}

// api answers a request to the API.
func (c *Cloud) api(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body) // Only then the server notices that a client goes.
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.mu.Lock()
	before := c.before
	c.mu.Unlock()
	if before != nil {
		if err := before(r); err != nil {
			fail(w, apierrors.NewServiceUnavailable(err.Error()))
			return
		}
	}
	if doc := discovery(r.URL.Path); doc != nil {
		reply(w, http.StatusOK, doc)
		return
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		reply(w, http.StatusCreated, map[string]any{
			"status": map[string]any{"userInfo": map[string]any{"username": "the-lab"}},
		})
		return
	case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		reply(w, http.StatusCreated, map[string]any{"status": map[string]any{"allowed": true}})
		return
	}
	p, ok := find(r.URL.Path)
	if !ok {
		fail(w, apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path))
		return
	}
	if r.URL.Query().Get("watch") == "true" {
		c.watch(w, r, p)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serve(w, r, p)
}

// serve answers a request about objects.
func (c *Cloud) serve(w http.ResponseWriter, r *http.Request, p place) {
	path, found := r.URL.Path, c.objects[r.URL.Path] != nil
	resource := schema.GroupResource{Resource: p.Name}
	switch {
	case r.Method == http.MethodGet && p.name == "":
		reply(w, http.StatusOK, map[string]any{
			"kind": p.Kind + "List", "apiVersion": p.version,
			"metadata": map[string]any{"resourceVersion": strconv.FormatInt(c.version, 10)}, "items": c.list(r, p),
		})
	case r.Method == http.MethodPatch && r.Header.Get("Content-Type") != string(types.ApplyPatchType):
		http.Error(w, "only an apply patch is understood", http.StatusUnsupportedMediaType)
	case r.Method == http.MethodPatch, r.Method == http.MethodPost, found && r.Method == http.MethodPut:
		u, err := read(r.Body)
		if err != nil {
			fail(w, apierrors.NewBadRequest(err.Error()))
			return
		}
		if r.Method == http.MethodPost {
			path += "/" + u.GetName()
			if c.objects[path] != nil {
				fail(w, apierrors.NewAlreadyExists(resource, u.GetName()))
				return
			}
		}
		if v := u.GetResourceVersion(); found && v != "" && v != c.objects[path].GetResourceVersion() {
			fail(w, apierrors.NewConflict(resource, p.name, errors.New("the object has been modified")))
			return
		}
		c.put(path, u)
		reply(w, http.StatusOK, c.view(path))
	case !found:
		fail(w, apierrors.NewNotFound(resource, p.name))
	case r.Method == http.MethodGet:
		reply(w, http.StatusOK, c.view(path))
	case r.Method == http.MethodDelete:
		delete(c.objects, path)
		c.change()
		reply(w, http.StatusOK, metav1.Status{Status: metav1.StatusSuccess})
	default:
		fail(w, apierrors.NewMethodNotSupported(resource, r.Method))
	}
}

func read(body io.Reader) (*unstructured.Unstructured, error) {
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	if b, err = yaml.YAMLToJSON(b); err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(b)
}

// put keeps an object as it is now.
func (c *Cloud) put(path string, u *unstructured.Unstructured) {
	p, _ := find(path)
	u.SetNamespace(p.namespace)
	u.SetGeneration(1)
	if old := c.objects[path]; old != nil {
		u.SetGeneration(old.GetGeneration() + 1)
	}
	c.change()
	u.SetResourceVersion(strconv.FormatInt(c.version, 10))
	now := metav1.NewTime(time.Now())
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "cloudtest", Time: &now}})
	c.objects[path] = u
}

// change wakes who watches.
func (c *Cloud) change() {
	c.version++
	close(c.changed)
	c.changed = make(chan struct{})
}

// list returns the objects of a collection that a request selects.
func (c *Cloud) list(r *http.Request, p place) []any {
	all := c.made(p.Name)
	for _, path := range slices.Sorted(maps.Keys(c.objects)) {
		if o, _ := find(path); o.version == p.version && o.Name == p.Name {
			all = append(all, c.view(path))
		}
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		selector = labels.Nothing()
	}
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	items := []any{}
	for _, u := range all {
		in := p.namespace == "" || p.namespace == u.GetNamespace()
		if in && (name == "" || name == u.GetName()) && selector.Matches(labels.Set(u.GetLabels())) {
			items = append(items, u.Object)
		}
	}
	return items
}

// watch sends the objects of a collection that change, until the client or the cloud goes.
func (c *Cloud) watch(w http.ResponseWriter, r *http.Request, p place) {
	w.Header().Set("Content-Type", "application/json")
	seen, _ := strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64)
	for {
		c.mu.Lock()
		changed, items, now := c.changed, c.list(r, p), c.version
		c.mu.Unlock()
		for _, o := range items {
			u := unstructured.Unstructured{Object: o.(map[string]any)}
			if v, _ := strconv.ParseInt(u.GetResourceVersion(), 10, 64); v > seen {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": o})
			}
		}
		seen = now
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-c.closed:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// discovery is the document about the API at a path, or nil.
func discovery(path string) any {
	switch path = strings.TrimPrefix(path, "/"); {
	case path == "api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case path == "apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, version := range slices.Sorted(maps.Keys(resources)) {
			if group, v, ok := strings.Cut(version, "/"); ok {
				d := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: v}
				list.Groups = append(list.Groups, metav1.APIGroup{
					Name: group, Versions: []metav1.GroupVersionForDiscovery{d}, PreferredVersion: d,
				})
			}
		}
		return list
	}
	version := strings.TrimPrefix(strings.TrimPrefix(path, "apis/"), "api/")
	if list := resources[version]; list != nil && version != path {
		return metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version,
			APIResources: list,
		}
	}
	return nil
}

func reply(w http.ResponseWriter, code int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(doc)
}

func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	reply(w, int(status.Code), status)
}
