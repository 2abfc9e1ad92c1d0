package controlplane

import (
	"fmt"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// failure is how a control plane dies inside a process that outlives it. Where etcd cannot go on, say
// because the disk is full, it logs at level fatal or panic, and counts on not getting control back.
// So does kube-apiserver.
type failure struct {
	once sync.Once
	done chan struct{}
	err  error // set before done is closed
}

func newFailure() *failure { return &failure{done: make(chan struct{})} }

// logger returns a logger that is silent but for etcd's last words.
func (f *failure) logger() *zap.Logger {
	return zap.New(zapcore.NewNopCore(), zap.WithFatalHook(f), zap.WithPanicHook(f))
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
