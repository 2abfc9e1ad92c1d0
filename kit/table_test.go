package kit

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	table := NewTable(1)
	table.Most = 3
	env := func(name string) *Env { return &Env{Args: []string{name}} }
	wait := func(ctx context.Context, _ *Env) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	ready := make(chan struct{})
	handles := func(_ context.Context, env *Env) error {
		signals := env.Notify()
		close(ready)
		return Exit(int(<-signals))
	}
	var list []Process
	for range 2 {
		p, err := table.Fork(t.Context(), env("wait"), wait)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	handler, err := table.Fork(t.Context(), env("handles"), handles)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Fork(t.Context(), env("wait"), wait); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("one too many: %v", err)
	}
	if infos := table.List(); len(infos) != 3 || infos[0].PID != 1 || infos[2].Args[0] != "handles" {
		t.Errorf("listed %+v", infos)
	}
	<-ready
	for pid, want := range map[int]error{1: nil, 2: nil, 3: nil, 9: syscall.ESRCH} {
		if err := table.Signal(pid, syscall.SIGTERM); err != want {
			t.Errorf("signal %d: %v", pid, err)
		}
	}
	if code := list[1].Wait(); code != ExitSignal+int(syscall.SIGTERM) {
		t.Errorf("exit %d", code)
	}
	if code := handler.Wait(); code != int(syscall.SIGTERM) {
		t.Errorf("it handled signal %d", code)
	}
	// Process 1 is still there: it did not handle the signal.
	if infos := table.List(); len(infos) != 1 || !table.Stop(time.Minute) || list[0].Wait() != ExitSignal+int(syscall.SIGKILL) {
		t.Errorf("listed %+v", infos)
	}
	if !table.Stop(0) {
		t.Error("an empty table does not stop")
	}
}
