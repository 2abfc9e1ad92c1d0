package nginx

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// proxyPass is where a location passes its requests.
type proxyPass struct {
	target *text // as it is written
	// If there is no variable in it, all of this is known in advance.
	scheme   string
	host     string // with port, if one is written
	uri      string // "" passes the path as it came
	upstream *upstream
}

// upstreamState is what logs and variables tell about the servers a request was passed to.
type upstreamState struct {
	url                    string // of the current one
	host, port             string
	addrs, statuses, times []string
	header                 http.Header
}

func applyProxyPass(b *builder, f *frame, d *directive) error {
	if err := f.unique(d); err != nil {
		return err
	}
	t, err := b.text(d, d.args[0])
	if err != nil {
		return err
	}
	p := &proxyPass{target: t}
	f.location.pass = p
	if !t.isConstant() {
		return nil
	}
	if p.scheme, p.host, p.uri, err = splitTarget(d.args[0]); err != nil {
		return d.errorf("%v", err)
	}
	if p.uri != "" && (f.location.match == matchRegexp || f.location.match == matchNamed) {
		return d.errorf(
			`"proxy_pass" cannot have URI part in location given by regular expression, or inside named location, or inside "if" statement, or inside "limit_except" block`)
	}
	b.later = append(b.later, func() error {
		if p.upstream = b.cfg.upstreams[p.host]; p.upstream != nil {
			return nil
		}
		addrs, err := b.lookup(d, p.host, defaultPort(p.scheme))
		if err != nil {
			return err
		}
		p.upstream = newUpstream(p.host, addrs)
		return nil
	})
	return nil
}

func newUpstream(name string, addrs []string) *upstream {
	u := &upstream{name: name}
	for _, a := range addrs {
		u.peers = append(u.peers, &peer{addr: a, weight: 1, maxFails: 1, failTimeout: 10 * time.Second})
	}
	return u
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// splitTarget takes a URL apart. Its path is "" only if there is none at all.
func splitTarget(s string) (scheme, host, uri string, err error) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return "", "", "", errors.New("invalid URL prefix")
	}
	host = rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		host, uri = rest[:i], rest[i:]
	}
	if host == "" {
		return "", "", "", fmt.Errorf("no host in upstream %q", rest)
	}
	return scheme, host, uri, nil
}

func applyProxyHeader(b *builder, f *frame, d *directive) error {
	if f.first(d.name) {
		f.scope.proxyHeaders = nil
	}
	t, err := b.text(d, d.args[1])
	if err != nil {
		return err
	}
	f.scope.proxyHeaders = append(f.scope.proxyHeaders, header{name: d.args[0], value: t})
	return nil
}

func applyProxyRedirect(b *builder, f *frame, d *directive) error {
	if f.first(d.name) {
		f.scope.proxyRedirects, f.scope.proxyRedirectDefault = nil, false
	}
	switch {
	case len(d.args) == 1 && d.args[0] == "off":
		return nil
	case len(d.args) == 1 && d.args[0] == "default":
		f.scope.proxyRedirectDefault = true
		return nil
	case len(d.args) == 1:
		return d.errorf("invalid parameter %q", d.args[0])
	}
	from, err := b.text(d, d.args[0])
	if err != nil {
		return err
	}
	to, err := b.text(d, d.args[1])
	if err != nil {
		return err
	}
	f.scope.proxyRedirects = append(f.scope.proxyRedirects, redirect{from, to})
	return nil
}

func applyProxyNext(_ *builder, f *frame, d *directive) error {
	f.scope.proxyNext = d.args[0] != "off"
	return f.unique(d)
}

func applyResolver(_ *builder, f *frame, d *directive) error {
	f.scope.hasResolver = true
	return f.unique(d)
}

// proxy passes the request on and the answer back.
func (x *exchange) proxy(p *proxyPass) outcome {
	target := *p
	if p.upstream == nil {
		if result := x.resolveTarget(&target); result.code != 0 {
			return result
		}
	}
	x.upstream.host = target.host
	if host, port, err := net.SplitHostPort(target.host); err == nil {
		x.upstream.port = port
		if port == defaultPort(target.scheme) {
			x.upstream.host = host
		}
	} else {
		x.upstream.port = defaultPort(target.scheme)
	}
	path := x.passedPath(&target)
	var failure outcome
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { x.rewriteRequest(r.Out, &target, path) },
		Transport:     &peers{x: x, target: &target, path: path},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // The transport has logged it.
		ModifyResponse: func(resp *http.Response) error {
			x.upstream.header = resp.Header.Clone()
			if resp.StatusCode == http.StatusSwitchingProtocols {
				x.w.status = resp.StatusCode // Nobody will write it: the connection is taken over.
			}
			if x.scope().proxyIntercept && resp.StatusCode >= 300 && resp.StatusCode != 304 {
				return intercepted(resp.StatusCode)
			}
			x.rewriteLocation(resp.Header, &target)
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) { failure = x.proxyFailure(err) },
	}
	proxy.ServeHTTP(x.w, x.r)
	if failure.code != 0 {
		return failure
	}
	return outcome{done: true}
}

