package kit

import (
	"context"
	"time"
)

// CPU is the processor time a container may use. Work in this process is real; what a program
// states here is a model of what the work would cost in production, so that limits throttle and
// queues build alike on every machine.
type CPU interface {
	// Use spends d of CPU time, and returns when a kernel with this container's quota would have
	// run it. It returns the context's error if that ends first; what was spent stays spent.
	Use(ctx context.Context, d time.Duration) error
	// Info describes the processors, as /proc/cpuinfo and the cgroup do.
	Info() CPUInfo
}

// Burner is an optional power of CPU. Interpreted commands use the machine's own processor, whatever
// they state; all of them together must leave enough of it to everybody else.
type Burner interface {
	// Burn tells that a command has kept a real core busy for d. It waits if commands have used too much. It
	// returns the error of ctx if that ends first.
	Burn(ctx context.Context, d time.Duration) error
}

// CPUInfo is the state of a container's CPU control group.
type CPUInfo struct {
	Cores     int           // of the machine
	Limit     float64       // cores; 0 is unlimited
	Used      time.Duration // since the container started
	Throttled time.Duration // time spent waiting for quota
}

// Memory is a container's memory ledger. Nothing is allocated by it: a program states how much it
// would hold in production, and is killed when that exceeds its limit.
type Memory interface {
	// Add changes what the container holds by n bytes, which may be negative. It fails, and the
	// container is killed, if that is more than its limit or the machine has.
	Add(n int64) error
	Info() MemoryInfo
}

// MemoryInfo is the state of a container's memory control group, in bytes.
type MemoryInfo struct {
	Total int64 // of the machine
	Limit int64 // 0 is unlimited
	Used  int64
}
