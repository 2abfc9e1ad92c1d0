package cri

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/kit"
)

func init() {
	programs["ps"] = func(_ context.Context, env *kit.Env) error {
		for _, p := range env.Procs.List() {
			fmt.Fprintln(env.Stdout, p.PID, p.Parent, strings.Join(p.Args, " "))
		}
		return nil
	}
	programs["kill"] = func(_ context.Context, env *kit.Env) error {
		pid, err := strconv.Atoi(env.Args[1])
		if err != nil {
			return err
		}
		return env.Procs.Signal(pid, syscall.SIGTERM)
	}
}

// sharing returns an edit that puts a container's programs where others can see them.
func sharing(mode runtimeapi.NamespaceMode, target string, user int64) func(*runtimeapi.ContainerConfig) {
	return func(cfg *runtimeapi.ContainerConfig) {
		sc := cfg.Linux.SecurityContext
		sc.NamespaceOptions = &runtimeapi.NamespaceOption{Pid: mode, TargetId: target}
		if user != 0 {
			sc.RunAsUser = &runtimeapi.Int64Value{Value: user}
		}
	}
}

func (l *lab) do(id string, argv ...string) string {
	l.t.Helper()
	out, errOut, err := l.ExecSync(l.t.Context(), id, argv, 0)
	if err != nil {
		return strings.TrimSpace(string(errOut))
	}
	return strings.TrimSpace(string(out))
}

// A container beside another one sees and reaches its processes, and ends with it.
func TestTargetNamespace(t *testing.T) {
	l := newLab(t)
	pod := l.pod("p")
	target := l.run(pod, []string{"wait", "here"}, func(cfg *runtimeapi.ContainerConfig) {
		cfg.Envs = []*runtimeapi.KeyValue{{Key: "COLOUR", Value: []byte("green")}}
		cfg.Mounts = []*runtimeapi.Mount{{ContainerPath: "/etc/settings", HostPath: "/vol"}}
	})
	l.do(target, "write", "/etc/settings/a", "of the target")
	if got, want := l.do(target, "ps"), "1 0 wait here\n3 0 ps"; got != want {
		t.Errorf("in the target: %q, want %q", got, want)
	}
	debug := l.run(pod, []string{"wait"}, sharing(runtimeapi.NamespaceMode_TARGET, target, 0))
	stranger := l.run(pod, []string{"wait"}, sharing(runtimeapi.NamespaceMode_TARGET, target, 1000))
	for _, tt := range []struct {
		in   string
		argv []string
		want string
	}{
		{debug, []string{"ps"}, "1 0 wait here\n4 0 wait\n5 0 wait\n6 0 ps"},
		{target, []string{"cat", "/proc/4/cmdline"}, "wait\x00"},
		{debug, []string{"cat", "/proc/1/cmdline"}, "wait\x00here\x00"},
		{debug, []string{"cat", "/proc/1/root/etc/settings/a"}, "of the target"},
		{debug, []string{"cat", "/proc/1/root/proc/4/root/etc/settings/a"}, "open /proc/1/root/proc/4/root/etc/settings/a: no such file or directory"},
		{debug, []string{"cat", "/etc/settings/a"}, "open /etc/settings/a: no such file or directory"},
		{debug, []string{"write", "/proc/1/x", ""}, "open /proc/1/x: no such file or directory"},
		{stranger, []string{"cat", "/proc/1/root/etc/settings/a"}, "open /proc/1/root/etc/settings/a: permission denied"},
		{stranger, []string{"cat", "/proc/1/environ"}, "open /proc/1/environ: permission denied"},
		{stranger, []string{"kill", "1"}, "operation not permitted"},
		{debug, []string{"kill", "99"}, "no such process"},
	} {
		if got := l.do(tt.in, tt.argv...); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.argv, got, tt.want)
		}
	}
	if got := l.do(debug, "cat", "/proc/1/environ"); !strings.Contains(got, "COLOUR=green\x00") {
		t.Errorf("environment of the target: %q", got)
	}
	l.do(debug, "kill", "1")
	if s := l.ended(target); s.ExitCode != 128+15 {
		t.Errorf("the target ended with %d", s.ExitCode)
	}
	for _, id := range []string{debug, stranger} {
		if s := l.ended(id); int(s.ExitCode) != exitKilled {
			t.Errorf("a container outlived the one whose processes it shared: %d", s.ExitCode)
		}
	}
	late := l.container(pod, []string{"wait"}, sharing(runtimeapi.NamespaceMode_TARGET, target, 0))
	if err := l.StartContainer(t.Context(), late); err == nil || !strings.Contains(err.Error(), "ns/pid: no such file or directory") {
		t.Errorf("a container joined the dead: %v", err)
	}
}

