package social

import (
	"context"
	"hash/fnv"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/aiopslab/aiopslab/app/service"
	"github.com/aiopslab/aiopslab/app/social/socialpb"
)

var uniqueIDService = part{
	"unique-id-service", 80 * time.Microsecond,
	func(_ context.Context, s *service.Service, srv *grpc.Server) error {
		h := fnv.New32a()
		h.Write([]byte(s.Env.Hostname))
		socialpb.RegisterUniqueIdServiceServer(srv, &uniqueID{machine: int64(h.Sum32() & 0xfff)})
		return nil
	},
}

// uniqueID makes IDs of 41 bits of milliseconds, 12 of the machine and 10 of a counter.
type uniqueID struct {
	socialpb.UnimplementedUniqueIdServiceServer
	machine int64

	mu      sync.Mutex
	last    int64
	counter int64
}

func (u *uniqueID) ComposeUniqueId(context.Context, *socialpb.UniqueIdRequest) (*socialpb.UniqueId, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := max(time.Now().UnixMilli(), u.last)
	if now > u.last {
		u.last, u.counter = now, 0
	} else if u.counter++; u.counter > 0x3ff {
		u.last++ // The millisecond is full; borrow from the next.
		u.counter = 0
	}
	return &socialpb.UniqueId{Id: (u.last&(1<<41-1))<<22 | u.machine<<10 | u.counter}, nil
}
