package astronomy

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	proxyCost = 80 * time.Microsecond
	// delayHeader is how a client asks for its request to be delayed, in milliseconds.
	delayHeader = "X-Envoy-Fault-Delay-Request"
	maxDelayed  = 100 // requests at a time; others are not delayed
	maxDelay    = time.Minute
	proxyAdmin  = ":10000"
)

// route sends what begins with a prefix to a service.
type route struct {
	prefix     string
	host, port string // variables with its address
	strip      bool   // whether the service sees the path without the prefix
}

// routes are tried in this order.
var routes = []route{
	{"/loadgen/", "LOCUST_WEB_HOST", "LOCUST_WEB_PORT", true},
	{"/otlp-http/", "OTEL_COLLECTOR_HOST", "OTEL_COLLECTOR_PORT_HTTP", true},
	{"/jaeger/ui/", "JAEGER_HOST", "JAEGER_UI_PORT", true},
	{grafanaPrefix + "/", "GRAFANA_HOST", "GRAFANA_PORT", false},
	{"/images/", "IMAGE_PROVIDER_HOST", "IMAGE_PROVIDER_PORT", true},
	{"/flagservice/", "FLAGD_HOST", "FLAGD_PORT", true},
	{"/feature/", "FLAGD_UI_HOST", "FLAGD_UI_PORT", true},
	{"/", "FRONTEND_HOST", "FRONTEND_PORT", false},
}

// proxyMain is the program frontend-proxy: it sends requests to who answers them.
func proxyMain(ctx context.Context, env *kit.Env) error {
	s, err := start(ctx, env, "frontend-proxy")
	if err != nil {
		return err
	}
	defer s.Close()
	p := &proxy{s: s}
	client := s.HTTPClient(0)
	mux := http.NewServeMux()
	for _, r := range routes {
		host, port := env.Getenv(r.host), env.Getenv(r.port)
		if host == "" || port == "" {
			continue // There is no such service here.
		}
		s.HandleFunc(mux, r.prefix, r.prefix, proxyCost, p.delayed(p.to(r, host+":"+port, client.Transport)))
		if r.prefix != "/" {
			mux.Handle(strings.TrimSuffix(r.prefix, "/"), http.RedirectHandler(r.prefix, http.StatusMovedPermanently))
		}
	}
	address := listenAddress(env, "ENVOY_PORT")
	s.Log.Info("frontend-proxy listening", slog.String("address", address))
	return s.ServeHTTP(ctx, mux, address)
}

type proxy struct {
	s     *service.Service
	delay atomic.Int64 // requests that are being delayed
}

// to sends requests to an address.
func (p *proxy) to(r route, address string, transport http.RoundTripper) http.Handler {
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(q *httputil.ProxyRequest) {
			q.Out.URL.Scheme, q.Out.URL.Host = "http", address
			if r.strip {
				q.Out.URL.Path = "/" + strings.TrimPrefix(q.In.URL.Path, r.prefix)
				q.Out.URL.RawPath = ""
			}
			q.Out.Header.Del("Traceparent") // The transport writes its own.
			q.SetXForwarded()
		},
		ErrorLog: slog.NewLogLogger(p.s.Log.Handler(), slog.LevelWarn),
		ErrorHandler: func(w http.ResponseWriter, q *http.Request, err error) {
			p.s.Log.WarnContext(q.Context(), "upstream failed", slog.String("upstream", address),
				slog.String("url", (&url.URL{Path: q.URL.Path}).String()), slog.Any("error", err))
			http.Error(w, "upstream connect error or disconnect/reset before headers", http.StatusServiceUnavailable)
		},
	}
}

// delayed delays requests that ask for it.
func (p *proxy) delayed(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if n, err := strconv.ParseUint(r.Header.Get(delayHeader), 10, 32); err == nil && n > 0 {
			if p.delay.Add(1) <= maxDelayed {
				select {
				case <-time.After(min(time.Duration(n)*time.Millisecond, maxDelay)):
				case <-r.Context().Done():
				}
			}
			p.delay.Add(-1)
		}
		if r.Context().Err() == nil {
			next.ServeHTTP(w, r)
		}
	}
}
