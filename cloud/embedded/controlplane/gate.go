package controlplane

import (
	"net/http"
	"sync/atomic"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	"github.com/aiopslab/aiopslab/cloud/embedded/loopback"
)

// doors are the ways into the API server beside its socket.
type doors struct {
	// gate answers what comes over a wire, if there is one.
	gate atomic.Pointer[http.Handler]
	// direct calls the server of the built-in APIs and of custom resources itself. The aggregator,
	// which stands before it, sends a request to wherever an APIService points.
	direct loopback.Transport
}

// open takes the doors into the configuration of servers that are not built yet.
func (d *doors) open(c *app.Config) {
	d.direct.Trusted = true
	kube, aggregator := c.KubeAPIs.ControlPlane.Generic, c.Aggregator.GenericConfig
	chain, outer := kube.BuildHandlerChainFunc, aggregator.BuildHandlerChainFunc
	kube.BuildHandlerChainFunc = func(h http.Handler, g *genericapiserver.Config) http.Handler {
		full := chain(h, g)
		d.direct.Serve(full)
		return full
	}
	aggregator.BuildHandlerChainFunc = func(h http.Handler, g *genericapiserver.Config) http.Handler {
		return d.gated(outer(h, g))
	}
}

// gated lets requests from inside the process pass, and shows others to the gate.
func (d *doors) gated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gate := d.gate.Load(); gate != nil && !loopback.Local(r.Context()) {
			(*gate).ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// SetGate makes a handler answer, in place of the API server, all requests that come from the cluster's network or
// from the host. Clients with a RESTConfig pass it. Nil removes it.
func (p *Plane) SetGate(h http.Handler) {
	if h == nil {
		p.api.doors.gate.Store(nil)
		return
	}
	p.api.doors.gate.Store(&h)
}

// DirectConfig is a RESTConfig that nothing in the cluster can redirect, see, change or refuse: neither the
// aggregator nor webhooks nor admission policies take part in its requests. It does not reach aggregated APIs.
func (p *Plane) DirectConfig(name string) *rest.Config {
	c := p.RESTConfig(name)
	c.Transport = &p.api.doors.direct
	return c
}
