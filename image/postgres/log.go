package postgres

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// journal writes lines as PostgreSQL does.
type journal struct {
	mu  sync.Mutex
	out io.Writer
}

func (j *journal) line(pid int32, level, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(j.out, "%s [%d] %s:  %s\n", time.Now().UTC().Format("2006-01-02 15:04:05.000 UTC"), pid, level,
		fmt.Sprintf(format, args...))
}
