package workload

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a network with one server, which works under virtual time.
type memory struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error   { m.once.Do(func() { close(m.done) }); return nil }
func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80} }

func (m *memory) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case m.conns <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve starts a server that ends with the test.
func serve(t testing.TB, h http.HandlerFunc) Target {
	m := &memory{conns: make(chan net.Conn), done: make(chan struct{})}
	srv := &http.Server{Handler: h}
	var wg sync.WaitGroup
	wg.Go(func() { srv.Serve(m) })
	t.Cleanup(func() { srv.Close(); wg.Wait() })
	return Target{BaseURL: "http://app", DialContext: m.dial}
}

// one is a mix of a single operation.
func one(o Operation) *Mix {
	o.Name, o.Weight = "op", 1
	if o.Path == "" {
		o.Path = "/"
	}
	return &Mix{Name: "test", Operations: []Operation{o}}
}

func mustNew(t testing.TB, s Spec, target Target) *Generator {
	t.Helper()
	g, err := New(s, target)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// near tells whether got differs from want by at most a part of it.
func near(got, want, part float64) bool { return got >= want*(1-part) && got <= want*(1+part) }
