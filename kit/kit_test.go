package kit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRun(t *testing.T) {
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("container stops: %w", Killed{syscall.SIGTERM}))
	canceled, stop := context.WithCancel(t.Context())
	stop()
	tests := []struct {
		name   string
		ctx    context.Context
		result error
		code   int
		stderr string
	}{
		{"success", t.Context(), nil, 0, ""},
		{"code", t.Context(), Exit(3), 3, ""},
		{"code zero", t.Context(), Exit(0), 0, ""},
		{"wrapped code", t.Context(), fmt.Errorf("sh: %w", Exit(4)), 4, ""},
		{"error", t.Context(), errors.New("no such host"), 1, "no such host\n"},
		{"killed", ended, context.Canceled, ExitSignal + 15, ""},
		{"killed, the cause returned", ended, Killed{syscall.SIGTERM}, ExitSignal + 15, ""},
		{"told to stop and did", ended, nil, 0, ""},
		{"told to stop and failed at it", ended, errors.New("flush: disk full"), 1, "flush: disk full\n"},
		{"canceled by no signal", canceled, context.Canceled, 1, "context canceled\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stderr bytes.Buffer
			code := Run(tt.ctx, func(context.Context, *Env) error { return tt.result }, &Env{Stderr: &stderr})
			if code != tt.code || stderr.String() != tt.stderr {
				t.Errorf("exit %d, stderr %q; want %d, %q", code, stderr.String(), tt.code, tt.stderr)
			}
		})
	}
}

func TestPanicIsAnExitCode(t *testing.T) {
	var stderr bytes.Buffer
	code := Run(t.Context(), func(context.Context, *Env) error {
		var list []int
		return Exit(list[len(os.Args)])
	}, &Env{Stderr: &stderr})
	if code != ExitPanic || !bytes.Contains(stderr.Bytes(), []byte("\n\ngoroutine ")) || !bytes.HasPrefix(stderr.Bytes(), []byte("panic: runtime error: index out of range ")) {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
}

func TestExecErrorExitCode(t *testing.T) {
	for err, code := range map[error]int{
		ErrNotInPath: ExitNotFound, syscall.ENOENT: ExitNotFound,
		syscall.EACCES: ExitNotRunnable, syscall.ENOEXEC: ExitNotRunnable,
	} {
		if got := (&ExecError{"x", err}).ExitCode(); got != code {
			t.Errorf("%v: %d", err, got)
		}
	}
	if got := (&ExecError{"x", ErrNotInPath}).Error(); got != `exec: "x": executable file not found in $PATH` {
		t.Error(got)
	}
}

func TestIgnoreClosed(t *testing.T) {
	reset := fmt.Errorf("read: %w", syscall.ECONNRESET)
	for err, want := range map[error]error{
		nil: nil, http.ErrServerClosed: nil, fmt.Errorf("accept: %w", net.ErrClosed): nil, reset: reset,
	} {
		if got := IgnoreClosed(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func TestEnv(t *testing.T) {
	parent := &Env{Vars: map[string]string{"B": "2", "A": "1"}, Dir: "/srv"}
	parent.OnNotify(func() <-chan syscall.Signal { return make(chan syscall.Signal) })
	if diff := cmp.Diff([]string{"A=1", "B=2"}, parent.Environ()); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]string{"a": "/srv/a", "/a//b/": "/a/b", "../x": "/x", "": "/srv"} {
		if got := parent.Path(name); got != want {
			t.Errorf("Path(%q) = %q", name, got)
		}
	}
	child := parent.Child("sh", "-c", "true")
	child.Vars["A"] = "other"
	if parent.Getenv("A") != "1" || child.Getenv("B") != "2" {
		t.Error("a child shares its parent's variables")
	}
	if parent.Notify() == nil || child.Notify() != nil {
		t.Error("a child takes its parent's signals")
	}
}

// TestSinceIsUTC holds that a program that writes when it was started does not write the zone of this machine.
func TestSinceIsUTC(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	for _, started := range []time.Time{{}, time.Date(2026, 11, 18, 3, 15, 2, 0, zone)} {
		got := (&Env{Started: started}).Since()
		if got.Location() != time.UTC || !started.IsZero() && !got.Equal(started) {
			t.Errorf("started at %v, and it says %v", started, got)
		}
	}
}
