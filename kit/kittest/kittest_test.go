package kittest

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/kit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wait ends when it is told to.
func wait(ctx context.Context, env *kit.Env) error {
	fmt.Fprintln(env.Stdout, "waiting")
	<-ctx.Done()
	return ctx.Err()
}

func TestSignals(t *testing.T) {
	m := New(t).Machine("m", "10.244.0.2")
	r := m.Start(wait, "wait")
	r.Await("waiting")
	r.Signal(syscall.SIGTERM)
	if code := r.Wait(); code != kit.ExitSignal+int(syscall.SIGTERM) {
		t.Errorf("exit %d", code)
	}
	r = m.Start(func(ctx context.Context, env *kit.Env) error {
		return kit.Exit(int(<-env.Notify()))
	}, "handler")
	r.AwaitHandler()
	r.Signal(syscall.SIGHUP)
	if code := r.Wait(); code != int(syscall.SIGHUP) {
		t.Errorf("exit %d", code)
	}
}

func TestNames(t *testing.T) {
	w := New(t)
	a := w.Machine("a", "10.244.0.2")
	w.Name("alias", a.Addr)
	net := a.Env().Net
	if got, err := net.LookupHost(t.Context(), "alias"); err != nil || got[0] != "10.244.0.2" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := net.DialContext(t.Context(), "tcp", "none:80"); err == nil || err.Error() != "dial tcp: lookup none on 10.96.0.10:53: no such host" {
		t.Errorf("%v", err)
	}
}

func TestProcesses(t *testing.T) {
	m := New(t).Machine("m", "10.244.0.2")
	m.Install(kit.Image{
		Programs: map[string]kit.Program{"/bin/true": func(context.Context, *kit.Env) error { return nil }},
		Files:    map[string]string{"/etc/motd": "hello", "/empty/": ""},
	})
	env := m.Env("true")
	p, err := env.Procs.Start(t.Context(), env)
	if err != nil || p.Wait() != 0 || m.Read("/etc/motd") != "hello" {
		t.Errorf("%v", err)
	}
	if _, err := env.Procs.Start(t.Context(), m.Env("false")); err == nil || err.Error() != `exec: "false": executable file not found in $PATH` {
		t.Errorf("%v", err)
	}
	if err := env.Procs.Signal(7, syscall.SIGTERM); err != syscall.ESRCH {
		t.Errorf("%v", err)
	}
}

func TestVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(t).Machine("m", "10.244.0.2")
		r := m.Start(func(ctx context.Context, env *kit.Env) error {
			return env.CPU.Use(ctx, 3*time.Second)
		}, "burn")
		if code := r.Wait(); code != 0 || m.Resources.Info().Used != 3*time.Second {
			t.Errorf("exit %d, used %v", code, m.Resources.Info().Used)
		}
	})
}
