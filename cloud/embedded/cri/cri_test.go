package cri

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
	"github.com/aiopslab/aiopslab/kit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// programs are what the test image can run, by name.
var programs = map[string]kit.Program{
	"wait": func(ctx context.Context, _ *kit.Env) error { <-ctx.Done(); return ctx.Err() },
	"exit": func(_ context.Context, env *kit.Env) error {
		fmt.Fprintln(env.Stderr, "leaving")
		var code int
		fmt.Sscan(env.Args[1], &code)
		return kit.Exit(code)
	},
	"panic": func(context.Context, *kit.Env) error { panic("out of ideas") },
	"stubborn": func(ctx context.Context, env *kit.Env) error {
		signals := env.Notify()
		fmt.Fprintln(env.Stdout, "listening")
		for {
			select {
			case <-signals:
				fmt.Fprintln(env.Stdout, "no")
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	},
	"hog": func(ctx context.Context, env *kit.Env) error {
		for {
			if err := env.Memory.Add(1 << 20); err != nil {
				<-ctx.Done()
				return ctx.Err()
			}
		}
	},
	"write": func(_ context.Context, env *kit.Env) error {
		return env.WriteFile(env.Args[1], []byte(env.Args[2]), 0o644)
	},
	"cat": func(_ context.Context, env *kit.Env) error {
		if len(env.Args) == 1 {
			_, err := io.Copy(env.Stdout, env.Stdin)
			return err
		}
		b, err := env.ReadFile(env.Args[1])
		if err != nil {
			return err
		}
		_, err = env.Stdout.Write(b)
		return err
	},
	"echo": func(_ context.Context, env *kit.Env) error {
		_, err := fmt.Fprintln(env.Stdout, strings.Join(env.Args[1:], " "))
		return err
	},
	"needs": func(ctx context.Context, env *kit.Env) error { // Something that another program provides.
		if _, err := env.ReadFile("/tmp/needed"); err != nil {
			return errors.Join(err, env.WriteFile("/tmp/tried", nil, 0o644))
		}
		if err := env.WriteFile("/tmp/up", nil, 0o644); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	},
	"serve": func(ctx context.Context, env *kit.Env) error {
		l, err := env.Net.Listen("tcp", ":80")
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, func() { l.Close() })
		for {
			c, err := l.Accept()
			if err != nil {
				return kit.IgnoreClosed(err)
			}
			io.WriteString(c, env.Hostname)
			c.Close()
		}
	},
}

// lab is a runtime with one image, "test", and a network host to look at it from.
type lab struct {
	t *testing.T
	*Runtime
	network *vnet.Network
	outside *vnet.Stack
	changed chan string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	image := kit.Image{Names: []string{"test"}, Tags: "latest|v1", Entrypoint: []string{"wait"}, Programs: map[string]kit.Program{}, Vars: map[string]string{"FROM": "image"}, Memory: 1 << 20}
	for name, p := range programs {
		image.Programs["/bin/"+name] = p
	}
	l := &lab{t: t, changed: make(chan string, 100)}
	l.network = vnet.New(vnet.Config{Subnets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	add := func(addr string) *vnet.Host {
		h, err := l.network.AddHost(netip.MustParseAddr(addr))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	l.outside = add("10.0.0.99").NewStack()
	tree := vfs.NewTree(vfs.Options{})
	env := &kit.Env{FS: tree.Root(), Dir: "/"}
	for _, d := range []string{"/run", "/var/lib/containerd", "/vol"} {
		if err := env.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l.Runtime = New(Config{
		NodeName: "node", Images: NewImages(kit.NewRegistry(image)), Machine: NewMachine(4, 1<<30), Network: l.network, Host: add("10.0.0.1"),
		Pods: netip.MustParsePrefix("10.1.0.0/24"), Disk: tree, Files: vfs.NewNamespace(tree), Dir: t.TempDir(), Now: time.Now,
		OnChange: func(uid string) {
			select {
			case l.changed <- uid:
			default:
			}
		},
	})
	t.Cleanup(l.Shutdown)
	if _, err := l.PullImage(t.Context(), &runtimeapi.ImageSpec{Image: "test"}, nil, nil); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) pod(name string) string {
	l.t.Helper()
	id, err := l.RunPodSandbox(l.t.Context(), &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name}, Hostname: name,
		DnsConfig: &runtimeapi.DNSConfig{Servers: []string{"10.0.0.53"}, Searches: []string{"svc.test"}, Options: []string{"ndots:2"}},
	}, "")
	if err != nil {
		l.t.Fatal(err)
	}
	return id
}

// container creates a container; edit may change its configuration.
func (l *lab) container(pod string, argv []string, edit func(*runtimeapi.ContainerConfig)) string {
	l.t.Helper()
	cfg := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Image: &runtimeapi.ImageSpec{Image: "test"}, Command: argv,
		Linux: &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{}, SecurityContext: &runtimeapi.LinuxContainerSecurityContext{}},
	}
	if edit != nil {
		edit(cfg)
	}
	id, err := l.CreateContainer(l.t.Context(), pod, cfg, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return id
}

func (l *lab) run(pod string, argv []string, edit func(*runtimeapi.ContainerConfig)) string {
	l.t.Helper()
	id := l.container(pod, argv, edit)
	if err := l.StartContainer(l.t.Context(), id); err != nil {
		l.t.Fatal(err)
	}
	return id
}

// ended waits for a container and returns its last status.
func (l *lab) ended(id string) *runtimeapi.ContainerStatus {
	l.t.Helper()
	c, err := l.Runtime.container(id)
	if err != nil {
		l.t.Fatal(err)
	}
	<-c.done
	return l.status(id)
}

func (l *lab) status(id string) *runtimeapi.ContainerStatus {
	l.t.Helper()
	res, err := l.ContainerStatus(l.t.Context(), id, false)
	if err != nil {
		l.t.Fatal(err)
	}
	return res.Status
}

func (l *lab) logs(id string) string {
	l.t.Helper()
	log, err := l.LogOf(id)
	if err != nil {
		l.t.Fatal(err)
	}
	var b bytes.Buffer
	if err := log.Read(l.t.Context(), &b, LogOptions{Tail: -1}); err != nil {
		l.t.Fatal(err)
	}
	return b.String()
}

func TestHowContainersEnd(t *testing.T) {
	l := newLab(t)
	pod := l.pod("a")
	for _, tc := range []struct {
		name   string
		argv   []string
		stop   func(id string)
		code   int32
		reason string
		logs   string // must be contained
	}{
		{name: "success", argv: []string{"echo", "hi"}, reason: "Completed", logs: "hi\n"},
		{name: "failure", argv: []string{"exit", "3"}, code: 3, reason: "Error", logs: "leaving\n"},
		{name: "panic", argv: []string{"panic"}, code: 2, reason: "Error", logs: "panic: out of ideas"},
		{name: "terminated", argv: []string{"wait"}, stop: func(id string) { l.StopContainer(t.Context(), id, 30) }, code: 143, reason: "Error"},
		{name: "killed", argv: []string{"wait"}, stop: func(id string) { l.StopContainer(t.Context(), id, 0) }, code: 137, reason: "Error"},
		{name: "deaf to SIGTERM", argv: []string{"stubborn"}, stop: func(id string) {
			for l.logs(id) == "" {
				time.Sleep(time.Millisecond)
			}
			l.StopContainer(t.Context(), id, 1)
		}, code: 137, reason: "Error", logs: "no\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id := l.run(pod, tc.argv, nil)
			if tc.stop != nil {
				tc.stop(id)
			}
			s := l.ended(id)
			if s.ExitCode != tc.code || s.Reason != tc.reason || s.State != runtimeapi.ContainerState_CONTAINER_EXITED || s.FinishedAt == 0 {
				t.Errorf("exit code %d, reason %s, state %s", s.ExitCode, s.Reason, s.State)
			}
			if got := l.logs(id); !strings.Contains(got, tc.logs) {
				t.Errorf("log %q does not have %q", got, tc.logs)
			}
			if uid := <-l.changed; uid != "uid-a" {
				t.Errorf("was told of pod %s", uid)
			}
		})
	}
}

func TestWrongCommand(t *testing.T) {
	l := newLab(t)
	for argv0, want := range map[string]string{
		"nosuch":      `exec: "nosuch": executable file not found in $PATH`,
		"/bin/nosuch": `exec: "/bin/nosuch": stat /bin/nosuch: no such file or directory`,
		"/etc/passwd": `exec: "/etc/passwd": permission denied`,
	} {
		id := l.container(l.pod("p"), []string{argv0}, nil)
		err := l.StartContainer(t.Context(), id)
		if err == nil || !strings.HasSuffix(err.Error(), "error during container init: "+want) {
			t.Errorf("start: %v, want it to end in %q", err, want)
		}
		if s := l.status(id); s.ExitCode != 128 || s.Reason != "StartError" || s.StartedAt != 0 || !strings.Contains(s.Message, want) {
			t.Errorf("status %d %s %q, started %d", s.ExitCode, s.Reason, s.Message, s.StartedAt)
		}
	}
}

// The kubelet tells a container's latest run by when it was created.
func TestCreationTimesDiffer(t *testing.T) {
	l := newLab(t)
	now := time.Now()
	l.cfg.Now = func() time.Time { return now }
	pod := l.pod("p")
	first, second := l.status(l.container(pod, nil, nil)), l.status(l.container(pod, nil, nil))
	if first.CreatedAt >= second.CreatedAt {
		t.Errorf("created at %d and %d", first.CreatedAt, second.CreatedAt)
	}
}

func TestOutOfMemory(t *testing.T) {
	l := newLab(t)
	id := l.run(l.pod("a"), []string{"hog"}, func(c *runtimeapi.ContainerConfig) { c.Linux.Resources.MemoryLimitInBytes = 64 << 20 })
	if s := l.ended(id); s.ExitCode != 137 || s.Reason != "OOMKilled" {
		t.Errorf("exit code %d, reason %s", s.ExitCode, s.Reason)
	}
	if used := l.cfg.Machine.MemoryUsed(); used != 0 {
		t.Errorf("%d bytes are still held", used)
	}
}

func TestExec(t *testing.T) {
	l := newLab(t)
	id := l.run(l.pod("a"), []string{"wait"}, func(c *runtimeapi.ContainerConfig) {
		c.Envs = []*runtimeapi.KeyValue{{Key: "OWN", Value: []byte("1")}}
	})
	out, _, err := l.ExecSync(t.Context(), id, []string{"echo", "a", "b"}, 0)
	if err != nil || string(out) != "a b\n" {
		t.Errorf("exec: %q, %v", out, err)
	}
	_, errOut, err := l.ExecSync(t.Context(), id, []string{"exit", "7"}, 0)
	if e, ok := errors.AsType[utilexec.CodeExitError](err); !ok || e.Code != 7 || string(errOut) != "leaving\n" {
		t.Errorf("exec that fails: %q, %v", errOut, err)
	}
	if _, _, err := l.ExecSync(t.Context(), id, []string{"wait"}, 20*time.Millisecond); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("exec that hangs: %v", err)
	}
	if _, _, err := l.ExecSync(t.Context(), id, []string{"nosuch"}, 0); err == nil || !strings.Contains(err.Error(), `executable file not found in $PATH`) {
		t.Errorf("exec of nothing: %v", err)
	}
	var b bytes.Buffer
	if err := l.Run(t.Context(), id, []string{"cat"}, Streams{Stdin: strings.NewReader("through"), Stdout: &b}); err != nil || b.String() != "through" {
		t.Errorf("exec with input: %q, %v", b.String(), err)
	}
	l.StopContainer(t.Context(), id, 0)
	if _, _, err := l.ExecSync(t.Context(), id, []string{"echo"}, 0); err == nil {
		t.Error("exec in a dead container")
	}
}

