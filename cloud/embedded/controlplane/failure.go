package controlplane

import (
	"fmt"
	"log/slog"
	"sync"

	"go.uber.org/zap/zapcore"

	"github.com/aiopslab/aiopslab/internal/logs"
)

// failure is how a control plane dies inside a process that outlives it. Where etcd cannot go on, say
// because the disk is full, it logs at level fatal or panic, and counts on not getting control back.
// So does kube-apiserver.
type failure struct {
	once sync.Once
	done chan struct{}
	err  error // set before done is closed
	log  *slog.Logger
}

func newFailure(log *slog.Logger) *failure {
	return &failure{done: make(chan struct{}), log: logs.Or(log)}
}

// OnWrite implements zapcore.CheckWriteHook. It keeps the goroutine: unwinding it would run code
// that relies on what just failed.
func (f *failure) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	err := fmt.Errorf("etcd: %s", entry.Message)
	for _, field := range fields {
		if cause, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
			err = fmt.Errorf("etcd: %s: %w", entry.Message, cause)
		}
	}
	f.fail(err)
	select {}
}

// fail makes it happen. Only the first error counts.
func (f *failure) fail(err error) {
	f.once.Do(func() {
		f.err = err
		close(f.done)
	})
}

// failed reports whether it happened.
func (f *failure) failed() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}
