package nginx

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxRedirects is how often a request may be sent to another location.
const maxRedirects = 10

// exchange is one request and its answer.
type exchange struct {
	in         *instance
	gen        *generation
	listen     *listen
	server     *server
	location   *location // nil until it is found
	r          *http.Request
	w          *writer
	connection int64
	started    time.Time

	uri      string // the path, decoded and clean; rewriting and internal redirections change it
	args     string
	set      map[string]string
	captures []string
	failed   bool // an error page is being shown
	internal bool // the client did not ask for this path itself

	upstream upstreamState
}

// outcome is what became of an attempt to answer.
type outcome struct {
	done  bool
	again bool // the path was changed: look for its location
	code  int  // an answer the server words itself
}

// abandoned is panicked with by whoever ends a connection without an answer.
type abandoned struct{}

// scope returns the settings that apply: the location's, or the server's while there is none.
func (x *exchange) scope() *scope {
	if x.location != nil {
		return &x.location.scope
	}
	return &x.server.scope
}

// run answers the request.
func (x *exchange) run() {
	x.args = x.r.URL.RawQuery
	result := x.normalize()
	if result.code == 0 {
		var changed bool
		result, changed = x.takeSteps(x.server.steps)
		if changed || !result.done && result.code == 0 {
			result.again = true
		}
	}
	for range maxRedirects {
		if result.again {
			result = x.locate()
		}
		if result.code != 0 {
			result = x.fail(result.code)
		}
		if result.done {
			return
		}
	}
	x.log(levelError, "rewrite or internal redirection cycle while processing %q", x.uri)
	x.page(http.StatusInternalServerError)
}

// normalize cleans the path as it was asked for.
func (x *exchange) normalize() outcome {
	p := x.r.URL.Path
	if !strings.HasPrefix(p, "/") {
		x.uri = "/"
		return outcome{code: http.StatusBadRequest}
	}
	x.uri = path.Clean(p)
	if last := p[strings.LastIndexByte(p, '/')+1:]; x.uri != "/" && (last == "" || last == "." || last == "..") {
		x.uri += "/"
	}
	return outcome{}
}

// locate finds the location for the path and lets it answer.
func (x *exchange) locate() outcome {
	loc, captures := x.server.locations.find(x.uri)
	if loc != nil && loc.match == matchRegexp {
		x.capture(loc.re, captures)
	}
	if slash, _ := x.server.locations.find(x.uri + "/"); slash != nil && slash != loc && slash.pass != nil &&
		slash.pattern == x.uri+"/" {
		return x.redirect(http.StatusMovedPermanently, x.withArgs(x.uri+"/"))
	}
	if loc != nil && loc.internal && !x.internal {
		return outcome{code: http.StatusNotFound}
	}
	return x.enter(loc)
}

// enter lets a location answer; nil is the server itself.
func (x *exchange) enter(loc *location) outcome {
	x.location = loc
	if loc == nil {
		return x.content()
	}
	result, changed := x.takeSteps(loc.steps)
	if changed {
		return outcome{again: true}
	}
	if result.done || result.code != 0 {
		return result
	}
	return x.content()
}

// content answers from files, from an upstream, or with the server's counters.
func (x *exchange) content() outcome {
	s := x.scope()
	if s.maxBody > 0 {
		if x.r.ContentLength > s.maxBody {
			x.log(levelError, "client intended to send too large body: %d bytes", x.r.ContentLength)
			return outcome{code: http.StatusRequestEntityTooLarge}
		}
		x.r.Body = http.MaxBytesReader(x.w, x.r.Body, s.maxBody)
	}
	if s.tryFiles != nil || s.tryCode != 0 {
		if result := x.tryFiles(s); result.code != 0 || result.again || result.done {
			return result
		}
	}
	switch {
	case x.location != nil && x.location.pass != nil:
		return x.proxy(x.location.pass)
	case x.location != nil && x.location.status:
		return x.showStatus()
	}
	return x.static()
}

// fail shows an error: a page the configuration has for it, or the server's own.
func (x *exchange) fail(code int) outcome {
	pages := x.scope().errorPages
	i := slices.IndexFunc(pages, func(p errorPage) bool { return slices.Contains(p.codes, code) })
	if i < 0 || x.failed {
		x.page(code)
		return outcome{done: true}
	}
	x.failed, x.internal = true, true
	page := pages[i]
	switch page.code {
	case 0:
		x.w.forced = code
	case -1:
	default:
		x.w.forced = page.code
	}
	target := page.target.eval(x)
	switch {
	case strings.HasPrefix(target, "@"):
		loc := x.server.locations.named(target)
		if loc == nil {
			x.log(levelError, "could not find named location %q", target)
			return outcome{code: http.StatusInternalServerError}
		}
		return x.enter(loc)
	case strings.HasPrefix(target, "/"):
		x.uri, x.args, _ = strings.Cut(target, "?")
		x.r = x.r.Clone(x.r.Context())
		if x.r.Method != http.MethodHead {
			x.r.Method = http.MethodGet
		}
		return outcome{again: true}
	}
	x.w.forced = 0
	return x.redirect(http.StatusFound, target)
}

// redirect sends the client somewhere else.
func (x *exchange) redirect(code int, target string) outcome {
	if strings.HasPrefix(target, "/") && x.scope().absolute {
		host := x.r.Host
		if h := hostName(host); h != "" {
			host = h
		} else {
			host = x.server.name()
		}
		standard := map[string]string{"http": "80", "https": "443"}[x.scheme()]
		if x.scope().portInTarget && x.listen.port != standard {
			host += ":" + x.listen.port
		}
		target = x.scheme() + "://" + host + target
	}
	x.w.Header().Set("Location", target)
	x.page(code)
	return outcome{done: true}
}

// reply writes a short answer.
func (x *exchange) reply(code int, body string) {
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(code)
	if x.r.Method != http.MethodHead {
		io.WriteString(x.w, body)
	}
}

// page writes the server's own page about a status.
func (x *exchange) page(code int) {
	if code == http.StatusNoContent || code == http.StatusNotModified {
		x.w.WriteHeader(code)
		return
	}
	x.w.Header().Set("Content-Type", "text/html")
	x.w.Header().Del("Accept-Ranges")
	product := "nginx"
	if x.scope().tokens {
		product += "/" + Version
	}
	title := fmt.Sprintf("%d %s", code, statusText(code))
	x.reply(code, "<html>\r\n<head><title>"+title+"</title></head>\r\n<body>\r\n<center><h1>"+title+
		"</h1></center>\r\n<hr><center>"+product+"</center>\r\n</body>\r\n</html>\r\n")
}

// statusText is the original's wording, which differs from package http's here and there.
func statusText(code int) string {
	switch code {
	case 302:
		return "Moved Temporarily"
	case 405:
		return "Not Allowed"
	case 408:
		return "Request Time-out"
	case 413:
		return "Request Entity Too Large"
	case 416:
		return "Requested Range Not Satisfiable"
	case 503:
		return "Service Temporarily Unavailable"
	case 504:
		return "Gateway Time-out"
	}
	return http.StatusText(code)
}
