package guard

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// live is a cluster that is somebody's. It fails the test if anything but a read reaches it.
type live struct {
	*setup
	mu   sync.Mutex
	seen []string
}

func newLive(t *testing.T, namespaces ...string) *live {
	t.Helper()
	l := &live{setup: &setup{fake: newFake(t)}}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		l.seen = append(l.seen, r.Method+" "+r.URL.Path)
		l.mu.Unlock()
		if r.Method != http.MethodGet && r.Method != http.MethodHead || len(body) > 0 || r.Header.Get("Upgrade") != "" {
			t.Errorf("the cluster got %s %s with %q and %v", r.Method, r.URL, body, r.Header)
		}
		for name := range r.Header {
			if strings.Contains(name, "Override") || strings.HasPrefix(name, "Impersonate") || strings.HasPrefix(name, "X-") {
				t.Errorf("the cluster got the header %s: %v", name, r.Header[name])
			}
		}
		l.fake.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	l.add(t, "/api/v1/namespaces/shop", `{"kind":"Namespace","apiVersion":"v1"}`)
	l.add(t, "/api/v1/namespaces/shop/pods/web", `{"kind":"Pod","apiVersion":"v1"}`)
	l.add(t, "/api/v1/namespaces/shop/secrets/key", `{"kind":"Secret","apiVersion":"v1","data":{"a":"c2VjcmV0"}}`)
	l.add(t, "/api/v1/namespaces/other/pods/db", `{"kind":"Pod","apiVersion":"v1"}`)
	l.add(t, "/api/v1/nodes/n1", `{"kind":"Node","apiVersion":"v1"}`)
	l.startWith(t, Options{Upstream: &rest.Config{Host: front.URL, BearerToken: "lab"}, Shadow: true, Namespaces: namespaces})
	l.config.NextProtos = []string{"http/1.1"} // HTTP/2 has no upgrades.
	var err error
	if l.client, err = rest.HTTPClientFor(l.config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.client.CloseIdleConnections)
	return l
}

// Nothing is done to the cluster to begin with: no rights, no reviews, no requests at all.
func TestShadowBegins(t *testing.T) {
	l := newLive(t, "shop")
	if len(l.seen) != 0 {
		t.Errorf("the cluster got %v", l.seen)
	}
	if _, err := Start(context.Background(), Options{Upstream: &rest.Config{Host: l.URL}, Shadow: true}); err == nil {
		t.Error("a shadow run without namespaces could read everything")
	}
}

// Whatever an agent tries, the cluster sees reads alone, and each write is a proposal.
func TestShadowWrites(t *testing.T) {
	l := newLive(t, "shop")
	pod := "/api/v1/namespaces/shop/pods/web"
	before := len(l.seen)
	for i, tt := range []struct {
		method, path, body string
		headers            []string
		verb, what         string
	}{
		{method: "POST", path: "/api/v1/namespaces/shop/pods", body: `{"metadata":{"name":"new"}}`, verb: "create", what: "pods new in shop"},
		{method: "PUT", path: pod, body: `{}`, verb: "update", what: "pods web in shop"},
		{method: "PATCH", path: pod, body: `{"a":1}`, headers: []string{"Content-Type", "application/merge-patch+json"}, verb: "patch", what: "pods web in shop"},
		{method: "DELETE", path: pod, verb: "delete", what: "pods web in shop"},
		{method: "DELETE", path: "/api/v1/namespaces/shop/pods", verb: "deletecollection", what: "pods in shop"},
		{method: "PATCH", path: "/apis/apps/v1/namespaces/shop/deployments/web/scale", body: `{}`, verb: "patch", what: "deployments.apps/scale web in shop"},
		{method: "POST", path: pod + "/exec?command=rm&command=-rf", verb: "connect", what: "pods/exec web in shop"},
		{method: "GET", path: pod + "/exec?command=sh", headers: []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Key", "x", "Sec-WebSocket-Version", "13"}, verb: "connect", what: "pods/exec web in shop"},
		{method: "GET", path: pod + "/portforward?ports=80", headers: []string{"Connection", "Upgrade", "Upgrade", "SPDY/3.1"}, verb: "connect", what: "pods/portforward web in shop"},
		{method: "GET", path: pod + "/attach", verb: "connect", what: "pods/attach web in shop"},
		{method: "GET", path: pod + "/proxy/admin", verb: "connect", what: "pods/proxy web in shop"},
		{method: "GET", path: "/api/v1/namespaces/shop/services/web:80/proxy/", verb: "connect", what: "services/proxy web in shop"},
		{method: "GET", path: "/api/v1/nodes/n1/proxy/metrics", verb: "connect", what: "nodes/proxy n1"},
		{method: "GET", path: "/api/v1/namespaces/shop/pods/web%2fexec?command=x", verb: "connect", what: "pods/exec web in shop"},
		{method: "POST", path: pod + "/eviction", body: `{}`, verb: "create", what: "pods/eviction web in shop"},
		{method: "POST", path: pod + "/binding", body: `{}`, verb: "create", what: "pods/binding web in shop"},
		{method: "POST", path: "/api/v1/namespaces/shop/serviceaccounts/default/token", body: `{}`, verb: "create", what: "serviceaccounts/token default in shop"},
		{method: "POST", path: "/api/v1/watch/namespaces/shop/pods/web", body: `{}`, verb: "create", what: "pods web in shop"},
		{method: "POST", path: pod, headers: []string{"X-HTTP-Method-Override", "GET"}, verb: "create", what: "pods web in shop"},
	} {
		code, body := l.do(t, tt.method, tt.path, tt.body, tt.headers...)
		if code != http.StatusForbidden || !strings.Contains(body, "shadow run: nothing is written; "+tt.verb+" "+tt.what+" is recorded as a proposal") {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, code, body)
		}
		all := l.journal()
		if len(all) != i+1 {
			t.Fatalf("%s %s: %d proposals", tt.method, tt.path, len(all))
		}
		if e := all[i]; !e.Proposal || e.Verb != tt.verb || e.Status != http.StatusForbidden || tt.body != "" && string(e.Request) != tt.body {
			t.Errorf("%s %s: %+v", tt.method, tt.path, e)
		}
	}
	if e := l.journal()[6]; strings.Join(e.Command, " ") != "rm -rf" {
		t.Errorf("the command of an exec: %q", e.Command)
	}
	if len(l.seen) != before {
		t.Errorf("the cluster got %v", l.seen[before:])
	}
	if n := l.guard.Proposals(); n != int64(len(l.journal())) {
		t.Errorf("%d proposals, %d in the journal", n, len(l.journal()))
	}
}

