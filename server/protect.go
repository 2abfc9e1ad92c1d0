package server

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// protect lets only those in who may come in, and tells the log of who may not. Whoever can use the
// API can run programs in the sandbox of an agent.
func (f *Front) protect(next http.Handler) http.Handler {
	// A page in a browser of this machine is not to reach the server behind its user's back.
	guarded := http.NewCrossOriginProtection()
	guarded.SetDenyHandler(handler(func(http.ResponseWriter, *http.Request) error {
		return fail(http.StatusForbidden, "a page of another origin sent this request")
	}))
	safe, pages := guarded.Handler(next), guarded.Handler(f.pages())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o := &observed{ResponseWriter: w, begun: time.Now()}
		r = f.log.named(w, r)
		who := &caller{}
		handler(func(w http.ResponseWriter, r *http.Request) error {
			w.Header().Set("X-Content-Type-Options", "nosniff")
			// A body that comes by drops is cut, wanted or not.
			// Not every connection has deadlines.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(f.bodyTimeout))
			if f.Loopback && f.Token == "" && !isLoopback(r.Host) {
				// Any name can be made to lead here, by whoever owns it.
				return fail(http.StatusForbidden,
					"a request for %q is not meant for this server; use localhost, or start the server with a token",
					r.Host)
			}
			if f.isPage(r) {
				pages.ServeHTTP(w, r)
				return nil
			}
			inner := safe
			if origin := r.Header.Get("Origin"); f.welcomes(origin) {
				if allow(w, r, origin) {
					return nil
				}
				inner = next
			}
			if r.URL.Path == "/health" {
				inner.ServeHTTP(w, r)
				return nil
			}
			c, err := f.identify(r)
			if err != nil {
				w.Header().Set("WWW-Authenticate", "Bearer")
				return err
			}
			who = c
			leave, err := c.admit()
			if err != nil {
				return err
			}
			defer leave()
			if err := readBody(w, r); err != nil {
				return err
			}
			inner.ServeHTTP(w, c.as(r))
			return nil
		}).ServeHTTP(o, r)
		f.log.answered(r, who, o)
	})
}

// readBody reads the whole body of a request before anybody waits for anything else. The handler
// takes its time; the caller may not.
func readBody(w http.ResponseWriter, r *http.Request) error {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return bodyError(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	r.ContentLength = int64(len(b))
	r.TransferEncoding = nil
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // Not every connection has deadlines.
	return nil
}

// welcomes reports whether pages of an origin may use the server, as AIOpsLab's service lets them: only
// if it is on this machine. Those of other machines need its token, since it must show it itself.
func (f *Front) welcomes(origin string) bool {
	if origin == "" || !f.Loopback {
		return false
	}
	u, err := url.Parse(origin)
	return f.Token != "" || err == nil && (u.Scheme == "http" || u.Scheme == "https") && isLoopback(u.Host)
}

// allow tells a browser that the page of an origin may read the answer, and reports whether that was
// all it wanted to know.
func allow(w http.ResponseWriter, r *http.Request, origin string) (asked bool) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", requestID)
	h.Add("Vary", "Origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, "+requestID)
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// isLoopback reports whether a host, with or without a port, is this machine's name for itself.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

// plainErrors turns the mux's own errors, which are text, into ours.
func plainErrors(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern == "/" || pattern == "" {
			if allowed := methods(mux, r); len(allowed) > 0 {
				w.Header().Set("Allow", strings.Join(allowed, ", "))
				reply(w, fail(http.StatusMethodNotAllowed, "%s cannot be done to %s, only %s", r.Method, r.URL.Path,
					strings.Join(allowed, ", ")))
				return
			}
			h.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// methods are those that a path has.
func methods(mux *http.ServeMux, r *http.Request) []string {
	var list []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = m
		if _, pattern := mux.Handler(other); pattern != "/" && pattern != "" {
			list = append(list, m)
		}
	}
	return list
}
