package rabbitmq

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// journal writes lines as RabbitMQ does.
type journal struct {
	mu  sync.Mutex
	out io.Writer
}

// line writes a line of a process, which is a number in Erlang.
func (j *journal) line(level string, process uint64, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(j.out, "%s [%s] <0.%d.0> %s\n", time.Now().UTC().Format("2006-01-02 15:04:05.000000-07:00"), level,
		process, fmt.Sprintf(format, args...))
}

// node is the number of the process that speaks for the node itself.
const node = 254

func (j *journal) info(format string, args ...any) { j.line("info", node, format, args...) }
func (j *journal) warn(format string, args ...any) { j.line("warning", node, format, args...) }
func (j *journal) fail(format string, args ...any) { j.line("error", node, format, args...) }
