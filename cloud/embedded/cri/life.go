package cri

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/past"
)

// killPatience is how long a killed program may take to notice before it is left to itself.
const killPatience = time.Second

// exitKilled is the exit code of a program that SIGKILL ended.
const exitKilled = kit.ExitSignal + int(syscall.SIGKILL)

// StartContainer implements the CRI.
func (r *Runtime) StartContainer(_ context.Context, id string) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	return c.start(r.cfg.Now())
}

// start runs the main program.
func (c *Container) start(at time.Time) error {
	defer c.launchedOnce.Do(func() { close(c.launched) })
	c.adapting.Lock()
	defer c.adapting.Unlock()
	c.mu.Lock()
	state := c.state
	c.mu.Unlock()
	if state != runtimeapi.ContainerState_CONTAINER_CREATED {
		return status.Errorf(codes.FailedPrecondition, "container %q is not in the created state", c.id)
	}
	s := c.suffers()
	c.began, c.hanging = time.Now(), s.hang
	if err := c.launch(s, at, at); err != nil {
		err = status.Errorf(codes.Unknown,
			"failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create "+
				"failed: unable to start container process: error during container init: %v", err)
		c.exited(exitStartError, reasonStartError, status.Convert(err).Message())
		return err
	}
	go c.wait()
	c.endure(s)
	return nil
}

// launch runs the main program, or an idle one in its place, with sockets and output of its own. It tells when
// the container was started, and when the program was.
func (c *Container) launch(s suffering, at, program time.Time) error {
	c.stack.Store(c.sandbox.host.NewStack())
	c.setHooks(s)
	env := c.environment(c.argv)
	env.Started = program
	env.OnRecall(c.remember)
	env.OnKeep(c.addKeeping, c.memory)
	stdout, stderr := &gate{w: c.stdout}, &gate{w: c.stderr}
	c.output = []*gate{stdout, stderr}
	env.Stdout, env.Stderr = stdout, stderr
	if c.stdin != nil {
		env.Stdin = c.stdin
	}
	if c.config.Tty {
		env.Terminal = &kit.Terminal{Resize: c.stdout.resize}
	}
	if init := c.procs.space.init; init != nil && init != c && init.ctx.Err() != nil {
		return fmt.Errorf("lstat /proc/%d/ns/pid: no such file or directory", init.nodePID())
	}
	prog, err := c.procs.lookup(env)
	if err != nil {
		return err
	}
	if s.hang {
		prog = idle
	} else if err := s.call("mmap"); err != 0 {
		return &kit.ExecError{Name: c.argv[0], Err: err}
	}
	c.mu.Lock()
	c.state, c.started = runtimeapi.ContainerState_CONTAINER_RUNNING, at
	c.group.sampleFrom(c.runtime.cfg.Now())
	who := c.sandbox.config.GetMetadata().GetNamespace() + "/" + c.config.GetMetadata().GetName()
	c.group.swellBy(func() float64 { return past.Swell(who, c.runtime.cfg.Now().Sub(at)) })
	c.recollections, c.keeping, c.memory = map[kit.Telling][]recollection{}, nil, nil
	c.main = c.procs.runFirst(c.ctx, env, prog, program)
	c.mu.Unlock()
	if !s.hang {
		_ = env.Memory.Add(c.image.image.Memory) // If it fails the container is killed.
	}
	return nil
}

// idle is a program that does nothing.
func idle(ctx context.Context, _ *kit.Env) error {
	<-ctx.Done()
	return ctx.Err()
}

// wait ends the container with its main program.
func (c *Container) wait() {
	var main *kit.Running
	for over := false; !over; {
		c.mu.Lock()
		main = c.main
		c.mu.Unlock()
		select {
		case <-main.Done():
			c.startAgain(main)
		case <-c.ctx.Done():
		}
		c.mu.Lock()
		// Another program may have taken its place.
		over = c.main == main || c.ctx.Err() != nil
		c.ending, main = over, c.main
		c.mu.Unlock()
	}
	code := exitKilled
	select {
	case <-main.Done():
		code = main.Wait()
	case <-time.After(killPatience): // It does not listen. Everything it holds is taken away.
	}
	c.cancel(kit.Killed{Signal: syscall.SIGKILL})
	c.collapse()
	c.exited(int32(code), "", "")
}

// restorePause is how long a program that failed as it was restored waits before it is started again.
const restorePause = 100 * time.Millisecond

// startAgain starts the main program once more if it has failed as it was restored, and not everything is yet: it ran
// before, so what it needs is on its way.
func (c *Container) startAgain(failed *kit.Running) {
	select {
	case <-c.launched:
	case <-c.ctx.Done():
		return
	}
	// If somebody disturbs the container, its end is not the program's own.
	if failed.Wait() == 0 || !c.log.isHolding() || !c.adapting.TryLock() {
		return
	}
	defer c.adapting.Unlock()
	select {
	case <-time.After(restorePause):
	case <-c.ctx.Done():
		return
	}
	c.mu.Lock()
	at, replaced := c.started, c.main != failed
	c.mu.Unlock()
	if replaced {
		return
	}
	c.clear(failed)
	c.group.renew()
	_ = c.launch(c.suffers(), at, at) // If it cannot be started, the container has ended.
}

// clear takes away what a main program has used.
func (c *Container) clear(main *kit.Running) {
	for _, g := range c.output {
		g.shut.Store(true)
	}
	c.procs.killTree(main)
	c.stack.Load().Close()
}

// exited records the end of the container.
func (c *Container) exited(code int32, reason, message string) {
	c.files.SetHook(nil)
	c.stack.Load().Close()
	c.group.end()
	c.log.Close()
	c.stdout.close()
	c.stderr.close()
	c.mu.Lock()
	switch {
	case reason != "":
	case c.oom:
		reason = reasonOOMKilled
	case code == 0:
		reason = reasonCompleted
	default:
		reason = reasonError
	}
	c.state, c.exitCode, c.reason, c.message = runtimeapi.ContainerState_CONTAINER_EXITED, code, reason, message
	c.finished = c.runtime.cfg.Now()
	c.mu.Unlock()
	c.saveLastWords()
	close(c.done)
	c.runtime.notify(c.sandbox.podUID())
}

func (c *Container) outOfMemory() {
	c.mu.Lock()
	c.oom = true
	c.mu.Unlock()
	c.kill()
}

// kill ends the container at once.
func (c *Container) kill() {
	c.mu.Lock()
	state := c.state
	c.mu.Unlock()
	c.cancel(kit.Killed{Signal: syscall.SIGKILL})
	if state == runtimeapi.ContainerState_CONTAINER_RUNNING {
		c.stack.Load().Close()
	}
}