// What is done to a pod is not done to who looks at it from beside, and does not show in its processes.
func TestTargetUnderEffect(t *testing.T) {
	l := newLab(t)
	pod := l.pod("p")
	target := l.run(pod, []string{"serve"}, nil)
	debug := l.run(pod, []string{"wait"}, sharing(runtimeapi.NamespaceMode_TARGET, target, 0))
	before := l.do(debug, "ps")
	l.Disturb("uid-p", Effect{Hang: true})
	after := l.do(debug, "ps")
	if want := strings.Replace(before, "3 0 ps", "4 0 ps", 1); after != want {
		t.Errorf("processes while the target hangs: %q, want %q", after, want)
	}
	c, err := l.Runtime.container(debug)
	if err != nil || c.hanging {
		t.Errorf("the container that looks on hangs too (%v)", err)
	}
	l.Disturb("uid-p", Effect{Hang: true, Files: func(string, ...string) (time.Duration, syscall.Errno) { return 0, syscall.EIO }})
	if got := l.do(debug, "cat", "/proc/1/root/etc/passwd"); got != "open /proc/1/root/etc/passwd: input/output error" {
		t.Errorf("a file of the target, from beside: %q", got)
	}
	if got := l.do(debug, "cat", "/etc/passwd"); !strings.HasPrefix(got, "root:") {
		t.Errorf("a file of its own: %q", got)
	}
}

func TestPodProcessNamespace(t *testing.T) {
	l := newLab(t)
	pod := l.pod("p")
	a := l.run(pod, []string{"wait", "a"}, sharing(runtimeapi.NamespaceMode_POD, "", 0))
	b := l.run(pod, []string{"wait", "b"}, sharing(runtimeapi.NamespaceMode_POD, "", 0))
	if got, want := l.do(b, "ps"), "1 0 /pause\n2 0 wait a\n3 0 wait b\n4 0 ps"; got != want {
		t.Errorf("processes: %q, want %q", got, want)
	}
	l.do(b, "kill", "2")
	l.ended(a)
	if l.status(b).State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Error("a container ended with another one of its pod")
	}
}

func TestNodeProcessNamespace(t *testing.T) {
	l := newLab(t)
	victim := l.run(l.pod("a"), []string{"wait", "victim"}, nil)
	node := l.run(l.pod("b"), []string{"wait", "node"}, sharing(runtimeapi.NamespaceMode_NODE, "", 0))
	pids := map[string]string{}
	for line := range strings.Lines(l.do(node, "ps")) {
		f := strings.Fields(line)
		pids[strings.Join(f[2:], " ")] = f[0]
	}
	for _, want := range []string{"/sbin/init", "/usr/bin/containerd", "wait victim", "wait node"} {
		if pids[want] == "" {
			t.Errorf("the node shows no %q: %v", want, pids)
		}
	}
	if got := l.do(victim, "ps"); got != "1 0 wait victim\n2 0 ps" {
		t.Errorf("what a container sees: %q", got)
	}
	if got := l.do(node, "kill", "1"); got != "operation not permitted" {
		t.Errorf("kill of the node's first process: %q", got)
	}
	if got := l.do(node, "cat", "/proc/"+pids["wait victim"]+"/root/etc/hostname"); got != "a" {
		t.Errorf("the victim's files: %q", got)
	}
	l.do(node, "kill", pids["wait victim"])
	l.ended(victim)
	state, err := l.Save()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(state.Containers, func(c ContainerState) bool { return c.ID == victim && c.ExitCode == 128+15 }) {
		t.Errorf("the victim's end: %v", state.Containers)
	}
}
