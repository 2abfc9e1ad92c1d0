package cri

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/kit"
)

func init() {
	programs["daemon"] = func(ctx context.Context, env *kit.Env) error {
		l, err := env.Net.Listen("tcp", ":80")
		if err != nil {
			return err
		}
		child, err := env.Procs.Start(ctx, env.Child("wait"))
		if err != nil {
			return err
		}
		if err := env.Memory.Add(5 << 20); err != nil {
			return err
		}
		io.WriteString(env.Stdout, "serving\n")
		context.AfterFunc(ctx, func() { l.Close() })
		for {
			c, err := l.Accept()
			if err != nil {
				child.Wait()
				io.WriteString(env.Stdout, "last words\n")
				return kit.IgnoreClosed(err)
			}
			io.WriteString(c, "hello")
			c.Close()
		}
	}
}

// get returns what the port 80 of a pod answers.
func (l *lab) get(pod string) (string, error) {
	s, err := l.sandbox(pod)
	if err != nil {
		return "", err
	}
	c, err := l.outside.DialContext(l.t.Context(), "tcp", net.JoinHostPort(s.host.Addr().String(), "80"))
	if err != nil {
		return "", err
	}
	defer c.Close()
	b, err := io.ReadAll(c)
	return string(b), err
}

func (l *lab) await(what string, ok func() bool) {
	l.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			l.t.Fatalf("%s does not come true", what)
		}
	}
}

func (l *lab) answers(pod string) {
	l.t.Helper()
	l.await("an answer", func() bool { s, err := l.get(pod); return err == nil && s == "hello" })
}

func (l *lab) memory() int64 { return l.cfg.Machine.MemoryUsed() }

func TestHang(t *testing.T) {
	l := newLab(t)
	pod := l.pod("a")
	id := l.run(pod, []string{"daemon", "--port=80"}, nil)
	l.answers(pod)
	l.await("6 MB of memory", func() bool { return l.memory() == 6<<20 })
	before := l.status(id)
	shell := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { shell <- l.Run(ctx, id, []string{"wait"}, Streams{}) }()
	processes := func() string {
		c, _ := l.Runtime.container(id)
		var list []string
		for _, p := range c.procs.List() {
			list = append(list, strings.Join(p.Args, " "))
		}
		return strings.Join(list, ", ")
	}
	l.await("a shell", func() bool { return processes() == "daemon --port=80, wait, wait" })

	l.Disturb("uid-a", Effect{Hang: true})
	if _, err := l.get(pod); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the port of a hanging container: %v", err)
	}
	// To the kubelet it is the same container, and it still runs.
	if s := l.status(id); s.State != runtimeapi.ContainerState_CONTAINER_RUNNING || s.StartedAt != before.StartedAt {
		t.Errorf("%+v", s)
	}
	if got := l.logs(id); got != "serving\n" {
		t.Errorf("log %q", got)
	}
	if l.memory() != 0 {
		t.Errorf("%d bytes are held", l.memory())
	}
	// The program is gone with what it had started; who looks around is not.
	if got := processes(); got != "daemon --port=80, wait" {
		t.Errorf("processes %q", got)
	}
	select {
	case err := <-shell:
		t.Errorf("the shell has ended: %v", err)
	default:
	}

	// Another effect does not end the first.
	l.Disturb("uid-a", Effect{Hang: true}, Effect{Memory: 1 << 20})
	if _, err := l.get(pod); err == nil || l.memory() != 1<<20 {
		t.Errorf("%v, %d bytes", err, l.memory())
	}

	l.Disturb("uid-a")
	l.answers(pod)
	l.await("6 MB of memory", func() bool { return l.memory() == 6<<20 })
	if s := l.status(id); s.State != runtimeapi.ContainerState_CONTAINER_RUNNING || s.Id != before.Id {
		t.Errorf("%+v", s)
	}
	if got := l.logs(id); got != "serving\nserving\n" {
		t.Errorf("log %q", got)
	}
	if got := processes(); !strings.HasPrefix(got, "daemon --port=80, ") {
		t.Errorf("processes %q", got)
	}
}