func TestFilesVolumesAndUsers(t *testing.T) {
	l := newLab(t)
	pod := l.pod("a")
	user := func(c *runtimeapi.ContainerConfig) {
		c.Linux.SecurityContext.RunAsUser = &runtimeapi.Int64Value{Value: 1000}
		c.Linux.SecurityContext.SupplementalGroups = []int64{7}
	}
	mounted := func(c *runtimeapi.ContainerConfig) {
		c.Mounts = []*runtimeapi.Mount{{ContainerPath: "/data", HostPath: "/vol"}, {ContainerPath: "/ro", HostPath: "/vol", Readonly: true}}
	}
	one := l.run(pod, []string{"wait"}, mounted)
	two := l.run(pod, []string{"wait"}, mounted)
	must := func(id string, argv ...string) string {
		t.Helper()
		out, errOut, err := l.ExecSync(t.Context(), id, argv, 0)
		if err != nil {
			t.Fatalf("%v: %v %s", argv, err, errOut)
		}
		return string(out)
	}
	must(one, "write", "/data/f", "shared")
	must(one, "write", "/tmp/f", "own")
	if got := must(two, "cat", "/ro/f"); got != "shared" {
		t.Errorf("the other container reads %q", got)
	}
	if _, _, err := l.ExecSync(t.Context(), two, []string{"cat", "/tmp/f"}, 0); err == nil {
		t.Error("containers share their root")
	}
	if _, _, err := l.ExecSync(t.Context(), two, []string{"write", "/ro/g", ""}, 0); err == nil {
		t.Error("a read-only mount can be written")
	}
	plain := l.run(pod, []string{"wait"}, user)
	if _, errOut, err := l.ExecSync(t.Context(), plain, []string{"write", "/etc/passwd", ""}, 0); err == nil || !strings.Contains(string(errOut), "permission denied") {
		t.Errorf("an ordinary user writes root's file: %s, %v", errOut, err)
	}
	if u := l.status(plain).User.Linux; u.Uid != 1000 || !slices.Contains(u.SupplementalGroups, 7) {
		t.Errorf("user %v", u)
	}
	if got := must(one, "cat", "/etc/resolv.conf"); got != "search svc.test\nnameserver 10.0.0.53\noptions ndots:2\n" {
		t.Errorf("resolv.conf %q", got)
	}
	if got := must(one, "cat", "/sys/fs/cgroup/cpu.max"); got != "max 100000\n" {
		t.Errorf("cpu.max %q", got)
	}
	ro := l.run(pod, []string{"wait"}, func(c *runtimeapi.ContainerConfig) { c.Linux.SecurityContext.ReadonlyRootfs = true })
	if _, errOut, err := l.ExecSync(t.Context(), ro, []string{"write", "/tmp/f", ""}, 0); err == nil || !strings.Contains(string(errOut), "read-only file system") {
		t.Errorf("write to a read-only root: %s, %v", errOut, err)
	}
}

