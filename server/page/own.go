package page

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// serve answers with a page of a program of the cluster.
func (t *through) serve(w http.ResponseWriter, r *http.Request) {
	i := slices.IndexFunc(t.list, func(o Own) bool { return o.Name == r.PathValue("to") })
	if i < 0 || !same(t.pass, r.PathValue("pass")) {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", throughPolicy)
	h.Set("Referrer-Policy", "no-referrer") // The address has the pass.
	// A page in a sandbox is a stranger to its own server, too.
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("Access-Control-Allow-Origin", "*")
	t.proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), targetKey{}, t.list[i])))
}

// ownPage has a page of a program of the cluster in a frame.
type ownPage struct {
	clusterPart
	Own
	Frame string
}

// ownLink is where a page of a program is shown, at a place of it.
func ownLink(name, at string) string {
	return clusterPath + "/own/" + name + "?" + url.Values{"at": {at}}.Encode()
}

// showOwn answers with a page that has one of a program of the cluster in it.
func (s *Site) showOwn(w http.ResponseWriter, r *http.Request) error {
	part, err := s.part("/own/" + r.PathValue("to"))
	if err != nil {
		return err
	}
	o, ok := s.Cluster.own(r.PathValue("to"))
	if !ok {
		return missing(w, r)
	}
	p := &ownPage{clusterPart: part, Own: o, Frame: s.through.base(o.Name)}
	if at := r.URL.Query().Get("at"); at != "" {
		p.Frame += "#" + strings.TrimLeft(at, "#")
	}
	w.Header().Set("Content-Security-Policy", contentPolicy+"; frame-src 'self'")
	render(w, r, http.StatusOK, "own", view{Title: o.Title, Place: "cluster", Data: p})
	return nil
}