// What is neither a read nor a proposal is refused, and does not reach the cluster either.
func TestShadowRefuses(t *testing.T) {
	l := newLive(t, "shop")
	for _, tt := range []struct{ method, path, body, want string }{
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", `{}`, "reviews are not sent"},
		{"POST", "/apis/authentication.k8s.io/v1/tokenreviews", `{}`, "reviews are not sent"},
		{"GET", "/api/v1/namespaces/shop/secrets", "", "secrets are not shown"},
		{"GET", "/api/v1/namespaces/shop/secrets/key", "", "secrets are not shown"},
		{"GET", "/api/v1/watch/namespaces/shop/secrets", "", "secrets are not shown"},
		{"GET", "/api/v1/secrets?watch=1", "", "secrets are not shown"},
		{"GET", "/api/v1/namespaces/other/pods", "", "namespace other is not shown: it may read the namespace shop"},
		{"GET", "/api/v1/pods", "", "pods of the whole cluster are not shown"},
		{"GET", "/api/v1/namespaces", "", "other namespaces are not shown"},
		{"GET", "/api/v1/namespaces/other", "", "other namespaces are not shown"},
		{"GET", "/api/v1/namespaces/other/status", "", "other namespaces are not shown"},
		{"GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", "", "clusterroles.rbac.authorization.k8s.io of the whole cluster are not shown"},
		{"GET", "/api/v1/proxy/namespaces/shop/pods/web/", "", "proxy/shop is not shown"},
		{"GET", "/apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachineinstances/a/console", "", "virtualmachineinstances/console is not shown"},
		{"GET", "/api/v1/namespaces/shop/../other/pods/db", "", ""},
		{"GET", "/api/v1/namespaces/shop%2f..%2fother/pods", "", ""},
		{"GET", "/api/v1//namespaces/other/pods", "", ""},
		{"POST", "/version", `{}`, "POST of /version is not sent"},
		{"GET", "/debug/pprof/heap", "", ""},
		{"GET", "/metrics", "", ""},
		{"PROPFIND", "/api/v1/namespaces/shop/pods/web", "", ""},
		{"OPTIONS", "/api/v1/namespaces/shop/pods/web", "", ""},
	} {
		code, body := l.do(t, tt.method, tt.path, tt.body)
		if code < 400 || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, code, body)
		}
	}
	// A dry run is no proposal that counts, and is not sent: webhooks would see it.
	for _, path := range []string{"/api/v1/namespaces/shop/pods?dryRun=All", "/api/v1/namespaces/shop/pods?dryRun=All&dryRun="} {
		if code, body := l.do(t, "POST", path, `{}`); code != http.StatusForbidden || !strings.Contains(body, "a dry run is not sent either") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if len(l.seen) != 0 {
		t.Errorf("the cluster got %v", l.seen)
	}
}

