package nginx

import (
	"errors"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// defaultRoot is where files are looked for if no configuration says so.
const defaultRoot = "/etc/nginx/html"

func (x *exchange) documentRoot() string {
	s := x.scope()
	switch {
	case s.alias != nil:
		return s.alias.eval(x)
	case s.root != nil:
		return confPath(s.root.eval(x))
	}
	return defaultRoot
}

// filename is the file a path leads to. An alias replaces the location's prefix; of a regular
// expression's location it is the whole name.
func (x *exchange) filename(uri string) string {
	s := x.scope()
	if s.alias == nil || x.location == nil {
		return x.documentRoot() + uri
	}
	if x.location.match == matchRegexp {
		return x.documentRoot()
	}
	return x.documentRoot() + strings.TrimPrefix(uri, x.location.pattern)
}

// static answers with a file or a directory's index.
func (x *exchange) static() outcome {
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		return outcome{code: http.StatusMethodNotAllowed}
	}
	name := x.filename(x.uri)
	if strings.HasSuffix(x.uri, "/") {
		return x.directory(name)
	}
	return x.file(name)
}

func (x *exchange) file(name string) outcome {
	f, err := x.in.env.FS.OpenFile(path.Clean(name), os.O_RDONLY, 0)
	if err != nil {
		return x.noFile("open()", name, err)
	}
	defer f.Close()
	fi, err := f.Stat()
	switch {
	case err != nil:
		return x.noFile("fstat()", name, err)
	case fi.IsDir():
		return x.redirect(http.StatusMovedPermanently, x.withArgs(escapePath(x.uri+"/")))
	case !fi.Mode().IsRegular():
		x.log(levelError, "%q is not a regular file", name)
		return outcome{code: http.StatusNotFound}
	}
	r := x.r
	if x.w.forced != 0 {
		// A page that is shown instead of another is shown whole.
		r = x.r.Clone(x.r.Context())
		for _, h := range []string{"Range", "If-Modified-Since", "If-None-Match", "If-Match", "If-Unmodified-Since"} {
			r.Header.Del(h)
		}
	}
	x.w.Header().Set("Content-Type", x.contentType(name))
	x.w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, fi.ModTime().Unix(), fi.Size()))
	http.ServeContent(x.w, r, "", fi.ModTime(), f)
	return outcome{done: true}
}

// noFile is the answer if a file cannot be had.
func (x *exchange) noFile(call, name string, err error) outcome {
	code, level := http.StatusInternalServerError, levelCrit
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		code, level = http.StatusNotFound, levelError
	case errors.Is(err, fs.ErrPermission):
		code, level = http.StatusForbidden, levelError
	}
	x.log(level, "%s %q failed (%s)", call, name, errnoText(err))
	return outcome{code: code}
}

// directory looks for an index file, which is then answered like a request of its own, or lists what
// there is if that is allowed.
func (x *exchange) directory(name string) outcome {
	s := x.scope()
	names := []string{"index.html"}
	if s.index != nil {
		names = nil
		for _, t := range s.index {
			names = append(names, t.eval(x))
		}
	}
	for _, index := range names {
		if strings.HasPrefix(index, "/") {
			x.uri, x.internal = index, true
			return outcome{again: true}
		}
		fi, err := x.in.env.FS.Stat(path.Clean(name + index))
		if err == nil && !fi.IsDir() {
			x.uri, x.internal = x.uri+index, true
			return outcome{again: true}
		}
	}
	fi, err := x.in.env.FS.Stat(path.Clean(name))
	switch {
	case err != nil && len(names) > 0:
		return x.noFile("open()", name+names[0], err)
	case err != nil || !fi.IsDir():
		return x.noFile("open()", name, syscall.ENOTDIR)
	case s.autoindex:
		return x.list(name)
	}
	x.log(levelError, "directory index of %q is forbidden", name)
	return outcome{code: http.StatusForbidden}
}

// list shows what a directory holds.
func (x *exchange) list(name string) outcome {
	entries, err := x.in.env.FS.ReadDir(path.Clean(name))
	if err != nil {
		return x.noFile("opendir()", name, err)
	}
	title := "Index of " + html.EscapeString(x.uri)
	var b strings.Builder
	fmt.Fprintf(&b, "<html>\r\n<head><title>%s</title></head>\r\n<body>\r\n<h1>%s</h1><hr><pre><a "+
		"href=\"../\">../</a>\r\n", title, title)
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int { // Directories come first.
		return map[bool]int{true: 0, false: 1}[a.IsDir()] - map[bool]int{true: 0, false: 1}[b.IsDir()]
	})
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		shown, size := e.Name(), fmt.Sprint(fi.Size())
		if e.IsDir() {
			shown, size = shown+"/", "-"
		}
		fmt.Fprintf(&b, "<a href=\"%s\">%s</a>%s %s %19s\r\n", escapePath(shown), html.EscapeString(shown),
			strings.Repeat(" ", max(0, 50-len(shown))), fi.ModTime().UTC().Format("02-Jan-2006 15:04"), size)
	}
	b.WriteString("</pre><hr></body>\r\n</html>\r\n")
	x.w.Header().Set("Content-Type", "text/html")
	x.reply(http.StatusOK, b.String())
	return outcome{done: true}
}

// tryFiles looks for the first file that exists. The result is empty if the path now leads to one.
func (x *exchange) tryFiles(s *scope) outcome {
	candidates := s.tryFiles
	var fallback *text
	if s.tryCode == 0 {
		candidates, fallback = candidates[:len(candidates)-1], candidates[len(candidates)-1]
	}
	for _, c := range candidates {
		uri := c.eval(x)
		wantDir := strings.HasSuffix(uri, "/")
		fi, err := x.in.env.FS.Stat(path.Clean(x.filename(uri)))
		if err != nil || fi.IsDir() != wantDir {
			continue
		}
		x.uri = uri
		return outcome{}
	}
	if fallback == nil {
		return outcome{code: s.tryCode}
	}
	target := fallback.eval(x)
	x.internal = true
	if strings.HasPrefix(target, "@") {
		loc := x.server.locations.named(target)
		if loc == nil {
			x.log(levelError, "could not find named location %q", target)
			return outcome{code: http.StatusInternalServerError}
		}
		return x.enter(loc)
	}
	before := x.uri
	if path, args, has := strings.Cut(target, "?"); has {
		x.uri, x.args = path, args
	} else {
		x.uri = target
	}
	if loc, _ := x.server.locations.find(x.uri); loc == x.location && x.uri == before {
		// It leads to itself; what is missing stays missing.
		x.log(levelError, "rewrite or internal redirection cycle while internally redirecting to %q", x.uri)
		return outcome{code: http.StatusInternalServerError}
	}
	return outcome{again: true}
}

// contentType is the type of a file, by its extension.
func (x *exchange) contentType(name string) string {
	s := x.scope()
	kind, ok := s.types[strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))]
	if !ok {
		kind = s.defaultType
	}
	if s.charset != "" && (strings.HasPrefix(kind, "text/") || kind == "application/javascript" ||
		kind == "application/rss+xml") {
		kind += "; charset=" + s.charset
	}
	return kind
}

func escapePath(p string) string { return (&url.URL{Path: p}).EscapedPath() }
