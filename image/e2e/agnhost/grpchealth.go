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
	c := command("grpc-health-checking", "Starts a simple grpc health checking endpoint", g.run)
	f := c.Flags()
	f.IntVar(&g.port, "port", 5000, "Port number.")
	f.IntVar(&g.httpPort, "http-port", 8080, "Port number for the /make-serving and /make-not-serving.")
	f.IntVar(&g.delay, "delay-unhealthy-sec", -1, "Number of seconds to delay before start reporting NOT_SERVING, negative value indicates never.")
	f.StringVar(&g.service, "service", "", "Service name to register the health check for.")
	f.StringVar(&g.certFile, "tls-cert-file", "", "File containing an x509 certificate for gRPC TLS.")
	f.StringVar(&g.keyFile, "tls-private-key-file", "", "File containing an x509 private key matching --tls-cert-file.")
	return c
}

func (g *grpcHealth) run(ctx context.Context) error {
	g.started = time.Now()
	if (g.certFile == "") != (g.keyFile == "") {
		return g.fatal("Both --tls-cert-file and --tls-private-key-file must be set")
	}
	var options []grpc.ServerOption
	if g.certFile != "" {
		config, err := g.keyPair(g.certFile, g.keyFile)
		if err != nil {
			return g.fatalf("Failed to generate credentials %v", err)
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	force := func(unhealthy bool, name string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			g.log.Printf("Mark as %s", name)
			g.forced.Store(unhealthy)
			fmt.Fprint(w, time.Since(g.started))
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/make-not-serving", force(true, "unhealthy"))
	mux.HandleFunc("/make-serving", force(false, "healthy"))
	g.log.Printf("Http server starting to listen on :%d", g.httpPort)
	return together(ctx, g.serveHTTP(fmt.Sprintf(":%d", g.httpPort), mux), func(ctx context.Context) error {
		return g.serveGRPC(ctx, grpc.NewServer(options...))
	})
}

func (g *grpcHealth) serveGRPC(ctx context.Context, srv *grpc.Server) error {
	addr := fmt.Sprintf(":%d", g.port)
	ln, err := g.env.Net.Listen("tcp", addr)
	if err != nil {
		return g.fatalf("Error while starting the listening service %v", err)
	}
	healthpb.RegisterHealthServer(srv, g)
	stop := context.AfterFunc(ctx, srv.Stop)
	defer stop()
	g.log.Printf("gRPC server starting to listen on %s", addr)
	if err := srv.Serve(ln); err != nil && !errors.Is(err, grpc.ErrServerStopped) && ctx.Err() == nil {
		return g.fatalf("Error while starting the gRPC server on the %s listen address %v", ln.Addr(), err)
	}
	return idle(ctx)
}

// Check is the one method of the health service a probe calls.
func (g *grpcHealth) Check(_ context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	g.log.Printf("Serving the Check request for health check, started at %v", g.started)
	if r.GetService() != g.service {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	answer := healthpb.HealthCheckResponse_SERVING
	expired := g.delay >= 0 && time.Since(g.started) >= time.Duration(g.delay)*time.Second
	if g.forced.Load() || expired {
		answer = healthpb.HealthCheckResponse_NOT_SERVING
	}
	return &healthpb.HealthCheckResponse{Status: answer}, nil
}