// Reads get what there is, with nothing of the agent's in them but what they ask for.
func TestShadowReads(t *testing.T) {
	l := newLive(t, "shop")
	for _, path := range []string{
		"/api/v1/namespaces/shop/pods/web", "/api/v1/namespaces/shop/pods", "/api/v1/namespaces/shop", "/api/v1/nodes",
		"/api/v1/nodes/n1", "/api/v1/namespaces/shop/pods/web?dryRun=All",
	} {
		body := l.get(t, path, "X-HTTP-Method-Override", "DELETE", "X-Method-Override", "DELETE", "Impersonate-User", "root",
			"X-Remote-User", "root", "Connection", "Upgrade", "Upgrade", "websocket")
		if strings.Contains(body, "managedFields") {
			t.Errorf("%s: %s", path, body)
		}
	}
	if code, _ := l.do(t, "GET", "/api/v1/namespaces/shop/pods/web", `{"a":"body"}`); code != http.StatusOK {
		t.Errorf("a read with a body: %d", code)
	}
	if len(l.journal()) != 0 || l.guard.Proposals() != 0 {
		t.Errorf("reads became proposals: %v", l.journal())
	}
}

// An agent that opens ever more watches does not wear the cluster out.
func TestShadowFlood(t *testing.T) {
	l := newLive(t, "shop")
	ctx, cancel := context.WithCancel(t.Context())
	var open sync.WaitGroup
	defer open.Wait()
	defer cancel()
	refused := 0
	for range shadowAtOnce + 20 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.config.Host+"/api/v1/namespaces/shop/pods?watch=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := l.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusTooManyRequests {
			refused++
			resp.Body.Close()
			continue
		}
		open.Go(func() { _, _ = io.Copy(io.Discard, resp.Body); resp.Body.Close() })
	}
	if refused != 20 {
		t.Errorf("%d of %d watches were refused, want 20", refused, shadowAtOnce+20)
	}
}

// The journal has an end: what is proposed over and over does not fill the disk.
func TestShadowJournalEnds(t *testing.T) {
	l := newLive(t, "shop")
	l.guard.shadow.proposals.Store(maxProposals - 1)
	l.guard.shadow.bytes.Store(maxProposed)
	for range 3 {
		l.do(t, "POST", "/api/v1/namespaces/shop/configmaps", `{"metadata":{"name":"a"}}`)
	}
	all := l.journal()
	if len(all) != 1 || all[0].Request != nil || all[0].Cut["request"] == 0 || all[0].Name != "a" {
		t.Errorf("%+v", all)
	}
	if n := l.guard.Proposals(); n != maxProposals+2 {
		t.Errorf("%d proposals", n)
	}
}

// Even a mistake of the guard could send nothing else: its transport does not.
func TestShadowTransport(t *testing.T) {
	sent := 0
	o := readOnly{next: roundTripper(func(*http.Request) (*http.Response, error) { sent++; return &http.Response{}, nil }), prefix: "/k8s"}
	for _, tt := range []struct {
		method, path string
		header       http.Header
		body         io.ReadCloser
		ok           bool
	}{
		{method: "GET", path: "/k8s/api/v1/namespaces/a/pods/p/log", ok: true},
		{method: "HEAD", path: "/k8s/api/v1/pods", ok: true},
		{method: "POST", path: "/k8s/api/v1/pods"},
		{method: "DELETE", path: "/k8s/api/v1/namespaces/a/pods/p"},
		{method: "GET", path: "/k8s/api/v1/namespaces/a/pods/p/exec"},
		{method: "GET", path: "/k8s/api/v1/nodes/n/proxy/run"},
		{method: "GET", path: "/k8s/api/v1/pods", header: http.Header{"Upgrade": {"websocket"}}},
		{method: "GET", path: "/k8s/api/v1/pods", body: io.NopCloser(strings.NewReader("x"))},
	} {
		sent = 0
		_, err := o.RoundTrip(&http.Request{Method: tt.method, URL: &url.URL{Path: tt.path}, Header: tt.header, Body: tt.body})
		if tt.ok != (sent == 1) || !tt.ok && !errors.Is(err, ErrShadow) {
			t.Errorf("%s %s: %v, sent %d times", tt.method, tt.path, err, sent)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
