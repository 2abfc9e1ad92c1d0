package cri

import (
	"context"
	"fmt"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/kit"
)

func init() {
	// A store in memory, of one word, which the file "/tell" changes.
	programs["store"] = func(ctx context.Context, env *kit.Env) error {
		word, _ := env.Kept().(string)
		env.Keep(func(context.Context) (any, int64, error) { return word + "!", int64(len(word)), nil })
		if err := env.WriteFile("/tmp/word", []byte("<"+word+">"), 0o644); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}
	programs["forgetful"] = func(ctx context.Context, env *kit.Env) error {
		env.Keep(kit.NotKept)
		<-ctx.Done()
		return ctx.Err()
	}
	programs["call"] = func(ctx context.Context, env *kit.Env) error {
		c, err := env.Net.DialContext(ctx, "tcp", env.Args[1])
		if err != nil {
			return err
		}
		return c.Close()
	}
}

// own is a container's configuration with volumes of the node, and processes of its own.
func own(mounts ...*runtimeapi.Mount) func(*runtimeapi.ContainerConfig) {
	return func(c *runtimeapi.ContainerConfig) {
		c.Linux.SecurityContext.NamespaceOptions = &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}
		c.Annotations = map[string]string{restartsAnnotation: "0"}
		c.LogPath = "c/0.log"
		c.Mounts = mounts
	}
}

// latest is the container of a pod that was made last.
func (l *lab) latest(pod string) *Container {
	var last *Container
	for _, c := range l.containersOf(pod) {
		if last == nil || c.created.After(last.created) {
			last = c
		}
	}
	return last
}