func TestNetworkOfAPod(t *testing.T) {
	l := newLab(t)
	pod := l.pod("web")
	st, err := l.PodSandboxStatus(t.Context(), pod, false)
	if err != nil {
		t.Fatal(err)
	}
	id := l.run(pod, []string{"serve"}, nil)
	ip := st.Status.Network.Ip
	get := func() (string, error) {
		c, err := l.outside.DialContext(t.Context(), "tcp", net.JoinHostPort(ip, "80"))
		if err != nil {
			return "", err
		}
		defer c.Close()
		b, err := io.ReadAll(c)
		return string(b), err
	}
	for !l.Listening(pod, 80) {
		time.Sleep(time.Millisecond)
	}
	if got, err := get(); err != nil || got != "web" {
		t.Errorf("got %q, %v", got, err)
	}
	c, err := l.Dial(t.Context(), pod, 80)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); err != nil || string(b) != "web" {
		t.Errorf("port-forward: %q, %v", b, err)
	}
	c.Close()
	l.StopContainer(t.Context(), id, 0)
	if _, err := get(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial a dead container: %v", err)
	}
	if err := l.RemovePodSandbox(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if l.network.Host(netip.MustParseAddr(ip)) != nil {
		t.Error("the pod's address is still on the network")
	}
}