// resolveTarget finds the address of a target with variables, which only a request can tell.
func (x *exchange) resolveTarget(p *proxyPass) outcome {
	raw := p.target.eval(x)
	var err error
	if p.scheme, p.host, p.uri, err = splitTarget(raw); err != nil {
		x.log(levelError, "%v in %q", err, raw)
		return outcome{code: http.StatusInternalServerError}
	}
	if p.upstream = x.gen.upstreams[p.host]; p.upstream != nil {
		return outcome{}
	}
	host, port, err := net.SplitHostPort(p.host)
	if err != nil {
		host, port = p.host, defaultPort(p.scheme)
	}
	if net.ParseIP(host) == nil && !x.scope().hasResolver {
		x.log(levelError, "no resolver defined to resolve %s", host)
		return outcome{code: http.StatusBadGateway}
	}
	found, err := x.in.env.Net.LookupHost(x.r.Context(), host)
	if err != nil {
		x.log(levelError, "%s could not be resolved (3: Host not found)", host)
		return outcome{code: http.StatusBadGateway}
	}
	for i, a := range found {
		found[i] = net.JoinHostPort(a, port)
	}
	p.upstream = newUpstream(p.host, found)
	return outcome{}
}

// passedPath is the path and the arguments that an upstream sees. A path in the target replaces the
// location's prefix; with variables it replaces everything.
func (x *exchange) passedPath(p *proxyPass) string {
	switch {
	case p.uri == "" && x.uri == x.r.URL.Path:
		return x.withArgs(x.r.URL.EscapedPath()) // Untouched, so as it came.
	case p.uri == "":
		return x.withArgs(escapePath(x.uri))
	case !p.target.isConstant():
		return p.uri
	}
	return x.withArgs(p.uri + escapePath(strings.TrimPrefix(x.uri, x.location.pattern)))
}

// rewriteRequest makes the request that goes to the upstream.
func (x *exchange) rewriteRequest(out *http.Request, p *proxyPass, path string) {
	out.URL = &url.URL{Scheme: p.scheme, Host: p.host, Opaque: path}
	if !strings.HasPrefix(path, "//") {
		if u, err := url.ParseRequestURI(path); err == nil {
			out.URL = &url.URL{Scheme: p.scheme, Host: p.host, Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
		}
	}
	out.Host = x.upstream.host
	// Forwarding headers are the configuration's business, not ours.
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v, ok := x.r.Header[h]; ok {
			out.Header[h] = v
		}
	}
	upgrade := false
	for _, h := range x.scope().proxyHeaders {
		value := h.value.eval(x)
		switch {
		case strings.EqualFold(h.name, "Host"):
			out.Host = value
		case strings.EqualFold(h.name, "Upgrade"):
			upgrade = value != ""
		case strings.EqualFold(h.name, "Connection"):
			// It goes with the header above.
		case value == "":
			out.Header.Del(h.name)
		default:
			out.Header.Set(h.name, value)
		}
	}
	if !upgrade { // Only a configuration that says so lets a client change the protocol.
		out.Header.Del("Upgrade")
		out.Header.Del("Connection")
	}
}

// rewriteLocation makes a redirection of the upstream's lead to this server.
func (x *exchange) rewriteLocation(h http.Header, p *proxyPass) {
	location := h.Get("Location")
	if location == "" {
		return
	}
	for _, r := range x.scope().proxyRedirects {
		if rest, ok := strings.CutPrefix(location, r.from.eval(x)); ok {
			h.Set("Location", r.to.eval(x)+rest)
			return
		}
	}
	if x.scope().proxyRedirectDefault && p.target.isConstant() && x.location.match != matchRegexp {
		prefix := p.scheme + "://" + p.host + p.uri
		to := x.location.pattern
		if p.uri == "" {
			prefix, to = prefix+"/", "/"
		}
		if rest, ok := strings.CutPrefix(location, prefix); ok {
			h.Set("Location", to+rest)
		}
	}
}

// intercepted is an upstream's answer that the server replaces by a page of its own.
type intercepted int

func (i intercepted) Error() string { return "status " + strconv.Itoa(int(i)) }

// proxyFailure is the answer if no upstream gave one.
func (x *exchange) proxyFailure(err error) outcome {
	var code intercepted
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &code):
		return outcome{code: int(code)}
	case x.r.Context().Err() != nil:
		x.w.status = statusClientClosed
		panic(abandoned{})
	case errors.As(err, &tooLarge):
		x.log(levelError, "client intended to send too large body")
		return outcome{code: http.StatusRequestEntityTooLarge}
	case isTimeout(err):
		return outcome{code: http.StatusGatewayTimeout}
	}
	return outcome{code: http.StatusBadGateway}
}

// statusClientClosed is what the log shows if the client did not wait.
const statusClientClosed = 499