func TestPutBack(t *testing.T) {
	l := newLab(t)
	env := l.env()
	for _, d := range []string{"/vol/data", "/var/lib/kubelet/pods/uid-p/volumes/kubernetes.io~empty-dir/tmp"} {
		if err := env.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	empty := "/var/lib/kubelet/pods/uid-p/volumes/kubernetes.io~empty-dir/tmp"
	if err := env.WriteFile("/var/lib/kubelet/pods/uid-p/etc-hosts", []byte("hosts"), 0o644); err != nil {
		t.Fatal(err)
	}
	pod, other := l.pod("p"), l.pod("q")
	beside := l.run(other, []string{"serve"}, own())
	id := l.run(pod, []string{"store"}, own(&runtimeapi.Mount{ContainerPath: "/data", HostPath: "/vol/data"},
		&runtimeapi.Mount{ContainerPath: "/empty", HostPath: empty},
		&runtimeapi.Mount{ContainerPath: "/etc/hosts", HostPath: "/var/lib/kubelet/pods/uid-p/etc-hosts"}))
	files := []string{"/own", "/data/f", "/empty/f", "/etc/hosts", "/etc/resolv.conf"}
	write := func(id, text string) {
		t.Helper()
		for _, f := range files {
			l.do(id, "write", f, text)
		}
	}
	l.await("the store", func() bool { return l.do(id, "cat", "/tmp/word") == "<>" })
	write(id, "before")
	command := []string{"call", "10.0.0.1:80"}
	k, err := l.Keep(t.Context(), id, []string{empty}, []string{"/vol/data"}, command)
	if err != nil {
		t.Fatal(err)
	}
	write(id, "after")
	l.do(id, "write", "/data/new", "x")
	started := l.status(beside).StartedAt
	if err := l.PutBack(id, k); err != nil {
		t.Fatal(err)
	}
	next := l.latest(pod)
	if next.id == id || next.config.GetMetadata().GetAttempt() != 1 || next.config.Annotations[restartsAnnotation] != "1" {
		t.Errorf("the next container is %s, %v", next.id, next.config)
	}
	if st := l.status(id); st.State != runtimeapi.ContainerState_CONTAINER_EXITED || st.ExitCode != int32(exitKilled) {
		t.Errorf("the one before is %v", st)
	}
	for _, f := range files {
		if got := l.do(next.id, "cat", f); got != "before" {
			t.Errorf("%s is %q", f, got)
		}
	}
	// The program was given its memory back.
	l.await("the store", func() bool { return l.do(next.id, "cat", "/tmp/word") == "<!>" })
	if _, err := l.env().FS.Stat("/vol/data/new"); err == nil {
		t.Error("a new file is still there")
	}
	if l.status(beside).StartedAt != started || l.status(beside).State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Error("another container was started again")
	}
	// What a command said elsewhere is not in it, and known.
	if got := k.Elsewhere(); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if k, err = l.Keep(t.Context(), next.id, []string{empty}, []string{"/vol/data"}, []string{"call", l.address(other)}); err != nil {
		t.Fatal(err)
	}
	l.serves(other)
	l.do(next.id, "call", l.address(other))
	if got := fmt.Sprint(k.Elsewhere()); got != "["+l.address(other)+"]" {
		t.Errorf("the command has connected to %s", got)
	}
	// When the pod is gone, its lasting volumes are put back.
	l.do(next.id, "write", "/data/f", "gone wrong")
	if err := l.StopPodSandbox(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	l.ended(next.id)
	if ids, _ := l.Using(k); len(ids) != 0 || !k.Lasting() {
		t.Errorf("%v", ids)
	}
	if err := l.FillPlaces(k, true); err != nil {
		t.Fatal(err)
	}
	if b, _ := env.ReadFile("/vol/data/f"); string(b) != "before" {
		t.Errorf("the volume has %q", b)
	}
}

func (l *lab) serves(pod string) {
	l.t.Helper()
	l.await("an answer", func() bool { _, err := l.get(pod); return err == nil })
}

func (l *lab) address(pod string) string {
	s, err := l.sandbox(pod)
	if err != nil {
		l.t.Fatal(err)
	}
	return s.host.Addr().String() + ":80"
}

// A container that is disturbed is disturbed again when it was put back.
func TestPutBackLeavesDisturbance(t *testing.T) {
	l := newLab(t)
	pod := l.pod("p")
	id := l.run(pod, []string{"serve"}, own())
	l.serves(pod)
	k, err := l.Keep(t.Context(), id, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.Disturb("uid-p", Effect{Hang: true})
	if err := l.PutBack(id, k); err != nil {
		t.Fatal(err)
	}
	if text, err := l.get(pod); err == nil {
		t.Errorf("the disturbance is over: %s", text)
	}
	l.Disturb("uid-p")
	l.serves(pod)
}

func TestNotKept(t *testing.T) {
	l := newLab(t)
	env := l.env()
	for _, d := range []string{"/vol/a", "/vol/big", "/opt/x"} {
		if err := env.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := env.WriteFile("/vol/big/f", make([]byte, MaxKept+1), 0o644); err != nil {
		t.Fatal(err)
	}
	mount := func(path string) func(*runtimeapi.ContainerConfig) {
		return own(&runtimeapi.Mount{ContainerPath: "/data", HostPath: path})
	}
	for _, tt := range []struct {
		name   string
		argv   []string
		edit   func(*runtimeapi.ContainerConfig)
		claims []string
		why    string
	}{
		{"data in memory", []string{"forgetful"}, own(), nil, "data in memory alone"},
		{"processes of others", []string{"wait"}, nil, nil, "shares processes"},
		{"volume of two", []string{"wait"}, mount("/vol/a"), []string{"/vol/a"}, "container other writes to its volume"},
		{"too large", []string{"wait"}, mount("/vol/big"), []string{"/vol/big"}, "it has 64 MB in "},
		{"files of the node", []string{"wait"}, mount("/opt/x"), nil, "is its node's"},
		{"a volume that is the node", []string{"wait"}, mount("/"), []string{"/"}, "its node's own files"},
		{"a volume that is containers", []string{"wait"}, mount("/run"), []string{"/run"}, "its node's own files"},
		{"ended", []string{"exit", "0"}, own(), nil, "it does not run"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := l.pod(strings.ReplaceAll(tt.name, " ", "-"))
			id := l.run(pod, tt.argv, tt.edit)
			switch tt.argv[0] {
			case "exit":
				l.ended(id)
			case "forgetful":
				c, _ := l.Runtime.container(id)
				l.await("the program", func() bool {
					c.mu.Lock()
					defer c.mu.Unlock()
					return len(c.keeping) > 0
				})
			}
			if strings.Contains(tt.why, "other") {
				l.run(pod, []string{"wait"}, func(c *runtimeapi.ContainerConfig) {
					mount("/vol/a")(c)
					c.Metadata.Name = "other"
				})
			}
			if _, err := l.Keep(t.Context(), id, nil, tt.claims, nil); err == nil || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%v, not %q", err, tt.why)
			}
		})
	}
}