func TestImagesThatDoNotExist(t *testing.T) {
	l := newLab(t)
	for ref, want := range map[string]string{
		"test:nosuch":         `failed to resolve reference "docker.io/library/test:nosuch": docker.io/library/test:nosuch: not found`,
		"nosuch":              `failed to resolve reference "docker.io/library/nosuch:latest": pull access denied, repository does not exist or may require authorization`,
		"registry.local/x:v1": `dial tcp: lookup registry.local: no such host`,
		"UPPER":               `failed to parse image reference "UPPER"`,
	} {
		_, err := l.PullImage(t.Context(), &runtimeapi.ImageSpec{Image: ref}, nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("pull %s: %v, want %q", ref, err, want)
		}
	}
}

func TestInterruptLeavesContainersAlone(t *testing.T) {
	l := newLab(t)
	id := l.run(l.pod("a"), []string{"stubborn"}, nil)
	says := func(text string) {
		for !strings.Contains(l.logs(id), text) {
			time.Sleep(time.Millisecond)
		}
	}
	says("listening") // Or the signal comes too soon to be heard.
	done := make(chan error, 1)
	go func() { done <- l.StopContainer(context.Background(), id, 300) }()
	says("no")
	l.Interrupt()
	if err := <-done; status.Code(err) != codes.Canceled {
		t.Errorf("interrupted stop: %v", err)
	}
	if s := l.status(id); s.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("state %s", s.State)
	}
	l.Resume()
	if _, _, err := l.ExecSync(t.Context(), id, []string{"echo"}, 0); err != nil {
		t.Errorf("exec after resuming: %v", err)
	}
}

