package cli

import (
	"context"
	"io/fs"
	"math"
	"os"
	"runtime"
	"time"

	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/server"
)

// What this machine has room for. A number is chosen when a command begins, and others may take the memory meanwhile:
// so it is looked at again before each environment is set up, which waits while there is too little. Where environments
// starve, their runs end as infra, which is a verdict that says nothing.

const (
	// sessionMemory is what the environment of a session takes, with an application and an agent at work. There are
	// few that take [usualMemory] at a time.
	sessionMemory = 700 << 20
	// sessionsForProcessor is how many sessions a processor serves whose agents mostly think.
	sessionsForProcessor = server.DefaultMaxSessions / 2
	// roomInterval is how often it is looked whether there is room now.
	roomInterval = time.Second / 4
)

// processors is how many processors there are for this process: those of the machine, or what the quota of its control
// group leaves of them.
func processors() int { return runtime.GOMAXPROCS(0) }

// usualWorkers is how many runs this machine has processors and memory for, if so many environments more are prepared.
// Root is its files.
func usualWorkers(root fs.FS, prepared int) int {
	return max(1, min(processors(), roomFor(root, usualMemory)-prepared))
}

// usualSessions is how many sessions of a server this machine has processors and memory for.
func usualSessions(root fs.FS) int {
	return max(1, min(sessionsForProcessor*processors(), roomFor(root, sessionMemory)))
}

// roomFor is how many environments there is memory for, of which each takes so much.
func roomFor(root fs.FS, each int64) int {
	memory, known := availableMemory(root)
	if !known {
		return math.MaxInt
	}
	return int(memory / each)
}

// roomForMore reports whether there is memory for one environment more, beside so many that are being set up: these
// have taken a part of what they need, and will take the rest.
func roomForMore(root fs.FS, growing int) bool {
	memory, known := availableMemory(root)
	return !known || memory >= usualMemory+int64(growing)*usualMemory/2
}

// untilRoom waits until something is so. Held is told once if it is not so at once.
func untilRoom(ctx context.Context, is func() bool, held func()) error {
	if is() {
		return nil
	}
	held()
	tick := time.NewTicker(roomInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if is() {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tryRoom has the tries of a campaign wait for room. Held is told whenever they begin to.
func tryRoom(held func()) func(under []*local.Try) bool {
	holds := false
	return func(under []*local.Try) bool {
		growing := 0
		for _, t := range under {
			if !t.Settled() {
				growing++
			}
		}
		room := roomForMore(os.DirFS("/"), growing)
		if !room && !holds {
			held()
		}
		holds = !room
		return room
	}
}
