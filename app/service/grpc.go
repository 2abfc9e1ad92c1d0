package service

import (
	"context"
	"errors"
	"log/slog"
	"path"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/aiopslab/aiopslab/kit"
)

// bufferSize is the size of a connection's buffers. An application has hundreds of connections, and its messages
// are small.
const bufferSize = 4 << 10

// Costs is the CPU time a call takes, by method name; "" is for the others.
type Costs map[string]time.Duration

func (c Costs) of(method string) time.Duration {
	if d, ok := c[method]; ok {
		return d
	}
	return c[""]
}

// GRPCServer returns a server that traces, counts and logs calls and charges what they cost. A service may have
// several, all of them made before the first one serves.
func (s *Service) GRPCServer(costs Costs) *grpc.Server {
	srv := grpc.NewServer(
		grpc.ReadBufferSize(bufferSize), grpc.WriteBufferSize(bufferSize),
		grpc.KeepaliveParams(keepalive.ServerParameters{Timeout: 120 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(
			keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(s.traceServed, s.metrics.grpc.UnaryServerInterceptor(), s.handle(costs)),
	)
	s.health[srv] = health.NewServer()
	healthpb.RegisterHealthServer(srv, &healthServer{s.health[srv], s})
	return srv
}

// healthServer is gRPC's health check, with what the service itself has to say.
type healthServer struct {
	*health.Server
	s *Service
}

// Check implements the health check.
func (h *healthServer) Check(ctx context.Context,
	req *healthpb.HealthCheckRequest,
) (*healthpb.HealthCheckResponse, error) {
	if h.s.Well != nil && !h.s.Well(ctx) {
		return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING}, nil
	}
	return h.Server.Check(ctx, req)
}

// handle charges a call and logs its failure.
func (s *Service) handle(costs Costs) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		method := path.Base(info.FullMethod)
		if err := s.Env.CPU.Use(ctx, costs.of(method)); err != nil {
			return nil, status.FromContextError(err).Err()
		}
		resp, err := next(ctx, req)
		if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			level := slog.LevelError
			if !blamesServer(status.Code(err)) {
				level = slog.LevelInfo // The caller asked for what cannot be had, such as a login without the password.
			}
			s.Log.Log(ctx, level, method+" failed", slog.Any("error", err))
		}
		return resp, err
	}
}

// ServeGRPC listens and serves until the context ends, then finishes the calls it has. Started, if
// not nil, runs once it listens.
func (s *Service) ServeGRPC(ctx context.Context, srv *grpc.Server, address string, started func()) error {
	ln, err := s.Env.Net.Listen("tcp", address)
	if err != nil {
		return s.Fatal(ctx, "cannot listen", err)
	}
	s.metrics.grpc.InitializeMetrics(srv)
	for name := range srv.GetServiceInfo() {
		s.health[srv].SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	}
	stopped := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(stopped)
		timer := time.AfterFunc(drain, srv.Stop)
		defer timer.Stop()
		srv.GracefulStop()
	})()
	if started != nil {
		started()
	}
	if err := kit.IgnoreClosed(srv.Serve(ln)); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return s.Fatal(ctx, "server failed", err)
	}
	if ctx.Err() != nil {
		<-stopped
	}
	return nil
}

func (s *Service) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithContextDialer(s.dialContext),
		grpc.WithReadBufferSize(bufferSize), grpc.WithWriteBufferSize(bufferSize),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
				MaxDelay: 3 * time.Second,
			},
			MinConnectTimeout: 3 * time.Second,
		}),
	}
}

// serviceConfig spreads calls over all addresses and repeats one that no server has seen.
const serviceConfig = `{
	"loadBalancingConfig": [{"round_robin": {}}],
	"methodConfig": [{
		"name": [{}],
		"retryPolicy": {
			"maxAttempts": 3, "initialBackoff": "0.02s", "maxBackoff": "0.2s", "backoffMultiplier": 2,
			"retryableStatusCodes": ["UNAVAILABLE"]
		}
	}]
}`

// DialGRPC returns a connection to another service, traced and counted. It does not wait for the
// service: calls fail with the reason while it cannot be reached. Target is a gRPC target;
// "passthrough:///host:port" leaves the name to the container's resolver.
func (s *Service) DialGRPC(target string, timeout time.Duration, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	opts = append(append(s.dialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithChainUnaryInterceptor(s.traceCalled, s.metrics.client.UnaryClientInterceptor(), within(timeout)),
	), opts...)
	conn, err := grpc.NewClient(target, opts...)
	if err != nil {
		return nil, err
	}
	s.onClose(func(context.Context) error { return conn.Close() })
	return conn, nil
}

// DialPlain returns a connection that is neither traced nor counted, to what is no service of the application.
func (s *Service) DialPlain(target string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(target,
		append(s.dialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return nil, err
	}
	s.onClose(func(context.Context) error { return conn.Close() })
	return conn, nil
}

// within bounds a call that has no deadline of its own.
func within(timeout time.Duration) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption,
	) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return invoke(ctx, method, req, reply, cc, opts...)
	}
}
