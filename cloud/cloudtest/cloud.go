// Package cloudtest is a cloud in memory, for tests of what stands on a [cloud.Cloud]: an API that
// keeps objects, Deployments whose pods are ready at once, and programs that answer HTTP.
//
//	c := cloudtest.New(t)
//	c.Serve("frontend.shop:80", handler)
//	err := session.Deploy(ctx, c, app)
//
// Every connection is a pipe, so all of it works in a bubble of testing/synctest. What is not here, no
// test should need of a fake: there are no controllers, no nodes and no rights.
package cloudtest

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/aiopslab/aiopslab/cloud"
)

// apiAddress is where the API answers.
const apiAddress = "kubernetes.default:80"

// Cloud is a cluster in memory. Its methods are safe for concurrent use.
type Cloud struct {
	transport *http.Transport // to the API
	server    http.Server
	conns     chan net.Conn // to be accepted
	closed    chan struct{}
	close     sync.Once

	mu       sync.Mutex
	objects  map[string]*unstructured.Unstructured // by path
	version  int64
	changed  chan struct{}           // closed at the next change
	programs map[string]http.Handler // by address
	before   func(*http.Request) error
	stuck    map[string]bool // Deployments, by path
	gate     *cloud.Gate
}

var (
	_ cloud.Cloud    = (*Cloud)(nil)
	_ cloud.Resetter = (*Cloud)(nil)
	_ cloud.Gated    = (*Cloud)(nil)
)

// New returns a cloud that is closed at the end of the test, if not before.
func New(t testing.TB) *Cloud {
	c := &Cloud{
		conns: make(chan net.Conn), closed: make(chan struct{}), changed: make(chan struct{}),
		objects: map[string]*unstructured.Unstructured{}, programs: map[string]http.Handler{}, stuck: map[string]bool{},
	}
	c.transport = &http.Transport{DialContext: c.Dial}
	c.server.Handler = http.HandlerFunc(c.answer)
	c.server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, addressKey{}, conn.(*served).address)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = c.server.Serve(listener{c}) // It ends with Close.
	}()
	t.Cleanup(func() {
		_ = c.Close()
		<-served
	})
	return c
}

// Serve has a program answer at an address, as "frontend.shop:80". While there is a Deployment of that
// name in that namespace, it answers only if the Deployment has a pod that is ready.
func (c *Cloud) Serve(address string, program http.Handler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.programs[address] = program
}

// Before has a function called before a request to the API is answered, outside of any lock: it may
// take its time, and an error refuses the request. Nil removes it.
func (c *Cloud) Before(f func(*http.Request) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = f
}

// RESTConfig is a way to the API.
func (c *Cloud) RESTConfig() *rest.Config {
	return &rest.Config{
		Host: "http://" + apiAddress, Transport: c.transport,
		ContentConfig: rest.ContentConfig{
			ContentType:        runtime.ContentTypeJSON,
			AcceptContentTypes: runtime.ContentTypeJSON,
		},
	}
}

// Dial connects to a program.
func (c *Cloud) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	address = strings.TrimSuffix(host, ".svc.cluster.local") + ":" + port
	if address != apiAddress && !c.serves(address) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	here, there := net.Pipe()
	select {
	case c.conns <- &served{there, address}:
		return here, nil
	case <-c.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close ends all connections.
func (c *Cloud) Close() error {
	c.close.Do(func() {
		close(c.closed)
		_ = c.server.Close()
		c.transport.CloseIdleConnections()
	})
	return nil
}

// Gate is the gate that was put up, or nil.
func (c *Cloud) Gate() *cloud.Gate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gate
}

// SetGate puts up a gate. Nothing goes through it.
func (c *Cloud) SetGate(g *cloud.Gate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gate = g
}

// snapshot is the objects that there were.
type snapshot map[string]*unstructured.Unstructured

func (snapshot) WriteTo(io.Writer) (int64, error) { return 0, errors.ErrUnsupported }

// Snapshot remembers the objects.
func (c *Cloud) Snapshot(context.Context) (cloud.Snapshot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return snapshot(maps.Clone(c.objects)), nil
}

// Reset brings the objects back that there were.
func (c *Cloud) Reset(_ context.Context, s cloud.Snapshot) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects = maps.Clone(s.(snapshot))
	c.change()
	return nil
}

// answer has the program of a connection's address answer.
func (c *Cloud) answer(w http.ResponseWriter, r *http.Request) {
	address := r.Context().Value(addressKey{}).(string)
	if address == apiAddress {
		c.api(w, r)
		return
	}
	if !c.serves(address) {
		panic(http.ErrAbortHandler) // The pod is gone, and its connections with it.
	}
	c.mu.Lock()
	program := c.programs[address]
	c.mu.Unlock()
	program.ServeHTTP(w, r)
}

// addressKey is where a request's context has the address that was dialled.
type addressKey struct{}

// served is the program's end of a connection.
type served struct {
	net.Conn
	address string
}

// listener takes the connections that are dialled.
type listener struct{ c *Cloud }

func (l listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.c.conns:
		return conn, nil
	case <-l.c.closed:
		return nil, net.ErrClosed
	}
}

func (l listener) Close() error   { return nil }
func (l listener) Addr() net.Addr { return &net.UnixAddr{Name: "cloudtest", Net: "pipe"} }
