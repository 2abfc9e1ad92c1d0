package session

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// processTimes are for how long the threads of this process have run, and waited to, as the kernel counts it. Both are
// 0 if it does not.
func processTimes() (ran, waited time.Duration) {
	files, err := filepath.Glob("/proc/self/task/*/schedstat")
	if err != nil {
		return 0, 0
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // The thread has ended.
		}
		var r, w time.Duration
		if _, err := fmt.Sscan(string(text), &r, &w); err == nil {
			ran, waited = ran+r, waited+w
		}
	}
	return ran, waited
}
