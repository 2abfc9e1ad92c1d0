package social

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/kit"
)

const (
	servicePort = "9090"
	callTimeout = 5 * time.Second // of one service's call to another
)

// A part is a service: what it needs, and what it serves.
type part struct {
	name  string
	cost  time.Duration
	start func(ctx context.Context, s *service.Service, srv *grpc.Server) error
}

// main runs a part as a program.
func (p part) main(ctx context.Context, env *kit.Env) error {
	s, err := service.New(ctx, env, service.Config{Name: p.name})
	if err != nil {
		return err
	}
	defer s.Close()
	srv := s.GRPCServer(service.Costs{"": p.cost})
	if err := p.start(ctx, s, srv); err != nil {
		return s.Fatal(ctx, "Failed to start "+p.name, err)
	}
	s.Log.Info("Starting the "+p.name+" server...", slog.String("port", servicePort))
	return s.ServeGRPC(ctx, srv, ":"+servicePort, nil)
}

// dial connects to another service by its DNS name.
func dial(s *service.Service, name string) (*grpc.ClientConn, error) {
	return s.DialGRPC("passthrough:///"+name+":"+servicePort, callTimeout)
}

// dialAll connects to several services, in order.
func dialAll(s *service.Service, names ...string) ([]*grpc.ClientConn, error) {
	conns := make([]*grpc.ClientConn, len(names))
	for i, n := range names {
		var err error
		if conns[i], err = dial(s, n); err != nil {
			return nil, err
		}
	}
	return conns, nil
}

// mongoURI is where the MongoDB server of a service is.
func mongoURI(host string) string { return "mongodb://" + host + ":27017" }
