package hotel

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/service"
)

// serve runs a gRPC service under its name in Consul until ctx ends.
func serve(ctx context.Context, s *service.Service, c config, cs *consul, port string, cost time.Duration,
	register func(*grpc.Server),
) error {
	srv := s.GRPCServer(service.Costs{"": cost})
	register(srv)
	var registered sync.WaitGroup
	defer registered.Wait()
	s.Log.Info(fmt.Sprintf("Starting server on port %s...", c[port]))
	return s.ServeGRPC(ctx, srv, c.address(port), func() {
		registered.Go(func() { cs.register(ctx, "srv-"+s.Name, c[port]) })
	})
}
