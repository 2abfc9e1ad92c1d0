package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// apiServer is an API server in memory that knows no kinds: objects by the path that they are at. It gives UIDs and
// versions, and checks what a write or a removal depends on. No socket is between it and its clients, so that it can be
// used in a bubble of package synctest.
type apiServer struct {
	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	version int
	// lingering is how many more times an object is seen after it was deleted, by its path.
	lingering map[string]int
	// before is called before a request is answered. If it answers itself, it returns true.
	before func(w http.ResponseWriter, r *http.Request) bool
	writes []string // "DELETE /api/v1/namespaces/x"
}

func newServer(t *testing.T) (*apiServer, *Cloud) {
	t.Helper()
	s := &apiServer{objects: map[string]*unstructured.Unstructured{}, lingering: map[string]int{}}
	return s, s.connect(t)
}

// connect returns another client of it.
func (s *apiServer) connect(t *testing.T) *Cloud {
	t.Helper()
	c, err := connect(&rest.Config{
		Host: "http://cluster.test", Transport: s,
		ContentConfig: rest.ContentConfig{ContentType: "application/json"}, // It knows no other.
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// RoundTrip implements http.RoundTripper.
func (s *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.before != nil && s.before(w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method != http.MethodGet {
		s.writes = append(s.writes, r.Method+" "+r.URL.Path)
	}
	switch r.Method {
	case http.MethodGet:
		s.get(w, r)
	case http.MethodPost:
		s.create(w, r)
	case http.MethodPatch:
		s.patch(w, r)
	case http.MethodDelete:
		s.delete(w, r)
	}
}

func (s *apiServer) get(w http.ResponseWriter, r *http.Request) {
	if o := s.objects[r.URL.Path]; o != nil {
		reply(w, http.StatusOK, o)
		if n, ok := s.lingering[r.URL.Path]; ok && o.GetDeletionTimestamp() != nil {
			if s.lingering[r.URL.Path]--; n <= 1 {
				delete(s.objects, r.URL.Path)
				delete(s.lingering, r.URL.Path)
			}
		}
		return
	}
	if base := path.Base(r.URL.Path); !strings.HasSuffix(base, "s") || strings.Contains(base, ".") {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	items := []any{}
	for _, p := range slices.Sorted(maps.Keys(s.objects)) {
		if o := s.objects[p]; (collection(p) == r.URL.Path || path.Dir(p) == r.URL.Path) && selector.Matches(labels.Set(o.GetLabels())) {
			items = append(items, o.Object)
		}
	}
	list := map[string]any{"metadata": map[string]any{}, "items": items} // Who asks knows of which kind.
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		list["apiVersion"], list["kind"] = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	if strings.HasPrefix(r.URL.Path, "/apis/"+meshVersion.Group) { // A dynamic client knows no kinds, either.
		list["apiVersion"], list["kind"] = meshVersion.String(), "AnyList"
	}
	reply(w, http.StatusOK, list)
}

// collection is where an object is listed. Those in namespaces are listed all together.
func collection(object string) string {
	parts := strings.Split(path.Dir(object), "/")
	if i := slices.Index(parts, "namespaces"); i >= 0 && i+2 < len(parts) {
		parts = slices.Delete(parts, i, i+2)
	}
	return strings.Join(parts, "/")
}

func (s *apiServer) create(w http.ResponseWriter, r *http.Request) {
	o := &unstructured.Unstructured{}
	if err := json.NewDecoder(r.Body).Decode(&o.Object); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	at := r.URL.Path + "/" + o.GetName()
	if s.objects[at] != nil {
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
		return
	}
	s.put(at, o)
	reply(w, http.StatusCreated, o)
}

// put stores an object that is new, with the lock held.
func (s *apiServer) put(at string, o *unstructured.Unstructured) {
	s.version++
	o.SetUID(types.UID(fmt.Sprint("uid-", s.version)))
	o.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[at] = o
}

func (s *apiServer) patch(w http.ResponseWriter, r *http.Request) {
	o := s.objects[r.URL.Path]
	if o == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	var patch map[string]any
	if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	changed := o.DeepCopy()
	merge(changed.Object, patch)
	if changed.GetUID() != o.GetUID() {
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	}
	s.version++
	changed.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[r.URL.Path] = changed
	reply(w, http.StatusOK, changed)
}

// merge applies a merge patch.
func merge(to, patch map[string]any) {
	for k, v := range patch {
		into, ok := to[k].(map[string]any)
		from, is := v.(map[string]any)
		switch {
		case v == nil:
			delete(to, k)
		case ok && is:
			merge(into, from)
		default:
			to[k] = v
		}
	}
}

func (s *apiServer) delete(w http.ResponseWriter, r *http.Request) {
	o := s.objects[r.URL.Path]
	if o == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	var options metav1.DeleteOptions
	_ = json.NewDecoder(r.Body).Decode(&options)
	if p := options.Preconditions; p != nil && (p.UID != nil && *p.UID != o.GetUID() ||
		p.ResourceVersion != nil && *p.ResourceVersion != o.GetResourceVersion()) {
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict)
		return
	}
	if s.lingering[r.URL.Path] > 0 {
		s.version++
		o = o.DeepCopy()
		o.SetResourceVersion(strconv.Itoa(s.version))
		now := metav1.Now()
		o.SetDeletionTimestamp(&now)
		s.objects[r.URL.Path] = o
	} else {
		delete(s.objects, r.URL.Path)
	}
	reply(w, http.StatusOK, o)
}

func reply(w http.ResponseWriter, code int, o any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(o)
}

func refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason) {
	reply(w, int(code), metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code,
		Reason: reason, Message: fmt.Sprint("no: ", reason),
	})
}

// has reports whether there is an object.
func (s *apiServer) has(at string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[at] != nil
}

// paths are those of all objects.
func (s *apiServer) paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// add puts objects where they belong: a path of a collection, then YAML of an object.
func (s *apiServer) add(t *testing.T, in string, objects ...any) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		b, err := json.Marshal(o)
		u := &unstructured.Unstructured{}
		if err == nil {
			err = json.Unmarshal(b, &u.Object)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.put(in+"/"+u.GetName(), u)
	}
}
