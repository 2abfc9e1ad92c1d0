package box

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// limits bound the agent's machine. Ordinary work stays far below each of them.
type limits struct {
	Memory    uint64 // bytes that a command may add to what the shell's process holds
	Total     int64  // bytes of all its processes together
	Disk      int64  // bytes of its files; each takes a block at least
	Processes int    // of the shell at a time
	Tools     int    // processes of kubectl and helm at a time
}

// standard are the limits of every machine.
var standard = limits{Memory: 512 << 20, Total: 768 << 20, Disk: 512 << 20, Processes: 512, Tools: 32}

// watchPeriod is how often a machine is looked at while a command runs.
const watchPeriod = 20 * time.Millisecond

// anonymous is the memory of a process that is its own, in bytes: heap, stacks, all. It is 0 for a process that
// has ended, and on systems that do not say.
func anonymous(pid int) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data))
	if len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(fields[1], 10, 64)
	shared, _ := strconv.ParseInt(fields[2], 10, 64)
	return max(resident-shared, 0) * int64(os.Getpagesize())
}
