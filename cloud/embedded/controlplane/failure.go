package controlplane

import (
	"fmt"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// failure is how etcd dies inside a process that outlives it. Where it cannot go on, say because the
// disk is full, it logs at level fatal or panic, and counts on not getting control back.
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
	f.once.Do(func() {
		f.err = fmt.Errorf("etcd: %s", entry.Message)
		for _, field := range fields {
			if err, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
				f.err = fmt.Errorf("etcd: %s: %w", entry.Message, err)
			}
		}
		close(f.done)
	})
	select {}
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
