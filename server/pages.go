package server

import (
	"net/http"
	"strings"

	"github.com/aiopslab/aiopslab/server/page"
)

// pages are what people look at. They tell the truth about problems and runs, so the tokens of sessions, and having
// none where the API needs none, open nothing here: see [page.Site].
func (f *Front) pages() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, page.Prefix, http.StatusSeeOther)
			return
		}
		f.Pages.ServeHTTP(w, r)
	})
}

// isPage reports whether a request is for the pages: by its path or, for /, by a browser.
func (f *Front) isPage(r *http.Request) bool {
	if f.Pages == nil {
		return false
	}
	return strings.HasPrefix(r.URL.Path, page.Prefix) ||
		r.URL.Path == "/" && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// ProtectPages lets only those requests through to pages, of a server that has nothing else, that are meant for it:
// none of a page of another origin and, on loopback, none for another name that leads there.
func ProtectPages(pages http.Handler, loopback bool) http.Handler {
	guarded := http.NewCrossOriginProtection().Handler(pages)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if loopback && !isLoopback(r.Host) {
			http.Error(w, "this server is for this machine; use localhost", http.StatusForbidden)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}
