package controlplane

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zapgrpc"
	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// detail is how much Kubernetes says for the log: what its components say on most clusters. More would
// have requests in it, and what is in them.
const detail = 2

// lastPlane is told what Kubernetes' own code logs, and when it gives up. The log is the process', and so
// are planes: there is one at a time.
var lastPlane atomic.Pointer[failure]

// captureLogs keeps Kubernetes' own logs off the terminal, because they tell of the lab and not of
// the cluster, and makes a fatal one break f down instead of ending the process.
func captureLogs(f *failure) {
	first := lastPlane.Swap(f) == nil
	var logger klog.Logger // drops what has keys and values
	switch {
	case f.chatty():
		var verbosity klog.Level
		_ = verbosity.Set(strconv.Itoa(detail)) // It is the process', in spite of its looks.
		logger = textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(writerFunc(takeLine)),
			textlogger.Verbosity(detail)))
	case !first:
		return
	}
	// A logger of one's own, even one that drops everything, keeps the stacks of a fatal log away, too.
	klog.SetLoggerWithOptions(logger, klog.WriteKlogBuffer(takeLine))
	klog.OsExit = func(int) { select {} } // takeLine has told.
	bridgeGRPC()
}

// bridgeGRPC passes on what gRPC logs: etcd's, and that of the applications, which run in this process. By itself it
// would write its errors to the terminal. Its logger cannot be changed once it is in use, hence the once.
var bridgeGRPC = sync.OnceFunc(func() {
	listening := zap.LevelEnablerFunc(func(zapcore.Level) bool { return lastPlane.Load().chatty() })
	core := lineCore(listening, func(line string) { lastPlane.Load().log.Debug("grpc", "text", line) })
	grpclog.SetLoggerV2(zapgrpc.NewLogger(zap.New(core)))
})

// lineCore is a zap logger's, which hands each line to take.
func lineCore(enabled zapcore.LevelEnabler, take func(line string)) zapcore.Core {
	encoder := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "message", ConsoleSeparator: " "})
	lines := writerFunc(func(b []byte) { take(strings.TrimSpace(string(b))) })
	return zapcore.NewCore(encoder, zapcore.AddSync(lines), enabled)
}

// writerFunc is a function that takes lines.
type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}

// severities are what klog's lines begin with.
var severities = map[byte]string{'I': "info", 'W': "warning", 'E': "error", 'F': "fatal"}

// takeLine passes on what Kubernetes logs.
func takeLine(b []byte) {
	f := lastPlane.Load()
	if !f.chatty() && (len(b) == 0 || b[0] != 'F') {
		return
	}
	// "F0102 15:04:05.678901   12345 file.go:67] message"
	header, message, ok := strings.Cut(string(b), "] ")
	fields := strings.Fields(header)
	if !ok || len(fields) == 0 {
		return
	}
	message = strings.TrimSpace(message)
	// Whatever Kubernetes finds wrong may be what the agent is to find, or was done by it: it is no
	// error of the lab.
	f.log.Debug("kubernetes", "severity", severities[b[0]], "source", fields[len(fields)-1], "text", message)
	if b[0] == 'F' {
		f.fail(fmt.Errorf("kubernetes: %s", message))
	}
}

// chatty reports whether anybody listens to Kubernetes and etcd.
func (f *failure) chatty() bool { return f.log.Enabled(context.Background(), slog.LevelDebug) }

// logger returns a logger for etcd, which tells f of its last words.
func (f *failure) logger() *zap.Logger {
	core := zapcore.NewNopCore()
	if f.chatty() {
		core = lineCore(zap.InfoLevel, func(line string) { f.log.Debug("etcd", "text", line) })
	}
	return zap.New(core, zap.WithFatalHook(f), zap.WithPanicHook(f))
}