func TestHangingContainersEndAsOthersDo(t *testing.T) {
	l := newLab(t)
	pod := l.pod("a")
	l.Disturb("uid-a", Effect{Hang: true})
	for _, tc := range []struct {
		grace int64
		code  int32
	}{{30, 143}, {0, 137}} {
		id := l.run(pod, []string{"daemon"}, nil)
		if _, err := l.get(pod); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("one that is started: %v", err)
		}
		l.StopContainer(t.Context(), id, tc.grace)
		if s := l.ended(id); s.ExitCode != tc.code || s.Reason != "Error" {
			t.Errorf("exit code %d, %s", s.ExitCode, s.Reason)
		}
	}
	l.Disturb("uid-a") // There is nothing left to restore.
}

// A program that does not listen when it is killed has no say in what comes after it.
func TestHangTakesEverythingFromADeafProgram(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	programs["deaf"] = func(_ context.Context, env *kit.Env) error {
		env.Memory.Add(5 << 20)
		io.WriteString(env.Stdout, "one\n")
		<-release
		io.WriteString(env.Stdout, "two\n")
		env.Memory.Add(-5 << 20)
		return nil
	}
	defer delete(programs, "deaf")
	l := newLab(t)
	id := l.run(l.pod("a"), []string{"deaf"}, nil)
	l.await("output", func() bool { return l.logs(id) == "one\n" })
	l.Disturb("uid-a", Effect{Hang: true})
	if l.memory() != 0 {
		t.Errorf("%d bytes are held", l.memory())
	}
	release <- struct{}{}
	l.Kill(id)
	if s := l.ended(id); s.ExitCode != 137 || l.logs(id) != "one\n" || l.memory() != 0 {
		t.Errorf("exit code %d, log %q, %d bytes", s.ExitCode, l.logs(id), l.memory())
	}
}

func TestKill(t *testing.T) {
	l := newLab(t)
	pod := l.pod("a")
	side := l.run(pod, []string{"wait"}, func(c *runtimeapi.ContainerConfig) { c.Metadata.Name = "side" })
	old := l.run(pod, []string{"wait"}, nil)
	c, _ := l.Runtime.container(old)
	c.adapting.Lock()
	c.began = c.began.Add(-time.Hour)
	c.adapting.Unlock()

	l.Disturb("uid-a", Effect{Kill: true, Containers: []string{"c"}})
	if s := l.status(old); s.State != runtimeapi.ContainerState_CONTAINER_EXITED || s.ExitCode != 137 || s.Reason != "Error" {
		t.Errorf("%+v", s)
	}
	again := l.run(pod, []string{"echo", "starting"}, nil)
	l.ended(again)
	next := l.run(pod, []string{"daemon"}, nil)
	if s := l.ended(next); s.ExitCode != 137 || s.Reason != "Error" || !strings.HasPrefix(l.logs(next), "serving\n") {
		t.Errorf("%+v, %q", s, l.logs(next))
	}
	if s := l.status(side); s.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("%+v", s)
	}
	saved := l.run(pod, []string{"wait"}, nil)
	l.Disturb("uid-a")
	c, _ = l.Runtime.container(saved)
	c.adapting.Lock()
	defer c.adapting.Unlock()
	if c.doom != nil {
		t.Error("it is still going to be killed")
	}
}

func TestMemoryIsHeldAgainstTheLimit(t *testing.T) {
	l := newLab(t)
	pod := l.pod("a")
	limited := func(c *runtimeapi.ContainerConfig) { c.Linux.Resources.MemoryLimitInBytes = 10 << 20 }
	id := l.run(pod, []string{"wait"}, limited)
	l.Disturb("uid-a", Effect{Memory: 4 << 20})
	if l.memory() != 5<<20 {
		t.Errorf("%d bytes are held", l.memory())
	}
	l.Disturb("uid-a", Effect{Memory: 4 << 20}, Effect{Memory: 1 << 20})
	if l.memory() != 6<<20 {
		t.Errorf("%d bytes are held", l.memory())
	}
	l.Disturb("uid-a")
	if l.memory() != 1<<20 {
		t.Errorf("%d bytes are held", l.memory())
	}
	l.Disturb("uid-a", Effect{Memory: 20 << 20})
	if s := l.ended(id); s.Reason != "OOMKilled" || s.ExitCode != 137 {
		t.Errorf("%+v", s)
	}
	// It is too much for the next one too.
	if s := l.ended(l.run(pod, []string{"wait"}, limited)); s.Reason != "OOMKilled" {
		t.Errorf("%+v", s)
	}
	if l.memory() != 0 {
		t.Errorf("%d bytes are held", l.memory())
	}
}

