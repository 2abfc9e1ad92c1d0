package guard

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

func TestTarget(t *testing.T) {
	for _, tt := range []struct {
		method, url string
		want        target
		path        string
	}{
		{"GET", "/api/v1/pods", target{Verb: "list", Version: "v1", Resource: "pods"}, "/api/v1/pods"},
		{"GET", "/api/v1/pods?watch", target{Verb: "watch", Version: "v1", Resource: "pods"}, "/api/v1/pods"},
		{"GET", "/api/v1/pods?watch=FALSE", target{Verb: "list", Version: "v1", Resource: "pods"}, "/api/v1/pods"},
		{"GET", "/api/v1/watch/namespaces/a/pods/b", target{Verb: "watch", Version: "v1", Resource: "pods", Namespace: "a", Name: "b"}, "/api/v1/namespaces/a/pods/b"},
		{"DELETE", "/api/v1/namespaces/a/pods", target{Verb: "deletecollection", Version: "v1", Resource: "pods", Namespace: "a"}, "/api/v1/namespaces/a/pods"},
		{"PUT", "/api/v1/namespaces/a/finalize", target{Verb: "update", Version: "v1", Resource: "namespaces", Name: "a", Subresource: "finalize", Rest: []string{}}, "/api/v1/namespaces/a"},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/b/scale/", target{Verb: "patch", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "a", Name: "b", Subresource: "scale", Rest: []string{}}, "/apis/apps/v1/namespaces/a/deployments/b"},
		{"GET", "/api/v1/namespaces/a/services/https:b:8443/proxy/x/../y", target{Verb: "connect", Version: "v1", Resource: "services", Namespace: "a", Name: "https:b:8443", Subresource: "proxy", Rest: []string{"x", "..", "y"}}, "/api/v1/namespaces/a/services/b"},
	} {
		got, ok := parseTarget(tt.method, mustURL(tt.url))
		if diff := cmp.Diff(tt.want, got); !ok || diff != "" {
			t.Errorf("%s %s: %v (-want +got)\n%s", tt.method, tt.url, ok, diff)
		}
		if got.path() != tt.path || got.ambiguous(mustURL(tt.url)) {
			t.Errorf("%s %s: path %s, ambiguous %v", tt.method, tt.url, got.path(), got.ambiguous(mustURL(tt.url)))
		}
	}
	for _, u := range []string{"/api/v1//pods", "/api/v1/namespaces//pods", "/api/v1/namespaces/./pods", "/api/v1/namespaces/a/pods//log", "/api/v1/pods/%252e"} {
		if got, ok := parseTarget("GET", mustURL(u)); ok && !got.ambiguous(mustURL(u)) {
			t.Errorf("%s is taken for %+v", u, got)
		}
	}
	for _, u := range []string{"/", "/api", "/api/v1", "/apis/apps", "/apis/apps/v1", "/metrics", "/openapi/v2"} {
		if got, ok := parseTarget("GET", mustURL(u)); ok {
			t.Errorf("%s is taken for %+v", u, got)
		}
	}
}

// FuzzTarget compares the parser with the API server's. What we call ambiguous is refused, so there
// they may differ.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{
		"/api/v1/pods", "/apis/apps/v1/namespaces/a/deployments/b/scale", "/api/v1/namespaces/a", "/api/v1/namespaces/a/status",
		"/api/v1/watch/pods", "/api/v1/proxy/nodes/a/x", "/api/v1/namespaces/a/pods/b/exec", "/api/v1/watch", "//api/v1/pods", "/apis/a/b/watch/namespaces/c/d",
	} {
		for _, q := range []string{"", "watch=1", "watch=false&watch=true", "fieldSelector=metadata.name=x"} {
			f.Add("GET", s, q)
		}
		f.Add("DELETE", s, "")
		f.Add("POST", s, "watch=1")
	}
	theirs := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	f.Fuzz(func(t *testing.T, method, path, query string) {
		u := &url.URL{Path: path, RawQuery: query}
		got, ok := parseTarget(method, u)
		want, err := theirs.NewRequestInfo(&http.Request{Method: method, URL: u})
		if ok && got.ambiguous(u) || err != nil {
			return
		}
		if ok != want.IsResourceRequest {
			t.Fatalf("%s %s: a resource: %v, want %v", method, path, ok, want.IsResourceRequest)
		}
		if !ok {
			return
		}
		if want.Verb == "proxy" {
			return // No API server has had this for years: it is not found.
		}
		ns := want.Namespace
		if want.Resource == "namespaces" {
			ns = ""
		}
		name := want.Name
		if got.Name == "" {
			name = "" // Theirs may be from a field selector.
		}
		a := []string{want.APIGroup, want.APIVersion, want.Resource, ns, name, want.Subresource}
		b := []string{got.Group, got.Version, got.Resource, got.Namespace, got.Name, got.Subresource}
		if !slices.Equal(a, b) {
			t.Errorf("%s %s: %q, want %q", method, path, b, a)
		}
		if got.Verb != want.Verb && got.Verb != "connect" && want.Name == got.Name {
			t.Errorf("%s %s?%s: %s, want %s", method, path, query, got.Verb, want.Verb)
		}
	})
}
