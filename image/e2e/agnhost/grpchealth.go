package agnhost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// grpcHealth is a gRPC service that is healthy for a while, or until it is told otherwise.
type grpcHealth struct {
	healthpb.UnimplementedHealthServer
	*program

	port, httpPort, delay int
	service               string
	certFile, keyFile     string

	started time.Time
	forced  atomic.Bool // told not to serve
}

func (p *program) newGRPCHealthChecking() *cobra.Command {
	g := &grpcHealth{program: p}
	c := command("grpc-health-checking", "Serve gRPC's health service", g.run)
	f := c.Flags()
	f.IntVar(&g.port, "port", 5000, "port of the gRPC server")
	f.IntVar(&g.httpPort, "http-port", 8080, "port of the HTTP server with /make-serving and /make-not-serving")
	f.IntVar(&g.delay, "delay-unhealthy-sec", -1, "seconds after which it is NOT_SERVING; -1 for never")
	f.StringVar(&g.service, "service", "", "name of the service whose health it is")
	f.StringVar(&g.certFile, "tls-cert-file", "", "file with a certificate; makes the gRPC server use TLS")
	f.StringVar(&g.keyFile, "tls-private-key-file", "", "file with its key")
	return c
}

func (g *grpcHealth) run(ctx context.Context) error {
	g.started = time.Now()
	var options []grpc.ServerOption
	if g.certFile != "" || g.keyFile != "" {
		config, err := g.keyPair(g.certFile, g.keyFile)
		if err != nil {
			return g.fatal(err)
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	force := func(unhealthy bool) http.HandlerFunc {
		return func(_ http.ResponseWriter, r *http.Request) {
			g.log.Print(r.URL.Path)
			g.forced.Store(unhealthy)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/make-not-serving", force(true))
	mux.HandleFunc("/make-serving", force(false))
	return together(ctx, g.serveHTTP(fmt.Sprintf(":%d", g.httpPort), mux), func(ctx context.Context) error {
		return g.serveGRPC(ctx, grpc.NewServer(options...))
	})
}

func (g *grpcHealth) serveGRPC(ctx context.Context, srv *grpc.Server) error {
	ln, err := g.env.Net.Listen("tcp", fmt.Sprintf(":%d", g.port))
	if err != nil {
		return g.fatal(err)
	}
	healthpb.RegisterHealthServer(srv, g)
	stop := context.AfterFunc(ctx, srv.Stop)
	defer stop()
	if err := srv.Serve(ln); err != nil && !errors.Is(err, grpc.ErrServerStopped) && ctx.Err() == nil {
		return g.fatal(err)
	}
	return idle(ctx)
}

// Check is the one method of the health service a probe calls.
func (g *grpcHealth) Check(_ context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if r.GetService() != g.service {
		return nil, status.Error(codes.NotFound, "only "+g.service+" is known here")
	}
	answer := healthpb.HealthCheckResponse_SERVING
	expired := g.delay >= 0 && time.Since(g.started) >= time.Duration(g.delay)*time.Second
	if g.forced.Load() || expired {
		answer = healthpb.HealthCheckResponse_NOT_SERVING
	}
	return &healthpb.HealthCheckResponse{Status: answer}, nil
}
