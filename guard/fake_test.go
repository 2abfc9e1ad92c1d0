package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake plays the API server: it has objects, lists, tables and watches.
type fake struct {
	*httptest.Server
	mu       sync.Mutex
	objects  map[string]map[string]any // by path
	pages    map[string]string         // other documents, by path
	types    map[string]string         // their content types, where they are not JSON
	events   chan string               // what watches send
	requests []*http.Request           // of the agent, without bodies
	everyone map[string]*http.Request  // the last one by its credentials
	reviews  int                       // of the agent's rights
	asked    atomic.Int64              // how often it was asked who a pod is
	held     chan struct{}             // writes to things that are called slow wait for its end
	arrived  chan struct{}             // and say that they have come
	store    *versions                 // if it keeps what objects were, and has conflicts and writes that change nothing
	upgrades bool                      // commands in containers are run
}

func newFake(t *testing.T) *fake {
	f := &fake{everyone: map[string]*http.Request{}, objects: map[string]map[string]any{}, pages: map[string]string{}, types: map[string]string{}, events: make(chan string, 100)}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// add puts an object, given as JSON, where its path says. Everything has managed fields.
func (f *fake) add(t *testing.T, path, doc string) {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(doc), &o); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(path, o)
}

func (f *fake) put(path string, o map[string]any) {
	m, _ := o["metadata"].(map[string]any)
	if m == nil {
		m = map[string]any{}
		o["metadata"] = m
	}
	parts := strings.Split(path, "/")
	m["name"], m["uid"] = parts[len(parts)-1], "uid of "+path
	if i := slices.Index(parts, "namespaces"); i >= 0 && i < len(parts)-2 {
		m["namespace"] = parts[i+1]
	}
	m["managedFields"] = []any{map[string]any{"manager": "injector"}}
	if f.store != nil {
		f.store.put(path, o)
	}
	f.objects[path] = o
}

func (f *fake) has(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.objects[path] != nil
}

// last is the newest request of the agent.
func (f *fake) last() *http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[len(f.requests)-1]
}

// lastOf is the newest request with the given credentials.
func (f *fake) lastOf(authorization string) *http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.everyone[authorization]
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if f.upgrades && strings.HasSuffix(r.URL.Path, "/exec") {
		upgrade(w)
		return
	}
	if f.held != nil && r.Method != http.MethodGet && strings.HasSuffix(r.URL.Path, "/slow") {
		f.arrived <- struct{}{}
		<-f.held
	}
	if f.store != nil && f.store.hook != nil {
		f.store.hook(r)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.everyone[r.Header.Get("Authorization")] = r
	if r.Header.Get("Impersonate-User") != "" {
		f.requests = append(f.requests, r)
	}
	path := r.URL.Path
	t, resource := parseTarget(r.Method, r.URL)
	switch page, ok := f.pages[path]; {
	case r.Header.Get("Authorization") == "Bearer pod" && strings.HasSuffix(path, "/selfsubjectreviews"):
		f.asked.Add(1)
		f.answer(w, 201, map[string]any{"status": map[string]any{"userInfo": map[string]any{"username": "a-pod"}}})
	case r.Header.Get("Authorization") != "Bearer lab" && r.Header.Get("Authorization") != "Bearer pod":
		f.answer(w, 401, map[string]any{"kind": "Status", "apiVersion": "v1", "code": 401})
	case strings.HasSuffix(path, "/subjectaccessreviews"):
		f.reviews++ // The first finds the binding not known yet.
		f.answer(w, 201, map[string]any{"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": map[string]any{"allowed": f.reviews > 1}})
	case strings.HasSuffix(path, "/selfsubjectreviews"):
		f.answer(w, 201, map[string]any{"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1", "status": map[string]any{"userInfo": map[string]any{"username": "the-lab"}}})
	case ok:
		w.Header().Set("Content-Type", jsonType)
		if t := f.types[path]; t != "" {
			w.Header().Set("Content-Type", t)
		}
		_, _ = io.WriteString(w, page)
	case !resource:
		http.NotFound(w, r)
	default:
		f.serve(w, r, t, path, body)
	}
}

func (f *fake) answer(w http.ResponseWriter, code int, doc any) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(doc)
}

