package guard

import (
	"bytes"
	"net/http"
	"net/url"
)

// deleteCollection deletes what the agent sees of a collection. If that is all of it, the API server
// does it. Otherwise the guard does as the API server would: it deletes one after the other.
func (x *exchange) deleteCollection(w http.ResponseWriter, r *http.Request) {
	query := url.Values{}
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		if v, ok := r.URL.Query()[name]; ok {
			query[name] = v
		}
	}
	t := x.target
	raw := x.guard.fetch(r.Context(), t, query)
	all, err := fields(raw)
	if err != nil {
		x.forward(w, r) // There is no such collection, or nobody answers. Either way it is said.
		return
	}
	items, err := elements(value(all, "items"))
	if err != nil {
		x.fail(w, err)
		return
	}
	doc, err := x.answer.list(all)
	if err != nil {
		x.fail(w, err)
		return
	}
	x.before = doc
	var visible []object
	for _, item := range items {
		all, err := fields(item)
		if err != nil {
			continue // The list above could not have been made of it.
		}
		o, err := x.answer.identify(item, all)
		if err == nil && !x.guard.veil.hides(o) {
			visible = append(visible, o)
		}
	}
	if _, ok := x.admit(w, r); !ok {
		return
	}
	if len(visible) == len(items) {
		x.forward(w, r)
		return
	}
	x.deleteEach(w, r, visible, doc)
}

// deleteEach deletes objects as the agent, with the options of r, and answers with doc.
func (x *exchange) deleteEach(w http.ResponseWriter, r *http.Request, objects []object, doc []byte) {
	body, err := readAnswer(&http.Response{Body: r.Body})
	if err != nil {
		x.fail(w, err)
		return
	}
	for _, o := range objects {
		t := x.target
		t.Namespace, t.Name = o.namespace, o.name
		u := *x.guard.upstream
		u.RawQuery = r.URL.RawQuery
		req, err := http.NewRequestWithContext(r.Context(), http.MethodDelete, u.JoinPath(t.path()).String(),
			bytes.NewReader(body))
		if err != nil {
			x.fail(w, err)
			return
		}
		for _, name := range []string{"Content-Type", "User-Agent"} {
			req.Header.Set(name, r.Header.Get(name))
		}
		req.Header.Set("Accept", jsonType)
		resp, err := x.from.do(req)
		if err != nil {
			x.fail(w, err)
			return
		}
		answer, err := readAnswer(resp)
		if err != nil {
			x.fail(w, err)
			return
		}
		if resp.StatusCode >= 300 && resp.StatusCode != http.StatusNotFound {
			x.finish(r.Context(), resp.StatusCode, answer, answer)
			writeJSON(w, resp.StatusCode, answer)
			return
		}
	}
	x.finish(r.Context(), http.StatusOK, doc, doc)
	writeJSON(w, http.StatusOK, doc)
}

func writeJSON(w http.ResponseWriter, status int, doc []byte) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_, _ = w.Write(doc) // There is nobody to tell.
}
