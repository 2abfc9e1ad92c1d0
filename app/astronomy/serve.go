package astronomy

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

// callTimeout is for one service's call to another.
const callTimeout = 5 * time.Second

// overHTTP are the services whose SDKs, in the languages that the demo has them in, send OTLP over HTTP.
var overHTTP = map[string]bool{"accounting": true, "ad": true, "email": true, "fraud-detection": true, "quote": true}

// start begins a service under the name that the environment gives it. Servers that are no programs of the demo's own,
// Envoy and nginx, are told host and port of the collector, all others a URL.
func start(ctx context.Context, env *kit.Env, name string) (*service.Service, error) {
	cfg := service.Config{Name: cmp.Or(env.Getenv("OTEL_SERVICE_NAME"), name)}
	if overHTTP[name] {
		cfg.Protocol = service.OverHTTP
	}
	host, port := env.Getenv("OTEL_COLLECTOR_HOST"), env.Getenv("OTEL_COLLECTOR_PORT_GRPC")
	if host != "" && port != "" {
		cfg.Collector = "http://" + net.JoinHostPort(host, port)
	}
	return service.New(ctx, env, cfg)
}

// A part is a gRPC service: what it needs, and what it serves.
type part struct {
	name  string
	port  string // variable that says where it listens
	costs service.Costs
	start func(ctx context.Context, s *service.Service, flags *flags) (register func(*grpc.Server), err error)
}

// main runs a part as a program.
func (p part) main(ctx context.Context, env *kit.Env) error {
	s, err := start(ctx, env, p.name)
	if err != nil {
		return err
	}
	defer s.Close()
	f, err := openFlags(ctx, s)
	if err != nil {
		return s.Fatal(ctx, "cannot reach the feature flags", err)
	}
	defer f.close()
	register, err := p.start(ctx, s, f)
	if err != nil {
		return s.Fatal(ctx, "cannot start "+p.name, err)
	}
	srv := s.GRPCServer(p.costs)
	register(srv)
	address := listenAddress(env, p.port)
	s.Log.Info(p.name+" service listening", slog.String("address", address))
	return s.ServeGRPC(ctx, srv, address, nil)
}

// listenAddress is where a service listens: on the port that a variable gives.
func listenAddress(env *kit.Env, variable string) string {
	return ":" + cmp.Or(env.Getenv(variable), "8080")
}

// dial connects to the service whose address a variable has, such as CART_ADDR.
func dial(s *service.Service, variable string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	address := s.Env.Getenv(variable)
	if address == "" {
		return nil, fmt.Errorf("%s is not set: want the address of a service, such as cart:8080", variable)
	}
	return s.DialGRPC("passthrough:///"+address, callTimeout, opts...)
}

// once are options for connections: what a server has refused is not tried again, and who cannot be reached is waited
// for.
func once() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
	}
}
