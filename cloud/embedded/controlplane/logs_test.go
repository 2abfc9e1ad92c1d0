package controlplane

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// What Kubernetes, etcd and gRPC log can be had at level debug, each line whole, and is not there above it. A
// fatal log breaks the plane down and not the process.
func TestLogs(t *testing.T) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo} {
		var b bytes.Buffer
		f := newFailure(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: level})))
		captureLogs(f)
		klog.Errorf("pod %s is ill\nlevel=ERROR forged", "web")
		klog.InfoS("Synced", "pod", klog.KRef("default", "web\x1b[2J"))
		f.logger().Info("ready to serve", zap.String("address", "a\nb"))
		grpclog.Component("core").Warningf("dial %s: refused\nlevel=ERROR forged", "10.0.0.1")
		if f.failed() {
			t.Fatal("it broke down")
		}
		takeLine([]byte("F0102 15:04:05.678901   12345 file.go:67] no disk left\n"))
		if !f.failed() || f.err.Error() != "kubernetes: no disk left" {
			t.Errorf("%v: %v", level, f.err)
		}
		takeLine([]byte("nonsense"))
		takeLine(nil)
		got := b.String()
		if level > slog.LevelDebug {
			if got != "" {
				t.Errorf("%v: %s", level, got)
			}
			continue
		}
		for _, want := range []string{
			`msg=kubernetes severity=error source=logs_test.go:`, `text="pod web is ill\nlevel=ERROR forged"`, `text="\"Synced\" pod=\"default/web\x1b[2J\""`,
			`msg=etcd text="ready to serve {\"address\": \"a\\nb\"}"`, `severity=fatal source=file.go:67 text="no disk left"`,
			`msg=grpc text="[core] dial 10.0.0.1: refused\nlevel=ERROR forged`,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("there is no %s in\n%s", want, got)
			}
		}
		if strings.Count(got, "\n") != 5 || strings.Contains(got, "\x1b") {
			t.Errorf("lines are broken:\n%s", got)
		}
	}
}
