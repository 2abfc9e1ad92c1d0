package cell

import (
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

const (
	watchPeriod = 10 * time.Millisecond
	// freeMemory is what the process takes for itself, and a container does not pay for.
	freeMemory = 24 << 20
	tick       = 10 * time.Millisecond // in which Linux counts the processor time of a process
)

// watch states what the process takes until it ends or takes too much, which it reports. A process
// stands still while its container waits for the processor. On systems that do not tell what a
// process takes, it states nothing.
func (c *Cell) watch(ctx context.Context, env *kit.Env) (over bool) {
	t := time.NewTicker(watchPeriod)
	defer t.Stop()
	var held int
	var spent time.Duration
	for {
		select {
		case <-ctx.Done():
			return false
		case <-t.C:
		}
		now := int(max(0, anonymous(c.cmd.Process.Pid)-freeMemory))
		if err := c.holder.Add(now - held); err != nil {
			c.kill()
			return true
		}
		held = now
		if used := processorTime(c.cmd.Process.Pid); used > spent {
			c.charge(ctx, env, used-spent)
			spent = used
		}
	}
}

// charge spends processor time.
func (c *Cell) charge(ctx context.Context, env *kit.Env, d time.Duration) {
	if env.CPU == nil {
		return
	}
	_ = c.cmd.Process.Signal(syscall.SIGSTOP)
	defer c.cmd.Process.Signal(syscall.SIGCONT)
	if b, ok := env.CPU.(kit.Burner); ok && b.Burn(ctx, d) != nil {
		return
	}
	_ = env.CPU.Use(ctx, d)
}

// anonymous is the memory of a process that is its own, in bytes: heap, stacks, all. It is 0 for a process
// that has ended, and on systems that do not say.
func anonymous(pid int) int64 {
	fields := procFile(pid, "statm")
	if len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(fields[1], 10, 64)
	shared, _ := strconv.ParseInt(fields[2], 10, 64)
	return max(resident-shared, 0) * int64(os.Getpagesize())
}

// processorTime is what a process has used.
func processorTime(pid int) time.Duration {
	fields := procFile(pid, "stat")
	if len(fields) < 15 { // The second one is the name, which has no space in it.
		return 0
	}
	user, _ := strconv.ParseInt(fields[13], 10, 64)
	system, _ := strconv.ParseInt(fields[14], 10, 64)
	return time.Duration(user+system) * tick
}

func procFile(pid int, name string) []string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + name)
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}