// An image that needs more than the limit is killed when it starts.
func TestImageOverTheLimit(t *testing.T) {
	l := newLab(t)
	id := l.run(l.pod("a"), []string{"wait"}, func(c *runtimeapi.ContainerConfig) { c.Linux.Resources.MemoryLimitInBytes = 1 << 10 })
	if s := l.ended(id); s.Reason != "OOMKilled" {
		t.Errorf("%+v", s)
	}
}

func TestStressUsesTheContainersShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMachine(4, 1<<30)
		free := newGroup(m, limits{}, nil)
		ctx, relax := context.WithCancel(t.Context())
		free.stress(ctx, 1.5)
		time.Sleep(10 * time.Second)
		relax()
		synctest.Wait()
		used := free.stats.used
		if used < 14*time.Second || used > 15100*time.Millisecond {
			t.Errorf("1.5 cores for 10 s are %v", used)
		}
		time.Sleep(time.Second)
		if free.stats.used != used {
			t.Error("it goes on")
		}

		// With half a core to share, work that took 10 ms waits for its turn.
		limited := newGroup(m, limits{quota: 50 * time.Millisecond}, nil)
		ctx, relax = context.WithCancel(t.Context())
		defer relax()
		limited.stress(ctx, 2)
		time.Sleep(time.Second)
		start := time.Now()
		for range 10 {
			limited.Use(t.Context(), 10*time.Millisecond)
		}
		if d := time.Since(start); d < 300*time.Millisecond {
			t.Errorf("100 ms of work took %v beside stress", d)
		}
		limited.mu.Lock()
		s := limited.stats
		limited.mu.Unlock()
		if s.throttledPeriods == 0 || s.used < 500*time.Millisecond || s.used > time.Second {
			t.Errorf("%+v", s)
		}
	})
}

func TestStressFollowsItsEffect(t *testing.T) {
	l := newLab(t)
	id := l.run(l.pod("a"), []string{"wait"}, nil)
	c, _ := l.Runtime.container(id)
	used := func() time.Duration { return groupCPU{c.group}.Info().Used }
	l.Disturb("uid-a", Effect{CPU: 2})
	l.await("CPU time", func() bool { return used() > 20*time.Millisecond })
	l.Disturb("uid-a", Effect{CPU: 2}) // The same again changes nothing.
	if c.busy != 2 {
		t.Errorf("%v cores are busy", c.busy)
	}
	l.Disturb("uid-a")
	if c.busy != 0 {
		t.Errorf("%v cores are busy", c.busy)
	}
	l.Disturb("uid-a", Effect{CPU: 100}) // No more than the machine has.
}

