package cri

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/cloud/embedded/vnet"
	"github.com/aiopslab/aiopslab/kit"
)

// What containerd gives as the reason of an exit.
const (
	reasonCompleted  = "Completed"
	reasonError      = "Error"
	reasonOOMKilled  = "OOMKilled"
	reasonStartError = "StartError"

	exitStartError = 128
)

// Container is a container of a sandbox.
type Container struct {
	id      string
	runtime *Runtime
	sandbox *sandbox
	config  *runtimeapi.ContainerConfig
	image   *pulledImage
	created time.Time
	argv    []string
	user    kit.User
	home    string

	files   *vfs.Namespace
	special []*vfs.Tree                // those that are mounted in every container
	stack   atomic.Pointer[vnet.Stack] // of the main program and its commands
	group   *group
	procs   *processes
	log     *Log
	stdout  *tee // to the log, and to whoever is attached
	stderr  *tee
	stdin   *stdin // nil unless the container wants input

	ctx    context.Context // ends when the container is killed or its main program has ended
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the container has exited

	launched     chan struct{} // closed when StartContainer is done
	launchedOnce sync.Once

	mu       sync.Mutex
	state    runtimeapi.ContainerState
	started  time.Time
	finished time.Time
	exitCode int32
	reason   string
	message  string
	oom      bool
	main     *kit.Running
	ending   bool // with its main program
	// recollections are what the main program does when it is told its past.
	recollections map[kit.Telling][]recollection
	// keeping hand over what the main program and those it started have in memory, and memory is what the main program
	// is started with.
	keeping []kit.Keeping
	memory  any
	ears    []*ear // on commands that the container was kept for

	waking   atomic.Pointer[context.CancelFunc] // ends what operations on files wait for
	adapting sync.Mutex                         // serialises what changes how the container is disturbed
	output   []*gate                            // of the main program
	hanging  bool                               // the main program is idle
	began    time.Time                          // when it was started, by the process' own clock
	busy     float64                            // cores that stress keeps busy
	relax    context.CancelFunc
	doom     *time.Timer // kills the container
}

// containerDir is where the container's files are on the node.
func containerDir(id string) string {
	return "/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + id
}