// restore ends the runtime, and makes another of a state and its disk.
func (l *lab) restore(st State, disk *vfs.Tree) *lab {
	l.t.Helper()
	l.Shutdown()
	cfg := l.cfg
	cfg.Disk, cfg.Files = disk, vfs.NewNamespace(disk)
	r := &lab{t: l.t, Runtime: New(cfg), network: l.network, outside: l.outside}
	l.t.Cleanup(r.Shutdown)
	if err := errors.Join(r.Restore(st), r.RestoreContainers(st)); err != nil {
		l.t.Fatal(err)
	}
	return r
}

func TestSaveAndRestore(t *testing.T) {
	l := newLab(t)
	pod := l.pod("a")
	running := l.run(pod, []string{"serve"}, nil)
	if _, _, err := l.ExecSync(t.Context(), running, []string{"write", "/tmp/f", "before"}, 0); err != nil {
		t.Fatal(err)
	}
	dead := l.run(pod, []string{"exit", "3"}, nil)
	l.ended(dead)
	before := l.status(running)
	addr, _ := l.PodSandboxStatus(t.Context(), pod, false)
	st, err := l.Save()
	if err != nil {
		t.Fatal(err)
	}
	disk := l.cfg.Disk.Clone(nil)
	l.ExecSync(t.Context(), running, []string{"write", "/tmp/f", "after"}, 0)
	r := l.restore(st, disk)
	s := r.status(running)
	if s.Id != before.Id || s.StartedAt != before.StartedAt || s.CreatedAt != before.CreatedAt || s.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("restored as %v, was %v", s, before)
	}
	if s := r.status(dead); s.ExitCode != 3 || s.Reason != "Error" {
		t.Errorf("the dead container came back as %d %s", s.ExitCode, s.Reason)
	}
	if out, _, err := r.ExecSync(t.Context(), running, []string{"cat", "/tmp/f"}, 0); err != nil || string(out) != "before" {
		t.Errorf("its file holds %q, %v", out, err)
	}
	now, err := r.PodSandboxStatus(t.Context(), pod, false)
	if err != nil || now.Status.Network.Ip != addr.Status.Network.Ip {
		t.Errorf("its address is %v, %v", now, err)
	}
}