func TestCallsFail(t *testing.T) {
	l := newLab(t)
	pod := l.pod("a")
	id := l.run(pod, []string{"daemon"}, nil)
	l.answers(pod)
	fails := func(call string, errno syscall.Errno) {
		l.Disturb("uid-a", Effect{Calls: func(name string) syscall.Errno {
			if name == call {
				return errno
			}
			return 0
		}})
	}
	c, _ := l.Runtime.container(id)
	env := c.environment([]string{"sh"})
	fails("connect", syscall.ENOMEM)
	if _, err := env.Net.DialContext(t.Context(), "tcp", "10.0.0.99:1"); err == nil || err.Error() != "dial tcp 10.0.0.99:1: connect: cannot allocate memory" {
		t.Error(err)
	}
	l.answers(pod) // Accepting is another call.
	fails("openat", syscall.EMFILE)
	if _, err := env.ReadFile("/etc/hostname"); err == nil || err.Error() != "open /etc/hostname: too many open files" {
		t.Error(err)
	}
	fails("mmap", syscall.ENOMEM)
	if err := env.Memory.Add(1); err == nil || err.Error() != "mmap: cannot allocate memory" {
		t.Error(err)
	}
	if err := env.Memory.Add(-1); err != nil {
		t.Error(err)
	}
	if s := l.status(id); s.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("%+v", s)
	}
	other := l.container(pod, []string{"wait"}, nil)
	if err := l.StartContainer(t.Context(), other); err == nil || !strings.Contains(err.Error(), "cannot allocate memory") {
		t.Errorf("a program without memory: %v", err)
	}
	l.Disturb("uid-a")
	if _, err := env.ReadFile("/etc/hostname"); err != nil {
		t.Error(err)
	}
	if err := env.Memory.Add(1); err != nil {
		t.Error(err)
	}
}

func TestFilesFail(t *testing.T) {
	l := newLab(t)
	pod := l.pod("a")
	if err := l.env().WriteFile("/vol/file", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	id := l.run(pod, []string{"wait"}, func(c *runtimeapi.ContainerConfig) {
		c.Mounts = []*runtimeapi.Mount{{HostPath: "/vol", ContainerPath: "/data"}}
	})
	var asked atomic.Int32
	l.Disturb("uid-a", Effect{Files: func(method string, paths ...string) (time.Duration, syscall.Errno) {
		asked.Add(1)
		if method == "read" && paths[0] == "/data/file" {
			return time.Millisecond, syscall.EIO
		}
		return 0, 0
	}})
	_, stderr, err := l.ExecSync(t.Context(), id, []string{"cat", "/data/file"}, 0)
	if err == nil || string(stderr) != "read /data/file: input/output error\n" {
		t.Errorf("%q, %v", stderr, err)
	}
	if asked.Load() == 0 {
		t.Error("nobody was asked")
	}
	if b, err := l.env().ReadFile("/vol/file"); err != nil || string(b) != "x" {
		t.Errorf("the node itself: %q, %v", b, err)
	}
	l.Disturb("uid-a")
	if out, _, err := l.ExecSync(t.Context(), id, []string{"cat", "/data/file"}, 0); err != nil || string(out) != "x" {
		t.Errorf("%q, %v", out, err)
	}
}

// An operation that takes long ends with its container.
func TestSlowFilesDoNotOutliveTheContainer(t *testing.T) {
	l := newLab(t)
	pod := l.pod("a")
	id := l.run(pod, []string{"wait"}, nil)
	entered := make(chan struct{}, 1)
	l.Disturb("uid-a", Effect{Files: func(method string, paths ...string) (time.Duration, syscall.Errno) {
		if method == "create" {
			entered <- struct{}{}
			return time.Hour, 0
		}
		return 0, 0
	}})
	done := make(chan error, 1)
	go func() { done <- l.Run(t.Context(), id, []string{"write", "/file", "x"}, Streams{}) }()
	<-entered
	l.Kill(id)
	<-done
	l.ended(id)
}

// Nor does it outlive what made it slow, even if that keeps a container from starting.
func TestSlowFilesDoNotOutliveTheirEffect(t *testing.T) {
	l := newLab(t)
	id := l.container(l.pod("a"), []string{"daemon"}, nil)
	entered := make(chan struct{}, 1)
	l.Disturb("uid-a", Effect{Files: func(string, ...string) (time.Duration, syscall.Errno) {
		select {
		case entered <- struct{}{}:
		default:
		}
		return time.Hour, 0
	}})
	done := make(chan error, 1)
	go func() { done <- l.StartContainer(t.Context(), id) }()
	<-entered
	l.Disturb("uid-a")
	if err := <-done; err != nil {
		t.Error(err)
	}
	l.await("output", func() bool { return l.logs(id) != "" })
}
