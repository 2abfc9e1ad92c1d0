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

// A program in a table inside another has an ID in both, and sees nobody outside. Users have no rights over each
// other's programs, and nobody over what cannot be ended.
func TestTableInside(t *testing.T) {
	node := NewTable(50)
	first := &Running{Info: ProcessInfo{Args: []string{"init"}}}
	node.Add(first, IDs{node: 1})
	space := node.Inside()
	begin := func(name string, uid int, parent *Running) *Running {
		p := &Running{Parent: parent}
		space.Begin(t.Context(), p, nil, &Env{Args: []string{name}, User: User{UID: uid}}, func(ctx context.Context, _ *Env) error {
			<-ctx.Done()
			return nil // It says nothing of having been killed.
		}, nil)
		return p
	}
	main := begin("main", 7, first)
	child := begin("child", 8, main)
	grandchild := begin("grandchild", 8, child)
	if inner := space.List(); len(inner) != 3 || inner[0].PID != 1 || inner[0].Parent != 0 || inner[1].Parent != 1 {
		t.Errorf("inside %+v", inner)
	}
	if outer := node.List(); len(outer) != 4 || outer[1].PID != 50 || outer[1].Parent != 1 || outer[2].Parent != 50 {
		t.Errorf("outside %+v", outer)
	}
	everybody := func(*Running) bool { return true }
	if family := space.Family(child, everybody); len(family) != 2 || family[1] != grandchild {
		t.Errorf("the family has %d", len(family))
	}
	for _, c := range []struct {
		in   *Table
		uid  int
		pid  int
		want error
	}{
		{space, 8, 1, syscall.EPERM},
		{space, 0, 50, syscall.ESRCH},
		{node, 0, 1, syscall.EPERM},
		{space, 8, 2, nil},
	} {
		if err := c.in.SignalAs(User{UID: c.uid}, c.pid, syscall.SIGKILL); err != c.want {
			t.Errorf("user %d signals %d: %v, want %v", c.uid, c.pid, err, c.want)
		}
	}
	if code := child.Wait(); code != ExitSignal+int(syscall.SIGKILL) {
		t.Errorf("exit %d", code)
	}
	if _, info := space.Get(grandchild.PID()); info.Parent != 1 {
		t.Errorf("the orphan is now %+v", info)
	}
	if err := space.SignalAs(User{}, -1, syscall.SIGTERM); err != nil || grandchild.Wait() != 0 {
		t.Errorf("everybody: %v", err)
	}
	if !space.Stop(time.Minute) {
		t.Error("the inner table does not stop")
	}
}
