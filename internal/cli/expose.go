package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/observe"
	pages "github.com/aiopslab/aiopslab/server/page"
)

// What --expose can say besides a port.
const (
	exposeAuto = "auto" // at the ports that they have in the cluster, or any others
	exposeOff  = "off"
)

// page is something that a browser can open: a program in the cluster, or the lab's own page about all of it.
type page struct {
	title string
	name  string // in the address of the lab's own page, if that shows it, too
	host  string // inside the cluster; empty for the lab's own
	port  int    // by which people know it
	ln    net.Listener

	site http.Handler // the lab's own
	path string       // where it begins
}

// pagesOf are what there is to open once an application is deployed. A port below 1024 is for servers
// of the whole machine, so 80 becomes 8080.
func pagesOf(a *app.App, t *cloud.Tenancy) []*page {
	front := a.Frontend.Port
	if front < 1024 {
		front += 8000
	}
	list := []*page{
		{title: a.Title, host: a.Host(), port: front},
		{title: "Prometheus", name: "prometheus", host: observe.PrometheusHost(t) + ":80", port: 9090},
	}
	if _, ok := a.Service("jaeger"); ok {
		list = append(list, &page{
			title: "Jaeger", name: "jaeger", host: observe.JaegerHost(a.Namespace), port: observe.JaegerPort,
		})
	}
	return list
}

// pages opens ports on loopback for the pages of an application, as --expose says. Nobody answers there
// before serve is called.
func (f *upFlags) pages(a *app.App, command bool) ([]*page, error) {
	first, err := strconv.ParseUint(f.expose, 10, 16)
	switch {
	case f.expose == exposeOff, !f.exposeGiven && (a == nil || command):
		return nil, nil
	case a == nil:
		return nil, fail(ExitUsage, errors.New("--expose: there is nothing to open"), "Name an application with --app.")
	case f.expose != exposeAuto && (err != nil || first == 0):
		return nil, fail(ExitUsage, fmt.Errorf("--expose %s: want a port, %s or %s", f.expose, exposeAuto, exposeOff),
			"Write it as --expose 8000.")
	}
	list := append(pagesOf(a, nil), &page{title: labTitle, port: labPort})
	for i, p := range list {
		if f.expose == exposeAuto {
			p.ln, err = listenNear(p.port)
		} else {
			p.ln, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(first)+i)))
		}
		if err == nil {
			continue
		}
		closePages(list[:i])
		hint := fmt.Sprintf("It takes %d ports on end; choose others.", len(list))
		if errors.Is(err, syscall.EADDRINUSE) {
			hint = fmt.Sprintf("Another program has the port; choose others, %d on end, or leave --expose out "+
				"to use free ones.", len(list))
		}
		return nil, fail(ExitEnvironment, fmt.Errorf("--expose: open %s: %w", p.title, err), hint)
	}
	return list, nil
}

// leadTo has the pages lead to where the application is.
func leadTo(list []*page, p *place) {
	if len(list) == 0 {
		return
	}
	for i, there := range pagesOf(p.app, p.tenancy) {
		list[i].host = there.host
	}
}

// listenNear takes the port that people know, or any other if it cannot have that.
func listenNear(port int) (net.Listener, error) {
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		ln, err = net.Listen("tcp", "127.0.0.1:0")
	}
	return ln, err
}

func closePages(list []*page) {
	for _, p := range list {
		_ = p.ln.Close()
	}
}

// printPages tells the addresses, a line each.
func printPages(w io.Writer, list []*page) {
	width := 0
	for _, p := range list {
		width = max(width, len(p.title))
	}
	for _, p := range list {
		fmt.Fprintf(w, "  %-*s  http://%s%s\n", width, p.title, p.ln.Addr(), p.path)
	}
}

// dialFunc opens a connection into the cluster.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// servePages passes requests on into the cluster until it is told to stop.
func servePages(list []*page, dial dialFunc, errorLog *log.Logger) (stop func()) {
	var servers []*http.Server
	for _, p := range list {
		srv := &http.Server{Handler: p.site, ReadHeaderTimeout: time.Minute, ErrorLog: errorLog}
		if p.site == nil {
			srv.Handler = p.handler(dial, errorLog)
		}
		servers = append(servers, srv)
		go func() { _ = srv.Serve(p.ln) }()
	}
	return func() {
		for _, srv := range servers {
			_ = srv.Close()
		}
	}
}

// handler passes requests on as they are. A browser lets any page of the web send requests to this
// machine, so what such a page sends is refused: requests for a name of its own, and those of others
// that change something.
func (p *page) handler(dial dialFunc, errorLog *log.Logger) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: p.host})
			r.Out.Host = r.In.Host // Links that a server makes of it can be opened, too.
			keepPasses(r)
		},
		Transport:     &http.Transport{DialContext: dial, DisableCompression: true, IdleConnTimeout: time.Minute},
		FlushInterval: -1,
		ErrorLog:      errorLog,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, fmt.Sprintf("%s does not answer at %s: %v", p.title, p.host, err), http.StatusBadGateway)
		},
	}
	own := http.NewCrossOriginProtection().Handler(proxy)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !localHost(r.Host) {
			http.Error(w, "This is for localhost alone, not for "+strconv.Quote(r.Host)+".", http.StatusForbidden)
			return
		}
		own.ServeHTTP(w, r)
	})
}

// keepPasses takes the lab's own cookies out of a request. To a browser all ports of this machine are one host, so it
// sends what opens the lab's pages to programs in the cluster, too, if they ask for the right path.
func keepPasses(r *httputil.ProxyRequest) {
	r.Out.Header.Del("Cookie")
	for _, c := range r.In.Cookies() {
		if !strings.HasPrefix(c.Name, pages.CookiePrefix) {
			r.Out.AddCookie(c)
		}
	}
}

// localHost reports whether a Host header names this machine.
func localHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}
