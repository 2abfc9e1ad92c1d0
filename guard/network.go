package guard

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"strings"
)

// Network returns a handler for requests to the API server that come over the cluster's network, from whatever
// runs there or can dial into it. They come with credentials of their own, which the API server judges; in all
// else they are treated like the agent's.
func (g *Guard) Network() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := g.somebody(r)
		if g.authenticates(r) {
			from = g.agent()
		}
		// Whoever is connected longer than the guard is there gets the end of it.
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(g.ctx, cancel)()
		g.serve(w, r.WithContext(ctx), from)
	})
}

// Kubelet returns a handler that stands before a kubelet's own API, for requests that come over the cluster's
// network. They can read what they could read through the API server, and nothing else: the journal would miss a
// command that is run through the kubelet.
func (g *Guard) Kubelet(kubelet http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, open := g.veil.nodePath(strings.Trim(r.URL.Path, "/"), r.URL.Query())
		if !open || r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Upgrade") != "" {
			http.Error(w, "Forbidden: "+kubeletAdvice, http.StatusForbidden)
			return
		}
		if f == nil {
			kubelet.ServeHTTP(w, r)
			return
		}
		r = r.Clone(r.Context())
		r.Header.Del("Accept-Encoding")
		doc := &buffered{header: http.Header{}, status: http.StatusOK}
		kubelet.ServeHTTP(doc, r)
		out := doc.body.Bytes()
		if doc.status == http.StatusOK {
			var err error
			if out, err = f(doc.header.Get("Content-Type"), out); err != nil {
				http.Error(w, "the kubelet's answer cannot be read", http.StatusInternalServerError)
				return
			}
			doc.header.Del("Content-Length")
		}
		maps.Copy(w.Header(), doc.header)
		w.WriteHeader(doc.status)
		_, _ = w.Write(out) // There is nobody to tell.
	})
}

// buffered keeps an answer.
type buffered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *buffered) Header() http.Header         { return b.header }
func (b *buffered) WriteHeader(status int)      { b.status = status }
func (b *buffered) Write(p []byte) (int, error) { return b.body.Write(p) }
