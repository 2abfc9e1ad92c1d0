package pause

import (
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStopsWhenTold(t *testing.T) {
	tests := []struct {
		signals []syscall.Signal
		code    int
		message string
	}{
		{[]syscall.Signal{syscall.SIGTERM}, 0, "Shutting down, got signal: Terminated\n"},
		{[]syscall.Signal{syscall.SIGINT}, 0, "Shutting down, got signal: Interrupt\n"},
		// The kernel delivers to a container's first process only what it handles.
		{[]syscall.Signal{syscall.SIGHUP, syscall.SIGTERM}, 0, "Shutting down, got signal: Terminated\n"},
		{[]syscall.Signal{syscall.SIGKILL}, kit.ExitSignal + 9, ""},
	}
	for _, tt := range tests {
		r := kittest.New(t).Machine("pod", "10.244.0.2").Start(Main, "/pause")
		r.AwaitHandler()
		for _, sig := range tt.signals {
			r.Signal(sig)
		}
		if code := r.Wait(); code != tt.code || r.Stderr.String() != tt.message {
			t.Errorf("%v: exit %d, %q", tt.signals, code, r.Stderr)
		}
	}
}

func TestTags(t *testing.T) {
	r := kit.NewRegistry(Image())
	for ref, ok := range map[string]bool{"registry.k8s.io/pause:3.10.2": true, "registry.k8s.io/pause:3.9": true, "registry.k8s.io/pause:9": false} {
		if _, _, err := r.Resolve(ref); (err == nil) != ok {
			t.Errorf("%s: %v", ref, err)
		}
	}
}