// TestFilesAreAsOldAsTheirContainer holds that nothing in a container tells when it was restored, and that what came with
// the image is as old as that, in every container.
func TestFilesAreAsOldAsTheirContainer(t *testing.T) {
	l := newLab(t)
	id := l.run(l.pod("a"), []string{"serve"}, nil)
	st, err := l.Save()
	if err != nil {
		t.Fatal(err)
	}
	disk, by := l.cfg.Disk.Clone(nil), -72*time.Hour
	c := &st.Containers[0]
	c.Created, c.Started = c.Created.Add(by), c.Started.Add(by)
	disk.Age(c.Dir(), by)
	r := l.restore(st, disk)
	files := func(r *lab) kit.FS {
		c, err := r.Runtime.container(id)
		if err != nil {
			t.Fatal(err)
		}
		return c.files.As(kit.User{})
	}
	for _, name := range []string{"/", "/etc", "/proc", "/proc/1", "/proc/uptime", "/dev", "/dev/null", "/sys", "/sys/fs/cgroup/cpu.stat"} {
		fi, err := files(r).Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if d := fi.ModTime().Sub(c.Created).Abs(); d > time.Minute {
			t.Errorf("%s is of %v, and the container of %v", name, fi.ModTime(), c.Created)
		}
	}
	for _, name := range []string{"/bin", "/etc/passwd", "/usr/bin"} {
		now, err := files(r).Stat(name)
		before, err2 := files(l).Stat(name)
		if err != nil || err2 != nil || !now.ModTime().Equal(before.ModTime()) || time.Since(now.ModTime()) < 180*24*time.Hour {
			t.Errorf("%s is of %v, and was of %v: %v %v", name, now.ModTime(), before.ModTime(), err, err2)
		}
	}
}

// A program that ran and cannot start again yet, because what it needs is restored beside it, is tried until it can:
// nobody sees that it failed. Once everything is restored it is a container like any other.
func TestRestoredBeforeWhatItNeeds(t *testing.T) {
	l := newLab(t)
	exec := func(r *lab, id string, argv ...string) error {
		_, _, err := r.ExecSync(t.Context(), id, argv, 0)
		return err
	}
	pod := l.pod("a")
	id := l.run(pod, []string{"serve"}, nil)
	st, err := l.Save()
	if err != nil {
		t.Fatal(err)
	}
	config := &runtimeapi.ContainerConfig{}
	if err := proto.Unmarshal(st.Containers[0].Config, config); err != nil {
		t.Fatal(err)
	}
	config.Command = []string{"needs"}
	if st.Containers[0].Config, err = proto.Marshal(config); err != nil {
		t.Fatal(err)
	}
	disk := l.cfg.Disk.Clone(nil)
	r := l.restore(st, disk)
	await := func(file string) {
		for exec(r, id, "cat", file) != nil {
			if s := r.status(id); s.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
				t.Fatalf("it has ended: %v", s)
			}
			time.Sleep(time.Millisecond)
		}
	}
	await("/tmp/tried")
	if err := exec(r, id, "write", "/tmp/needed", "x"); err != nil {
		t.Fatal(err)
	}
	await("/tmp/up")
	if s := r.status(id); s.State != runtimeapi.ContainerState_CONTAINER_RUNNING || s.StartedAt != st.Containers[0].Started.UnixNano() {
		t.Errorf("it is %v", s)
	}
	r.Restored()
	if out := r.logs(id); strings.Contains(out, "needed") {
		t.Errorf("it has logged that it failed: %s", out)
	}
	if err := r.StopContainer(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	r.ended(id)
}
