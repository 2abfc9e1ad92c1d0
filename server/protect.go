package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// protect lets only those in who may come in. Whoever can use the API can run programs in the
// sandbox of an agent.
func protect(o Options, next http.Handler) http.Handler {
	// A page in a browser of this machine is not to reach the server behind its user's back.
	guarded := http.NewCrossOriginProtection()
	guarded.SetDenyHandler(handler(func(http.ResponseWriter, *http.Request) error {
		return fail(http.StatusForbidden, "a page of another origin sent this request")
	}))
	inner := guarded.Handler(next)
	return handler(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch {
		case r.URL.Path == "/health":
		case o.Token != "":
			if !authorized(r, o.Token) {
				w.Header().Set("WWW-Authenticate", "Bearer")
				return fail(http.StatusUnauthorized, "this needs the server's token, as a header 'Authorization: Bearer TOKEN'")
			}
		case o.Loopback && !isLoopback(r.Host):
			// Any name can be made to lead here, by whoever owns it.
			return fail(http.StatusForbidden, "a request for %q is not meant for this server; use localhost, or start the server with a token", r.Host)
		}
		inner.ServeHTTP(w, r)
		return nil
	})
}

// authorized compares the token in a time that tells nothing of it.
func authorized(r *http.Request, token string) bool {
	scheme, got, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(a[:], b[:]) == 1
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
				reply(w, fail(http.StatusMethodNotAllowed, "%s cannot be done to %s, only %s", r.Method, r.URL.Path, strings.Join(allowed, ", ")))
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
