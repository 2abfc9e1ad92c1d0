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
)

// pool has the tunnels to pods: requests to forward ports that the API server has agreed to. Each carries one
// connection at a time. It could carry many; but who does not read what it was sent would then hold up the others.
type pool struct {
	client kubernetes.Interface
	config *rest.Config

	mu     sync.Mutex
	idle   map[podName][]*tunnel
	all    map[*tunnel]bool
	closed bool
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
	return &pool{client: client, config: config, idle: map[podName][]*tunnel{}, all: map[*tunnel]bool{}}
}

// dial connects to a port of a pod.
func (p *pool) dial(ctx context.Context, t target, to name) (*conn, error) {
	pod := podName{t.namespace, t.pod}
	for {
		kept := p.take(pod)
		if kept == nil {
			break
		}
		if c, err := p.connect(kept, t.port, to); err == nil {
			return c, nil
		}
		p.drop(kept) // It has come to its end meanwhile.
	}
	fresh, err := p.open(ctx, pod)
	if err != nil {
		return nil, err
	}
	c, err := p.connect(fresh, t.port, to)
	if err != nil {
		p.drop(fresh)
	}
	return c, err
}

// open asks the API server for a tunnel to a pod: over a WebSocket, or over SPDY where something on the way does not
// know how.
func (p *pool) open(ctx context.Context, pod podName) (*tunnel, error) {
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
	dialer := portforward.NewFallbackDialerForStreaming(socket,
		spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url),
		func(err error) bool { return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) })
	type answer struct {
		conn httpstream.Connection
		err  error
	}
	answered := make(chan answer, 1)
	go func() { // The library takes no context.
		conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		answered <- answer{conn, err}
	}()
	select {
	case a := <-answered:
		if a.err != nil {
			return nil, fmt.Errorf("forward a port of pod %s: %w", pod.name, a.err)
		}
		return p.add(a.conn, pod)
	case <-ctx.Done():
		go func() {
			if a := <-answered; a.err == nil {
				_ = a.conn.Close()
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
