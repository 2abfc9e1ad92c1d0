package tool

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// The limits of each process. Ordinary work stays far below: kubectl takes 40 MB, and 150 MB to
// show every object of a large cluster.
const (
	// softMemory is where Go's collector begins to work hard. A command is ended before.
	softMemory = 768 << 20
	// maxStack is how much one goroutine may nest: a parser that recurses without end dies soon.
	maxStack = 64 << 20
	// maxFile is the largest file a process may write, in bytes.
	maxFile  = 256 << 20
	maxFiles = 1024 // open ones
)

// lastWordsLevel has Go's runtime say why it crashes and nothing else.
const lastWordsLevel = "none"

// limit bounds what the process may take and leave behind.
func limit() error {
	limits := map[int]uint64{unix.RLIMIT_FSIZE: maxFile, unix.RLIMIT_NOFILE: maxFiles, unix.RLIMIT_CORE: 0}
	if MaxMemory > 0 {
		limits[unix.RLIMIT_DATA] = MaxMemory
	}
	for resource, most := range limits {
		var l unix.Rlimit
		if err := unix.Getrlimit(resource, &l); err != nil {
			return fmt.Errorf("limit: %w", err)
		}
		l.Cur, l.Max = min(l.Cur, most), min(l.Max, most)
		if err := unix.Setrlimit(resource, &l); err != nil {
			return fmt.Errorf("limit: %w", err)
		}
	}
	signal.Ignore(syscall.SIGXFSZ) // Such a write fails instead.
	debug.SetMemoryLimit(softMemory)
	debug.SetMaxStack(maxStack)
	debug.SetTraceback(lastWordsLevel)
	// If the machine runs out of memory, the lab should be the last to go. Where there is no such
	// file, nothing can be done.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(1000)), 0)
	return nil
}
