package inside

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell"
)

// box is an image with a shell.
func box() kit.Image {
	i := kit.Image{Names: []string{"example/box"}, Programs: map[string]kit.Program{
		"/bin/geo": says("geo"),
		"/bin/who": func(_ context.Context, env *kit.Env) error {
			_, err := fmt.Fprintln(env.Stdout, env.PID > 1, env.Args)
			return err
		},
	}}
	for name, p := range shell.Tools() {
		i.Programs["/bin/"+name] = p
	}
	return i
}

func TestShell(t *testing.T) {
	for _, tt := range []struct {
		name, input string
		want        string
		code        int
	}{
		// A command that does not read leaves the input to its shell.
		{"input is shared", "true\nwho\necho read\nexit 4\n", "true [who]\nread\n", 4},
		{"a loop keeps its input", "printf '1\\n2\\n3\\n' | while read x; do true; echo $x; done", "1\n2\n3\n", 0},
		{"a command reads what is left", "cat\nnot a command", "not a command\n", 0},
		{"exit codes", "geo 1; echo $?", "geo [geo 1]\n3\n", 0},
		{"a job", "sleep 100 & kill $!; wait $!; echo $?", "143\n", 0},
		{"not found", "nosuch; echo $?", "sh: nosuch: not found\n127\n", 0},
		{"a script", "printf '#!/bin/sh\\necho $0 $1\\n' >/tmp/s; chmod +x /tmp/s; /tmp/s a", "/tmp/s a\n", 0},
		{"a script of a script", "printf '#!/bin/who -x\\n' >/tmp/s; chmod +x /tmp/s; /tmp/s a", "true [/bin/who -x /tmp/s a]\n", 0},
		{"a program that was replaced", "rm /bin/geo; printf '#!/bin/sh\\necho mine\\n' >/bin/geo; chmod +x /bin/geo; geo", "mine\n", 0},
		{"scripts that go round", "printf '#!/tmp/s\\n' >/tmp/s; chmod +x /tmp/s; /tmp/s; echo $?", "sh: /tmp/s: not found\n127\n", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := box()
			env, out := container(t, i, "sh")
			env.Stdin = strings.NewReader(tt.input + "\n")
			code := Main(t.Context(), env, kit.NewRegistry(i), "example/box")
			if code != tt.code || out.String() != tt.want {
				t.Errorf("exit %d, %q", code, out)
			}
		})
	}
}

func TestProcesses(t *testing.T) {
	i := box()
	env, _ := container(t, i, "sh")
	ps := newProcesses(env, &i)
	if err := env.MkdirAll("/proc/2", 0o755); err != nil { // a process of the container
		t.Fatal(err)
	}
	begun := make(chan bool)
	child := env.Child("sleep", "100")
	p, err := ps.Fork(t.Context(), child, func(ctx context.Context, _ *kit.Env) error {
		begun <- true
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	if p.PID() != 3 || child.PID != 3 {
		t.Errorf("its ID is %d, and it sees %d", p.PID(), child.PID)
	}
	if !slices.ContainsFunc(ps.List(), func(q kit.ProcessInfo) bool { return q.PID == 3 && q.Parent == 1 && q.Args[0] == "sleep" }) {
		t.Errorf("%v", ps.List())
	}
	if err := ps.Signal(99, syscall.SIGTERM); err != syscall.ESRCH {
		t.Errorf("a signal to nobody: %v", err)
	}
	if err := ps.Signal(3, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if code := p.Wait(); code != kit.ExitSignal+int(syscall.SIGTERM) {
		t.Errorf("exit %d", code)
	}
	if _, err := ps.Start(t.Context(), env.Child()); err == nil {
		t.Error("no arguments are no error")
	}
}

// TestForkBomb starts more programs than there is place for.
func TestForkBomb(t *testing.T) {
	i := box()
	env, _ := container(t, i, "sh")
	ps := newProcesses(env, &i)
	ctx, end := context.WithCancel(t.Context())
	var running []kit.Process
	for range maxProcesses {
		p, err := ps.Fork(ctx, env.Child("bomb"), func(ctx context.Context, _ *kit.Env) error {
			<-ctx.Done()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, p)
	}
	if _, err := ps.Start(ctx, env.Child("true")); err == nil || err.Error() != "fork: resource temporarily unavailable" {
		t.Errorf("one more: %v", err)
	}
	end()
	for _, p := range running {
		p.Wait()
	}
	if p, err := ps.Start(t.Context(), env.Child("true")); err != nil || p.Wait() != 0 {
		t.Errorf("afterwards: %v", err)
	}
}