// CreateContainer implements the CRI.
func (r *Runtime) CreateContainer(_ context.Context, sandboxID string, config *runtimeapi.ContainerConfig,
	_ *runtimeapi.PodSandboxConfig,
) (string, error) {
	s, err := r.sandbox(sandboxID)
	if err != nil {
		return "", err
	}
	c, err := r.newContainer(newID(), s, config, NewLog(r.cfg.Now))
	if err != nil {
		return "", status.Errorf(codes.Unknown, "failed to create containerd container: %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.containers[c.id] = c
	return c.id, nil
}

// newContainer prepares a container. Its root may exist already, if it is being restored.
func (r *Runtime) newContainer(id string, s *sandbox, config *runtimeapi.ContainerConfig,
	log *Log,
) (*Container, error) {
	image := r.findImage(config.Image.Image)
	if image == nil {
		return nil, fmt.Errorf("image %q: not found", config.Image.Image)
	}
	c := &Container{
		id: id, runtime: r, sandbox: s, config: config, image: image, created: r.creationTime(),
		state: runtimeapi.ContainerState_CONTAINER_CREATED, log: log, done: make(chan struct{}),
		launched: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	space, err := c.spaceOf(s)
	if err != nil {
		return nil, err
	}
	c.procs = newProcesses(c, space)
	c.stdout, c.stderr = newTee(c.log.Writer("stdout")), newTee(c.log.Writer("stderr"))
	if config.Tty {
		c.stderr = c.stdout
	}
	if config.Stdin {
		c.stdin = newStdin(config.StdinOnce)
	}
	c.argv = commandOf(image.image, config)
	c.group = newGroup(r.cfg.Machine, limitsOf(config.GetLinux().GetResources()), c.outOfMemory)
	if err := c.mountAll(); err != nil {
		return nil, err
	}
	if err := c.addLogFile(); err != nil {
		return nil, err
	}
	return c, c.setUser()
}

// commandOf joins the image's defaults with what the manifest overrides.
func commandOf(image *kit.Image, config *runtimeapi.ContainerConfig) []string {
	command, args := config.Command, config.Args
	if len(command) == 0 {
		command = image.Entrypoint
		if len(args) == 0 {
			args = image.Cmd
		}
	}
	return append(append([]string(nil), command...), args...)
}

func limitsOf(res *runtimeapi.LinuxContainerResources) limits {
	l := limits{shares: res.GetCpuShares(), memory: res.GetMemoryLimitInBytes()}
	if res.GetCpuQuota() > 0 && res.GetCpuPeriod() > 0 {
		l.quota = time.Duration(float64(cfsPeriod) * float64(res.CpuQuota) / float64(res.CpuPeriod))
	}
	return l
}

// mountAll builds the container's file system.
func (c *Container) mountAll() error {
	r := c.runtime
	root, env := containerDir(c.id)+"/rootfs", r.env()
	tree, err := r.cfg.Images.tree(c.image.image) // The image's programs can run from now on.
	if err != nil {
		return err
	}
	if _, err := env.FS.Stat(root); os.IsNotExist(err) {
		if err := env.MkdirAll(path.Dir(root), 0o711); err != nil {
			return err
		}
		if err := r.cfg.Disk.Graft(root, tree); err != nil {
			return err
		}
		for _, dir := range []string{"", "/etc", "/run"} { // Something is mounted there.
			if err := env.FS.Chtimes(root+dir, c.created); err != nil {
				return err
			}
		}
	}
	if c.files, err = r.cfg.Files.Sub(root); err != nil {
		return err
	}
	for _, m := range []struct {
		at    string
		build func() (*vfs.Tree, error)
		opts  vfs.MountOptions
	}{
		{"/dev", c.devTree, vfs.MountOptions{}},
		{
			"/proc", proc{r, c.procs.space, c.files, c.sandbox.hostname, c.sandbox.config.GetLinux().GetSysctls()}.tree,
			vfs.MountOptions{},
		},
		{"/sys", sysTree, vfs.MountOptions{ReadOnly: true}},
		{"/sys/fs/cgroup", c.groupTree, vfs.MountOptions{ReadOnly: true, Source: "cgroup"}},
	} {
		t, err := m.build()
		if err != nil {
			return err
		}
		c.special = append(c.special, t)
		if err := c.files.Mount(m.at, t, m.opts); err != nil {
			return err
		}
	}
	for _, name := range []string{"resolv.conf", "hostname"} {
		if err := c.files.Bind("/etc/"+name, r.cfg.Files, c.sandbox.dir()+"/"+name, vfs.MountOptions{}); err != nil {
			return err
		}
	}
	for _, m := range c.config.Mounts {
		if err := c.mount(m); err != nil {
			return fmt.Errorf("failed to mount %q: %w", m.ContainerPath, err)
		}
	}
	if c.config.GetLinux().GetSecurityContext().GetReadonlyRootfs() {
		c.files.SetReadOnly()
	}
	if dir := c.workDir(); dir != "/" {
		return (&kit.Env{FS: c.files.As(kit.User{}), Dir: "/"}).MkdirAll(dir, 0o755)
	}
	return nil
}

func (c *Container) mount(m *runtimeapi.Mount) error {
	r := c.runtime
	opts := vfs.MountOptions{ReadOnly: m.Readonly}
	if name := m.GetImage().GetImage(); name != "" { // A volume that is an image.
		image := r.findImage(name)
		if image == nil {
			return fmt.Errorf("image %q: not found", name)
		}
		tree, err := r.cfg.Images.tree(image.image)
		if err != nil {
			return err
		}
		opts.ReadOnly = true
		return c.files.Bind(m.ContainerPath, vfs.NewNamespace(tree), m.ImageSubPath, opts)
	}
	return c.files.Bind(m.ContainerPath, r.cfg.Files, m.HostPath, opts)
}

func (c *Container) workDir() string {
	for _, dir := range []string{c.config.WorkingDir, c.image.image.WorkDir} {
		if dir != "" {
			return path.Clean("/" + dir)
		}
	}
	return "/"
}

// environment returns the Env of a program in the container, its streams not yet set.
func (c *Container) environment(argv []string) *kit.Env {
	vars := map[string]string{"PATH": kit.DefaultPath, "HOSTNAME": c.sandbox.hostname, "HOME": c.home}
	for k, v := range c.image.image.Vars {
		vars[k] = v
	}
	for _, e := range c.config.Envs {
		vars[e.Key] = string(e.Value)
	}
	files := c.files.As(c.user)
	return &kit.Env{
		Args: argv, Vars: vars, Dir: c.workDir(), Stdin: nothing{}, Stdout: io.Discard, Stderr: io.Discard,
		Hostname: c.sandbox.hostname, User: c.user, FS: files,
		Net: network{c.stack.Load(), c.files.As(kit.User{})}, CPU: groupCPU{c.group}, Memory: c.group.ledger(),
		Procs:   c.procs,
		Scratch: c.hostFile(".scratch"),
	}
}

func (r *Runtime) container(id string) (*Container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		return c, nil
	}
	return nil, status.Errorf(codes.NotFound, "an error occurred when try to find container %q: not found", id)
}

// StopContainer implements the CRI: SIGTERM, and SIGKILL if that does not help in time.
func (r *Runtime) StopContainer(ctx context.Context, id string, timeout int64) error {
	c, err := r.container(id)
	if err != nil {
		return nil
	}
	c.mu.Lock()
	main := c.main
	c.mu.Unlock()
	if main == nil {
		return nil
	}
	if timeout > 0 {
		main.Signal(c.stopSignal())
		t := time.NewTimer(time.Duration(timeout) * time.Second)
		defer t.Stop()
		select {
		case <-c.done:
			return nil
		case <-r.interruption():
			return errInterrupted
		case <-t.C:
		case <-ctx.Done():
		}
	}
	c.kill()
	<-c.done
	return nil
}

func (c *Container) stopSignal() syscall.Signal {
	switch c.config.StopSignal {
	case runtimeapi.Signal_SIGNAL_SIGINT:
		return syscall.SIGINT
	case runtimeapi.Signal_SIGNAL_SIGQUIT:
		return syscall.SIGQUIT
	case runtimeapi.Signal_SIGNAL_SIGHUP:
		return syscall.SIGHUP
	case runtimeapi.Signal_SIGNAL_SIGUSR1:
		return syscall.SIGUSR1
	case runtimeapi.Signal_SIGNAL_SIGUSR2:
		return syscall.SIGUSR2
	case runtimeapi.Signal_SIGNAL_SIGKILL:
		return syscall.SIGKILL
	}
	return syscall.SIGTERM
}

// RemoveContainer implements the CRI.
func (r *Runtime) RemoveContainer(_ context.Context, id string) error {
	c, err := r.container(id)
	if err != nil {
		return nil
	}
	c.kill()
	c.mu.Lock()
	running := c.main != nil
	c.mu.Unlock()
	if running {
		<-c.done
	}
	r.mu.Lock()
	delete(r.containers, id)
	r.mu.Unlock()
	if file := c.logFile(); file != "" {
		_ = r.env().FS.Remove(file)
		if l := c.log.fileBefore(); l != nil {
			_ = r.env().FS.Remove(l.name(file))
		}
	}
	_ = os.Remove(c.hostFile(".log"))
	_ = os.Remove(c.hostFile(".message"))
	_ = os.RemoveAll(c.hostFile(".scratch"))
	return r.env().RemoveAll(containerDir(id))
}

// UpdateContainerResources implements the CRI.
func (r *Runtime) UpdateContainerResources(_ context.Context, id string, res *runtimeapi.ContainerResources) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.config.GetLinux().GetResources()
	for _, f := range []struct{ to, from *int64 }{
		{&now.CpuPeriod, &res.Linux.CpuPeriod},
		{&now.CpuQuota, &res.Linux.CpuQuota},
		{&now.CpuShares, &res.Linux.CpuShares},
		{&now.MemoryLimitInBytes, &res.Linux.MemoryLimitInBytes},
	} {
		if *f.from != 0 {
			*f.to = *f.from
		}
	}
	c.group.setLimits(limitsOf(now))
	return nil
}