// serve handles a request about objects.
func (f *fake) serve(w http.ResponseWriter, r *http.Request, t target, path string, body []byte) {
	o := f.objects[path]
	in := map[string]any{}
	if doc, ok := asJSON(r.Header.Get("Content-Type"), body); ok {
		_ = json.Unmarshal(doc, &in)
	}
	if f.store != nil && f.store.serve(f, w, r, path, in) {
		return
	}
	switch {
	case t.Verb == "watch":
		f.watch(w, r)
	case t.Verb == "list", t.Verb == "deletecollection":
		items := f.list(path, t)
		f.answer(w, 200, shape(r, map[string]any{"kind": "ThingList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "7", "remainingItemCount": 3}, "items": items}))
		if t.Verb == "deletecollection" {
			maps.DeleteFunc(f.objects, func(p string, _ map[string]any) bool { return strings.HasPrefix(p, path+"/") })
		}
	case t.Verb == "create" && t.Name == "":
		m, _ := in["metadata"].(map[string]any)
		p := path + "/" + fmt.Sprint(m["name"])
		f.put(p, in)
		f.answer(w, 201, in)
	case t.Subresource != "" && t.Verb == "create":
		f.answer(w, 201, map[string]any{"kind": "Eviction", "apiVersion": "policy/v1", "metadata": map[string]any{"name": t.Name}})
	case o == nil:
		w.Header().Set("Content-Type", jsonType)
		w.WriteHeader(404)
		_, _ = w.Write(statusJSON(t.notFound()))
	case t.Verb == "get":
		f.answer(w, 200, shape(r, o))
	case t.Verb == "update", t.Verb == "patch":
		if t.Verb == "patch" {
			in = merged(o, in)
		}
		if r.URL.Query().Get("dryRun") != "All" {
			f.put(path, in)
		}
		f.answer(w, 200, in)
	case t.Verb == "delete":
		delete(f.objects, path)
		f.answer(w, 200, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	}
}

// merged is an object with a merge patch; neither is changed.
func merged(o, patch map[string]any) map[string]any {
	out := maps.Clone(o)
	for k, v := range patch {
		part, isMap := v.(map[string]any)
		old, wasMap := out[k].(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case isMap && wasMap:
			out[k] = merged(old, part)
		default:
			out[k] = v
		}
	}
	return out
}

// list returns the objects of a collection, in all namespaces if the path has none.
func (f *fake) list(path string, t target) []any {
	items := []any{}
	for _, p := range slices.Sorted(maps.Keys(f.objects)) {
		other, _ := parseTarget(http.MethodGet, mustURL(p))
		if other.Group == t.Group && other.Resource == t.Resource && (t.Namespace == "" || t.Namespace == other.Namespace) {
			items = append(items, f.objects[p])
		}
	}
	return items
}

// shape makes of an object or a list what the Accept header asks for.
func shape(r *http.Request, doc map[string]any) map[string]any {
	accept := r.Header.Get("Accept")
	items, isList := doc["items"].([]any)
	if !isList {
		items = []any{doc}
	}
	partial := func(o any) any {
		return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": o.(map[string]any)["metadata"]}
	}
	switch {
	case strings.Contains(accept, "protobuf"):
		return map[string]any{"kind": "Status", "message": "protobuf was asked for"}
	case strings.Contains(accept, "as=Table"):
		rows := []any{}
		for _, o := range items {
			row := map[string]any{"cells": []any{o.(map[string]any)["metadata"].(map[string]any)["name"]}}
			switch r.URL.Query().Get("includeObject") {
			case "Object":
				row["object"] = o
			case "None":
			default:
				row["object"] = partial(o)
			}
			rows = append(rows, row)
		}
		return map[string]any{"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{}, "columnDefinitions": []any{map[string]any{"name": "Name"}}, "rows": rows}
	case strings.Contains(accept, "as=PartialObjectMetadata") && isList:
		out := []any{}
		for _, o := range items {
			out = append(out, partial(o))
		}
		return map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": doc["metadata"], "items": out}
	case strings.Contains(accept, "as=PartialObjectMetadata"):
		return partial(doc).(map[string]any)
	}
	return doc
}

// watch sends events until the client goes.
func (f *fake) watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(200)
	w.(http.Flusher).Flush()
	f.mu.Unlock()
	defer f.mu.Lock()
	for {
		select {
		case e := <-f.events:
			_, _ = io.WriteString(w, e+"\n")
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// setup is a guard in front of a fake, and an agent's client.
type setup struct {
	*fake
	guard  *Guard
	config *rest.Config
	client *http.Client

	mu      sync.Mutex
	entries []Entry
}

func newSetup(t *testing.T, hide ...Rule) *setup {
	t.Helper()
	s := &setup{fake: newFake(t)}
	s.start(t, &rest.Config{Host: s.URL, BearerToken: "lab"}, hide...)
	return s
}

func (s *setup) start(t *testing.T, upstream *rest.Config, hide ...Rule) {
	t.Helper()
	s.startWith(t, Options{Upstream: upstream, Hide: hide})
}

// startWith starts a guard whose journal is the setup's.
func (s *setup) startWith(t *testing.T, o Options) {
	t.Helper()
	o.Journal = func(e Entry) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.entries = append(s.entries, e)
	}
	var err error
	s.guard, err = Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.guard.Close(); err != nil {
			t.Error(err)
		}
	})
	b, err := s.guard.Kubeconfig("shop")
	if err != nil {
		t.Fatal(err)
	}
	if s.config, err = clientcmd.RESTConfigFromKubeConfig(b); err != nil {
		t.Fatal(err)
	}
	if s.client, err = rest.HTTPClientFor(s.config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.CloseIdleConnections)
}

// do sends a request as the agent does. Headers are pairs.
func (s *setup) do(t *testing.T, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	code, answer, err := s.request(t.Context(), method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return code, answer
}

func (s *setup) request(ctx context.Context, method, path, body string, headers ...string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.config.Host+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if body != "" {
		req.Header.Set("Content-Type", jsonType)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// get reads a path and fails unless it can be read.
func (s *setup) get(t *testing.T, path string, headers ...string) string {
	t.Helper()
	code, body := s.do(t, http.MethodGet, path, "", headers...)
	if code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, code, body)
	}
	return body
}

// journal returns the entries so far.
func (s *setup) journal() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.entries)
}
