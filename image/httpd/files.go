package httpd

import (
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
)

// types are those of the extensions people serve. Others have none, as with Apache.
var types = map[string]string{
	".html": "text/html", ".htm": "text/html", ".css": "text/css", ".js": "text/javascript",
	".json": "application/json", ".txt": "text/plain", ".xml": "application/xml", ".svg": "image/svg+xml",
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif",
	".ico": "image/vnd.microsoft.icon", ".webp": "image/webp", ".pdf": "application/pdf", ".wasm": "application/wasm",
	".zip": "application/zip", ".gz": "application/x-gzip", ".mp4": "video/mp4", ".woff2": "font/woff2",
}

// recorder remembers what the log tells of an answer.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (w *recorder) WriteHeader(code int) {
	if w.status == 0 {
		w.status = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

func (s *server) handle(rw http.ResponseWriter, r *http.Request) {
	w := &recorder{ResponseWriter: rw}
	w.Header().Set("Server", "Apache/"+Version+" (Unix)")
	defer func() { s.logAccess(r, w.status, w.bytes) }()
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		s.serve(w, r)
	case http.MethodOptions:
		w.Header().Set("Allow", "HEAD,GET,OPTIONS")
		w.WriteHeader(http.StatusOK)
	default:
		w.Header().Set("Allow", "HEAD,GET,OPTIONS")
		s.page(w, r, http.StatusMethodNotAllowed)
	}
}

// serve answers with a file, a directory's index.html, or a list of what a directory holds.
func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	uri := path.Clean("/" + r.URL.Path)
	name := docRoot + uri
	fi, err := s.env.FS.Stat(name)
	if err == nil && fi.IsDir() {
		if !strings.HasSuffix(r.URL.Path, "/") {
			w.Header().Set("Location", "http://"+r.Host+(&url.URL{Path: uri + "/"}).EscapedPath())
			s.page(w, r, http.StatusMovedPermanently)
			return
		}
		dir := name
		name = path.Join(name, "index.html")
		if fi, err = s.env.FS.Stat(name); errors.Is(err, fs.ErrNotExist) {
			s.list(w, r, uri, dir)
			return
		}
	}
	var f io.ReadSeekCloser
	if err == nil {
		f, err = s.env.FS.OpenFile(name, os.O_RDONLY, 0)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		s.log("core:error", "(%d)%s: [client %s] AH00132: file permissions deny server access: %s", errno(err),
			reason(err), r.RemoteAddr, name)
		s.page(w, r, http.StatusForbidden)
		return
	case err != nil:
		s.page(w, r, http.StatusNotFound)
		return
	}
	defer f.Close()
	h := w.Header()
	h.Set("ETag", fmt.Sprintf(`"%x-%x"`, fi.Size(), fi.ModTime().UnixMicro()))
	h["Content-Type"] = nil // Or it would be guessed.
	if kind, ok := types[strings.ToLower(path.Ext(name))]; ok {
		h.Set("Content-Type", kind)
	}
	http.ServeContent(w, r, "", fi.ModTime(), f)
}

func (s *server) list(w http.ResponseWriter, r *http.Request, uri, dir string) {
	entries, err := s.env.FS.ReadDir(dir)
	if err != nil {
		s.page(w, r, http.StatusForbidden)
		return
	}
	title := "Index of " + html.EscapeString(uri)
	var b strings.Builder
	fmt.Fprintf(&b, "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 3.2 Final//EN\">\n<html>\n <head>\n  "+
		"<title>%s</title>\n </head>\n <body>\n<h1>%s</h1>\n<ul>", title, title)
	if uri != "/" {
		fmt.Fprintf(&b, "<li><a href=\"%s\"> Parent Directory</a></li>\n", path.Dir(uri))
	}
	for _, e := range entries {
		shown := e.Name()
		if strings.HasPrefix(shown, ".") {
			continue
		}
		if e.IsDir() {
			shown += "/"
		}
		fmt.Fprintf(&b, "<li><a href=\"%s\"> %s</a></li>\n", (&url.URL{Path: shown}).EscapedPath(),
			html.EscapeString(shown))
	}
	b.WriteString("</ul>\n</body></html>\n")
	w.Header().Set("Content-Type", "text/html;charset=ISO-8859-1")
	s.reply(w, r, http.StatusOK, b.String())
}

// page answers with one of the server's own pages.
func (s *server) page(w http.ResponseWriter, r *http.Request, code int) {
	text := map[int]string{
		http.StatusMovedPermanently: fmt.Sprintf(`The document has moved <a href="%s">here</a>.`,
			html.EscapeString(w.Header().Get("Location"))),
		http.StatusForbidden: "You don't have permission to access this resource.",
		http.StatusNotFound:  "The requested URL was not found on this server.",
		http.StatusMethodNotAllowed: "The requested method " + html.EscapeString(r.Method) +
			" is not allowed for this URL.",
	}[code]
	name := http.StatusText(code)
	w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
	s.reply(w, r, code, fmt.Sprintf("<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\">\n<html><head>\n<title>%d "+
		"%s</title>\n</head><body>\n<h1>%s</h1>\n<p>%s</p>\n</body></html>\n",
		code, name, name, text))
}

func (s *server) reply(w http.ResponseWriter, r *http.Request, code int, body string) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	if r.Method != http.MethodHead {
		io.WriteString(w, body)
	}
}
