// Package page serves the web pages of images: the front ends' own, and those by which people look into
// Prometheus and Jaeger. A page is one HTML file over the API of its program, so it shows nothing that
// the API does not. All share a style and a few functions, common.css and common.js.
//
// What a page shows was written by others, maybe by an enemy. So pages make text nodes of it and never
// markup, and a browser is told to run and load nothing but what is in the file:
//
//	//go:embed page.html
//	var html string
//
//	mux.Handle("GET /{$}", page.New(html))
package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
)

var (
	//go:embed common.css
	commonCSS string
	//go:embed common.js
	commonJS string
)

// here is where a page has what is common to all.
const here = "<!-- common -->"

var inline = regexp.MustCompile(`(?s)<(script|style)>(.*?)</`)

// New returns a handler that serves a page. It panics if the page has no place for what is common to
// all, which is a mistake in the page.
func New(html string) http.Handler {
	if strings.Count(html, here) != 1 {
		panic("a page has one line " + here + " in its head")
	}
	body := []byte(strings.Replace(html, here, "<style>"+commonCSS+"</style>\n<script>"+commonJS+"</script>", 1))
	allowed := map[string]string{}
	for _, m := range inline.FindAllSubmatch(body, -1) {
		sum := sha256.Sum256(m[2])
		allowed[string(m[1])] += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	policy := "default-src 'none'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'" +
		"; script-src" + allowed["script"] + "; style-src" + allowed["style"]
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(body)
	})
}
