package kube

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

const (
	// maxIdle is how many tunnels to a pod are kept for the next connection, and idleTime for how long.
	maxIdle  = 16
	idleTime = 30 * time.Second
	// maxOpening is how many tunnels to a pod are asked for at a time. A cluster that is slow to open them would be
	// slower with each further one.
	maxOpening = 8
)

// pool has the tunnels to pods: requests to forward ports that the API server has agreed to. Each carries one
// connection at a time. It could carry many; but who does not read what it was sent would then hold up the others.
type pool struct {
	client kubernetes.Interface
	config *rest.Config

	mu      sync.Mutex
	idle    map[podName][]*tunnel
	opening map[podName]chan struct{} // has a place for each that may be asked for
	all     map[*tunnel]bool
	closed  bool
}

type podName struct{ namespace, name string }

// tunnel is a request to forward ports of a pod.
type tunnel struct {
	httpstream.Connection
	pod    podName
	number int         // of connections so far
	expiry *time.Timer // of an idle one
}

func newPool(client kubernetes.Interface, config *rest.Config) *pool {
	return &pool{
		client: client, config: config, idle: map[podName][]*tunnel{}, opening: map[podName]chan struct{}{},
		all: map[*tunnel]bool{},
	}
}

// dial connects to a port of a pod.
func (p *pool) dial(ctx context.Context, t target, to name) (*conn, error) {
	pod := podName{t.namespace, t.pod}
	if c := p.reuse(pod, t.port, to); c != nil {
		return c, nil
	}
	places := p.places(pod)
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	leave := sync.OnceFunc(func() { <-places })
	if c := p.reuse(pod, t.port, to); c != nil { // Whoever has left the place may have left a tunnel, too.
		leave()
		return c, nil
	}
	fresh, err := p.open(ctx, pod, leave)
	if err != nil {
		return nil, err
	}
	c, err := p.connect(fresh, t.port, to)
	if err != nil {
		p.drop(fresh)
	}
	return c, err
}

// reuse connects through an idle tunnel to the pod. It returns nil if there is none.
func (p *pool) reuse(pod podName, port int, to name) *conn {
	for {
		kept := p.take(pod)
		if kept == nil {
			return nil
		}
		if c, err := p.connect(kept, port, to); err == nil {
			return c
		}
		p.drop(kept) // It has come to its end meanwhile.
	}
}

// places are those of who asks for a tunnel to the pod.
func (p *pool) places(pod podName) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opening[pod] == nil {
		p.opening[pod] = make(chan struct{}, maxOpening)
	}
	return p.opening[pod]
}

// dialer asks the API server for tunnels to a pod: over a WebSocket, or over SPDY where something on the way does not
// know how.
func (p *pool) dialer(pod podName) (httpstream.Dialer, error) {
	url := p.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.namespace).Name(pod.name).
		SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(p.config)
	if err != nil {
		return nil, err
	}
	socket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, p.config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(socket,
		spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url),
		func(err error) bool { return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) }), nil
}

// open opens a tunnel to a pod, and calls done when there is one, or will be none. If ctx ends before, the tunnel is
// for who dials next.
func (p *pool) open(ctx context.Context, pod podName, done func()) (*tunnel, error) {
	dialer, err := p.dialer(pod)
	if err != nil {
		done()
		return nil, err
	}
	type answer struct {
		tunnel *tunnel
		err    error
	}
	answered := make(chan answer, 1)
	go func() { // The library takes no context.
		defer done()
		conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		if err != nil {
			answered <- answer{nil, fmt.Errorf("forward a port of pod %s: %w", pod.name, err)}
			return
		}
		t, err := p.add(conn, pod)
		answered <- answer{t, err}
	}()
	select {
	case a := <-answered:
		return a.tunnel, a.err
	case <-ctx.Done():
		go func() {
			if a := <-answered; a.err == nil {
				p.give(a.tunnel)
			}
		}()
		return nil, context.Cause(ctx)
	}
}

func (p *pool) add(c httpstream.Connection, pod podName) (*tunnel, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
		return nil, errClosed
	}
	t := &tunnel{Connection: c, pod: pod}
	p.all[t] = true
	return t, nil
}

// take returns an idle tunnel to a pod, or nil.
func (p *pool) take(pod podName) *tunnel {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[pod]
	if len(list) == 0 {
		return nil
	}
	t := list[len(list)-1]
	p.idle[pod] = list[:len(list)-1]
	t.expiry.Stop()
	return t
}

// give takes back a tunnel whose connection has ended well.
func (p *pool) give(t *tunnel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle[t.pod]) >= maxIdle {
		delete(p.all, t)
		_ = t.Close()
		return
	}
	p.idle[t.pod] = append(p.idle[t.pod], t)
	t.expiry = time.AfterFunc(idleTime, func() { p.expire(t) })
}

// expire ends a tunnel that is still idle.
func (p *pool) expire(t *tunnel) {
	p.mu.Lock()
	list := p.idle[t.pod]
	for i := range list {
		if list[i] == t {
			p.idle[t.pod] = append(list[:i:i], list[i+1:]...)
			p.mu.Unlock()
			p.drop(t)
			return
		}
	}
	p.mu.Unlock()
}

// drop ends a tunnel that nobody else has.
func (p *pool) drop(t *tunnel) {
	p.mu.Lock()
	delete(p.all, t)
	if len(p.idle[t.pod]) == 0 {
		delete(p.idle, t.pod)
	}
	p.mu.Unlock()
	_ = t.Close()
}

func (p *pool) close() {
	p.mu.Lock()
	all := p.all
	p.closed, p.all, p.idle = true, nil, nil
	p.mu.Unlock()
	for t := range all {
		_ = t.Close()
	}
}
