package service

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// StoreTimeout bounds a request to a store.
const StoreTimeout = 3 * time.Second

// Mongo returns a client of a MongoDB server. It connects when it is first used.
func (s *Service) Mongo(uri string, opts ...*options.ClientOptions) (*mongo.Client, error) {
	o := append([]*options.ClientOptions{
		options.Client().ApplyURI(uri).SetDialer(dialer(s.Env.Net.DialContext)).
			SetConnectTimeout(StoreTimeout).SetServerSelectionTimeout(StoreTimeout).SetTimeout(StoreTimeout).
			SetMaxPoolSize(64).SetAppName(s.Name),
	}, opts...)
	c, err := mongo.Connect(o...)
	if err != nil {
		return nil, err
	}
	s.onClose(c.Disconnect)
	return c, nil
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

// Memcached returns a client of a memcached server.
func (s *Service) Memcached(address string) *memcache.Client {
	c := memcache.NewFromSelector(addresses{host{address}})
	c.Timeout = time.Second
	c.MaxIdleConns = 64
	c.DialContext = s.Env.Net.DialContext
	s.onClose(func(context.Context) error { return c.Close() })
	return c
}

// addresses selects servers by name, and leaves it to the dialer to resolve them.
type addresses []net.Addr

func (a addresses) PickServer(string) (net.Addr, error) { return a[0], nil }

func (a addresses) Each(f func(net.Addr) error) error {
	for _, addr := range a {
		if err := f(addr); err != nil {
			return err
		}
	}
	return nil
}

type host struct{ address string }

func (host) Network() string  { return "tcp" }
func (h host) String() string { return h.address }

// Store traces and counts one request to a store, such as ("mongodb", "find geo").
func (s *Service) Store(ctx context.Context, system, operation string, f func(context.Context) error) error {
	start := time.Now()
	ctx, span := s.Span(ctx, system+" "+operation, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("db.system", system), attribute.String("db.operation", operation)))
	err := f(ctx)
	failure := err
	if errors.Is(err, memcache.ErrCacheMiss) || errors.Is(err, mongo.ErrNoDocuments) {
		failure = nil // The store answered: it has none.
	}
	result := "ok"
	if failure != nil {
		result = "error"
	}
	s.metrics.store.WithLabelValues(system, operation, result).Observe(time.Since(start).Seconds())
	EndSpan(span, failure)
	return err
}
