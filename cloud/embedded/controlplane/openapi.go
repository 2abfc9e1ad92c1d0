package controlplane

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/emicklei/go-restful/v3"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	openapiaggregator "k8s.io/kube-aggregator/pkg/controllers/openapi/aggregator"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler3"
)

// lazyOpenAPI serves the OpenAPI documents of the built-in groups and builds each at its first
// request. Building all of them is half a second of CPU and tens of megabytes at every start, for
// documents that most runs never read. Those of CRDs and aggregated APIs stay with the stock code.
type lazyOpenAPI struct {
	v2 *common.Config
	v3 *common.OpenAPIV3Config

	ready      chan struct{} // closed once kube and aggregator are set
	kube       *genericapiserver.GenericAPIServer
	aggregator *genericapiserver.GenericAPIServer

	groups map[string]group // by path ("apis/apps/v1")

	v2Once    sync.Once
	v2Handler http.Handler
	v2Err     error
}

// group is the document of a built-in group.
type group struct {
	hash  string              // identifies it; built-in groups change with the version only
	build func() http.Handler // builds it, once
}

func newLazyOpenAPI(v2 *common.Config, v3 *common.OpenAPIV3Config) *lazyOpenAPI {
	return &lazyOpenAPI{v2: v2, v3: v3, ready: make(chan struct{}), groups: map[string]group{}}
}

// install tells which servers' routes are documented.
func (l *lazyOpenAPI) install(aggregator *genericapiserver.GenericAPIServer) {
	l.aggregator = aggregator
	l.kube = aggregator.NextDelegate().(*genericapiserver.GenericAPIServer)
	for _, ws := range l.kube.Handler.GoRestfulContainer.RegisteredWebServices() {
		path := strings.Trim(ws.RootPath(), "/")
		l.groups[path] = group{
			hash: fmt.Sprintf("%X", sha256.Sum256([]byte(Version+"/"+path))),
			build: sync.OnceValue(func() http.Handler {
				c, m := restful.NewContainer(), mux.NewPathRecorderMux("openapi-v3")
				c.Add(ws)
				routes.OpenAPI{V3Config: l.v3}.InstallV3(c, m)
				return m
			}),
		}
	}
	close(l.ready)
}

// wrap puts the documents before a handler.
func (l *lazyOpenAPI) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimSuffix(r.URL.Path, "/")
		if !strings.HasPrefix(path, "/openapi/") {
			next.ServeHTTP(w, r)
			return
		}
		<-l.ready
		name, isV3 := strings.CutPrefix(path, "/openapi/v3")
		name = strings.Trim(name, "/")
		switch g, builtin := l.groups[name]; {
		case path == "/openapi/v2":
			l.serveV2(w, r)
		case isV3 && name == "":
			l.serveIndex(w, r, next)
		case isV3 && builtin:
			g.serve(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// serveIndex adds the built-in groups to the index of the stock code.
func (l *lazyOpenAPI) serveIndex(w http.ResponseWriter, r *http.Request, next http.Handler) {
	recorder, plain := httptest.NewRecorder(), r.Clone(r.Context())
	plain.URL.Path = "/openapi/v3"
	plain.Header.Del("If-None-Match")
	plain.Header.Del("Accept-Encoding")
	next.ServeHTTP(recorder, plain)
	var index struct {
		Paths map[string]handler3.OpenAPIV3DiscoveryGroupVersion `json:"paths"`
	}
	if err := json.Unmarshal(recorder.Body.Bytes(), &index); err != nil || index.Paths == nil {
		index.Paths = map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}
	}
	for path, g := range l.groups {
		index.Paths[path] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: "/openapi/v3/" + path +
			"?hash=" + g.hash}
	}
	b, err := json.Marshal(index)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	etag := fmt.Sprintf(`"%X"`, sha256.Sum256(b))
	w.Header().Set("Etag", etag)
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(b)
}

// serve serves the document. Its hash is ours, not the one kube-openapi computes from the content
// and would redirect to.
func (g group) serve(w http.ResponseWriter, r *http.Request) {
	r = r.Clone(r.Context())
	q := r.URL.Query()
	if q.Get("hash") == g.hash {
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Vary", "Accept")
	}
	q.Del("hash")
	r.URL.RawQuery = q.Encode()
	r.URL.Path = strings.TrimSuffix(r.URL.Path, "/")
	g.build().ServeHTTP(w, r)
}

// serveV2 serves the one big document, with CRDs merged in.
func (l *lazyOpenAPI) serveV2(w http.ResponseWriter, r *http.Request) {
	l.v2Once.Do(func() {
		kube := mux.NewPathRecorderMux("openapi-v2-kube")
		routes.OpenAPI{Config: l.v2}.InstallV2(l.kube.Handler.GoRestfulContainer, kube)
		all := mux.NewPathRecorderMux("openapi-v2")
		downloader := openapiaggregator.NewDownloader()
		_, l.v2Err = openapiaggregator.BuildAndRegisterAggregator(&downloader, documented{l.kube, kube},
			l.aggregator.Handler.GoRestfulContainer.RegisteredWebServices(), l.v2, all)
		l.v2Handler = all
	})
	if l.v2Err != nil {
		http.Error(w, l.v2Err.Error(), http.StatusInternalServerError)
		return
	}
	l.v2Handler.ServeHTTP(w, r)
}

// documented is a server of the delegation chain whose document is served by another handler.
type documented struct {
	genericapiserver.DelegationTarget
	document http.Handler
}

func (d documented) UnprotectedHandler() http.Handler { return d.document }
