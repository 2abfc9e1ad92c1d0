package cell

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	// maxCells is how many there are at a time, and maxOfOne how many of them one container has: it cannot
	// keep others from theirs. More have to wait, but not for ever: one that waits may be what another
	// one waits for.
	maxCells     = 16
	maxOfOne     = 6
	slotPatience = 10 * time.Second
)

// slots are the places of all cells.
var slots = make(chan struct{}, maxCells)

// shares are the places of containers that have or want some.
var shares = struct {
	sync.Mutex
	of map[kit.Memory]*share
}{of: map[kit.Memory]*share{}}

// share is what a container may have.
type share struct {
	taken chan struct{}
	users int // that have a place or want one
}

// slot waits for a place of a container, which is known by its memory.
func slot(ctx context.Context, m kit.Memory) (free func(), err error) {
	s, leave := shareOf(m)
	t := time.NewTimer(slotPatience)
	defer t.Stop()
	take := func(places chan struct{}) error {
		select {
		case places <- struct{}{}:
			return nil
		case <-t.C:
			return os.NewSyscallError("fork", syscall.EAGAIN)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := take(s.taken); err != nil {
		leave()
		return nil, err
	}
	if err := take(slots); err != nil {
		<-s.taken
		leave()
		return nil, err
	}
	return sync.OnceFunc(func() {
		<-slots
		<-s.taken
		leave()
	}), nil
}

// shareOf returns a container's share, which is forgotten when all have left it.
func shareOf(m kit.Memory) (s *share, leave func()) {
	shares.Lock()
	defer shares.Unlock()
	s = shares.of[m]
	if s == nil {
		s = &share{taken: make(chan struct{}, maxOfOne)}
		shares.of[m] = s
	}
	s.users++
	return s, func() {
		shares.Lock()
		defer shares.Unlock()
		if s.users--; s.users == 0 {
			delete(shares.of, m)
		}
	}
}
