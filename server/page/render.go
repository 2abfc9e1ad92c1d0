package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed html/*.html
var pages embed.FS

//go:embed static
var static embed.FS

// templates are the pages by name, each with what all of them share. They are read when the first is shown: most
// processes of this program show none.
var templates = sync.OnceValue(func() map[string]*template.Template {
	base := template.Must(template.New("").Funcs(words).ParseFS(pages, "html/base.html", "html/parts.html"))
	files, err := fs.Glob(pages, "html/*.html")
	if err != nil {
		panic(err)
	}
	byName := map[string]*template.Template{}
	for _, f := range files {
		name := strings.TrimSuffix(path.Base(f), ".html")
		if name != "base" && name != "parts" {
			byName[name] = template.Must(template.Must(base.Clone()).ParseFS(pages, f))
		}
	}
	return byName
})

// edition changes with styles and scripts, so that browsers can keep them for as long as they are the same.
var edition = sync.OnceValue(func() string {
	sum := sha256.New()
	err := fs.WalkDir(static, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := static.ReadFile(name)
		sum.Write(b)
		return err
	})
	if err != nil {
		panic(err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
})

// view is what a template is given.
type view struct {
	Title   string
	Place   string // the entry of the menu that it belongs to
	Live    string // where the events of a run under way are
	Poll    int    // after how many milliseconds it is asked for again; 0 if it does not change
	Menu    []place
	Script  string // one more than all pages have
	Edition string
	Data    any
}

// failure is an error that a page tells of.
type failure struct {
	status int
	text   string
}

func (f *failure) Error() string { return f.text }

func fail(status int, format string, args ...any) error {
	return &failure{status, fmt.Sprintf(format, args...)}
}

// handler answers with a page, or returns why there is none.
type handler func(http.ResponseWriter, *http.Request) error

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := h(w, r)
	if err == nil {
		return
	}
	status := statusOf(err)
	render(w, r, status, "wrong", view{Title: http.StatusText(status), Data: err.Error()})
}

// statusOf is what an error is answered with.
func statusOf(err error) int {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.status
	}
	if f, ok := errors.AsType[interface {
		error
		Status() int
	}](err); ok {
		return f.Status()
	}
	return http.StatusInternalServerError
}

// missing answers what nobody else does.
func missing(_ http.ResponseWriter, r *http.Request) error {
	return fail(http.StatusNotFound, "there is no page %s", r.URL.Path)
}

// render answers with a template.
func render(w http.ResponseWriter, r *http.Request, status int, name string, v view) {
	v.Edition = edition()
	v.Menu, _ = r.Context().Value(menuKey{}).([]place)
	var b bytes.Buffer
	if err := templates()[name].ExecuteTemplate(&b, "base", v); err != nil {
		http.Error(w, "the page cannot be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// Whatever a template forgot: nothing hidden is on a page.
	send(w, r, status, []byte(visible(b.String())))
}

// send answers with a text, compressed if the caller can take it.
func send(w http.ResponseWriter, r *http.Request, status int, text []byte) {
	w.Header().Add("Vary", "Accept-Encoding")
	if len(text) < 1400 || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.WriteHeader(status)
		_, _ = w.Write(text) // Nobody is there to be told.
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	z := gzip.NewWriter(w)
	_, _ = z.Write(text) // As above.
	_ = z.Close()
}

var types = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
}

// serveStatic answers with the style, the script or the icon. There is nothing in them that is not in the program.
func serveStatic(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	b, err := static.ReadFile("static/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	if r.URL.Query().Get("v") == edition() {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	send(w, r, http.StatusOK, b)
}
