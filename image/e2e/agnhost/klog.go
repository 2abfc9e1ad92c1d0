package agnhost

import (
	"fmt"
	"io"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// klogger writes lines the way Kubernetes' own logging library does. That library has one global
// destination, so programs that share a process cannot use it.
type klogger struct {
	w         io.Writer
	pid       int
	verbosity int
}

func (l *klogger) infof(format string, args ...any) { l.line('I', fmt.Sprintf(format, args...)) }

func (l *klogger) errorf(format string, args ...any) { l.line('E', fmt.Sprintf(format, args...)) }

// errorS writes a message with the error as structured logging does.
func (l *klogger) errorS(err error, msg string) {
	l.line('E', fmt.Sprintf("%q err=%q", msg, err))
}

// fatalf writes why the program cannot go on and returns the result it ends with.
func (l *klogger) fatalf(format string, args ...any) error {
	l.line('F', fmt.Sprintf(format, args...))
	return kit.Exit(255)
}

// debugf writes if the flag -v asks for at least the given level.
func (l *klogger) debugf(level int, format string, args ...any) {
	if l.verbosity >= level {
		l.line('I', fmt.Sprintf(format, args...))
	}
}

// line writes: severity, month and day, time, process, the caller's caller, message.
func (l *klogger) line(severity byte, msg string) {
	_, file, line, _ := runtime.Caller(2)
	fmt.Fprintf(l.w, "%c%s %7d %s:%d] %s\n",
		severity, time.Now().Format("0102 15:04:05.000000"), l.pid, path.Base(file), line, strings.TrimSuffix(msg, "\n"))
}
