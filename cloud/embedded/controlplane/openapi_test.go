package controlplane

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestLazyOpenAPI serves a group of our own before a handler that stands for the stock code.
func TestLazyOpenAPI(t *testing.T) {
	built := 0
	l := newLazyOpenAPI(nil, nil)
	l.groups["apis/apps/v1"] = group{hash: "H", build: func() http.Handler {
		built++
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "apps at "+r.URL.String()) })
	}}
	close(l.ready)
	h := l.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/openapi/v3" && r.Header.Get("If-None-Match") == "" {
			io.WriteString(w, `{"paths":{"apis/example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/example.com/v1?hash=X"}}}`)
			return
		}
		io.WriteString(w, "stock at "+r.URL.Path)
	}))
	get := func(path, etag string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		if etag != "" {
			r.Header.Set("If-None-Match", etag)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	index := get("/openapi/v3", "")
	for _, want := range []string{`"/openapi/v3/apis/apps/v1?hash=H"`, `"/openapi/v3/apis/example.com/v1?hash=X"`} {
		if !strings.Contains(index.Body.String(), want) {
			t.Errorf("the index lacks %s: %s", want, index.Body)
		}
	}
	if built != 0 {
		t.Error("the index builds documents")
	}
	if w := get("/openapi/v3/", index.Header().Get("Etag")); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("the index has not changed: %d %s", w.Code, w.Body)
	}
	for path, want := range map[string]string{
		"/openapi/v3/apis/apps/v1?hash=H":      "apps at /openapi/v3/apis/apps/v1",
		"/openapi/v3/apis/apps/v1/?hash=old":   "apps at /openapi/v3/apis/apps/v1",
		"/openapi/v3/apis/example.com/v1":      "stock at /openapi/v3/apis/example.com/v1",
		"/apis/apps/v1/namespaces/x/y/openapi": "stock at /apis/apps/v1/namespaces/x/y/openapi",
	} {
		if w := get(path, ""); w.Body.String() != want {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
	// Only the document of that very hash may be kept for good.
	for query, want := range map[string]string{"?hash=H": "public, immutable", "?hash=old": "", "": ""} {
		if got := get("/openapi/v3/apis/apps/v1"+query, "").Header().Get("Cache-Control"); got != want {
			t.Errorf("%q: Cache-Control %q", query, got)
		}
	}
	if built == 0 {
		t.Error("no document was built")
	}
}
