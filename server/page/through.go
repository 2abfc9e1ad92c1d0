package page

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	// throughPath is where the pages of the cluster's own programs are. It is not below [Prefix], so that no browser
	// sends the site's cookie there.
	throughPath = "/through/"
	// throughMost is how long one of their answers may be, in bytes.
	throughMost = 64 << 20
	// throughTimeout is how long one may take to begin.
	throughTimeout = 30 * time.Second
)

// throughPolicy keeps a page of the cluster's in a sandbox: to a browser it is of no origin at all, so its script can
// read nothing of this site and has no cookie of it, whatever has become of the program that sent it. It may load what
// is of this server, which without the cookie is itself alone, and stand in a page of this site.
const throughPolicy = "sandbox allow-scripts allow-forms; default-src 'self' 'unsafe-inline' data: blob:; " +
	"form-action 'self'; base-uri 'self'; frame-ancestors 'self'"

// through shows pages of programs in the cluster. It passes on reading requests alone. Since a page in a sandbox
// cannot show a cookie, its address has a pass, which opens these pages and nothing else.
type through struct {
	pass  string
	list  []Own
	proxy *httputil.ReverseProxy
}

func newThrough(c *Cluster) *through {
	t := &through{pass: rand.Text(), list: c.Own}
	t.proxy = &httputil.ReverseProxy{
		Rewrite: rewrite, ModifyResponse: t.tame,
		Transport: &http.Transport{
			DialContext: c.Dial, DisableCompression: true, IdleConnTimeout: time.Minute,
			ResponseHeaderTimeout: throughTimeout, MaxResponseHeaderBytes: 64 << 10,
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			o, _ := target(r)
			http.Error(w, fmt.Sprintf("%s does not answer at %s: %v", o.Title, o.Host, err), http.StatusBadGateway)
		},
	}
	return t
}

// base is where the pages of a program begin.
func (t *through) base(name string) string { return throughPath + t.pass + "/" + name + "/" }

type targetKey struct{}

// target is the program that a request is for.
func target(r *http.Request) (Own, bool) {
	o, ok := r.Context().Value(targetKey{}).(Own)
	return o, ok
}

// passedOn are the headers of a request, and of an answer, that are passed on.
var (
	passedOn   = []string{"Accept", "Accept-Encoding", "Accept-Language", "If-None-Match", "If-Modified-Since"}
	passedBack = []string{
		"Content-Type", "Content-Length", "Content-Encoding", "Etag", "Last-Modified", "Cache-Control",
	}
)

// rewrite makes a request one to the program. Nothing that tells who asks goes along.
func rewrite(r *httputil.ProxyRequest) {
	o, _ := target(r.In)
	header := http.Header{}
	for _, name := range passedOn {
		if v := r.In.Header.Values(name); len(v) > 0 {
			header[name] = v
		}
	}
	r.Out.Header = header
	r.Out.URL = &url.URL{Scheme: "http", Host: o.Host, Path: "/" + r.In.PathValue("path"), RawQuery: r.In.URL.RawQuery}
	r.Out.Host, r.Out.Body = o.Host, nil
	r.Out.ContentLength = 0
}

// tame makes an answer one that a browser keeps in the sandbox.
func (t *through) tame(res *http.Response) error {
	o, _ := target(res.Request)
	if res.ContentLength > throughMost {
		return fmt.Errorf("its answer is longer than %d MB", throughMost>>20)
	}
	header := http.Header{}
	for _, name := range passedBack {
		if v := res.Header.Values(name); len(v) > 0 {
			header[name] = v
		}
	}
	for _, policy := range res.Header.Values("Content-Security-Policy") {
		header.Add("Content-Security-Policy", withoutFrames(policy))
	}
	if to := res.Header.Get("Location"); to != "" {
		where, err := t.within(o, to)
		if err != nil {
			return err
		}
		header.Set("Location", where)
	}
	res.Header = header
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, throughMost), res.Body}
	return nil
}

// within is where a program's redirection leads, below its own path.
func (t *through) within(o Own, to string) (string, error) {
	u, err := url.Parse(to)
	if err != nil || u.Host != "" && u.Host != o.Host {
		return "", errors.New("it redirects to elsewhere")
	}
	if !path.IsAbs(u.Path) {
		return to, nil
	}
	u.Scheme, u.Host, u.Path = "", "", t.base(o.Name)+strings.TrimLeft(u.Path, "/")
	return u.String(), nil
}

// withoutFrames is a policy without what it says of who may show a page, and where: that is for this site to say.
func withoutFrames(policy string) string {
	list := strings.Split(policy, ";")
	list = slices.DeleteFunc(list, func(d string) bool {
		name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(d)), " ")
		return name == "frame-ancestors" || name == "sandbox" || name == "report-uri" || name == "report-to"
	})
	return strings.Join(list, ";")
}
