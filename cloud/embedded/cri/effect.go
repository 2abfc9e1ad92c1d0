package cri

import (
	"context"
	"math"
	"slices"
	"syscall"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/kit"
)

// killDelay is how long a container that is to be killed runs. It is long enough for its program to
// write its first lines, which is what people look at, and short enough to serve nobody.
const killDelay = 500 * time.Millisecond

// Effect is something that is done to the containers of a pod from outside. Neither their
// configuration nor their status tells of it.
type Effect struct {
	// Containers names the containers that are affected. Empty means all, except ephemeral ones that look at the
	// processes of another.
	Containers []string

	// CPU is how many cores are kept busy, out of the container's own share.
	CPU float64
	// Memory is how many bytes are held. They count towards the container's limit.
	Memory int64
	// Hang replaces the main program by one that does nothing. The container goes on, with the same
	// identity and start: it is running, its first process has the name it had, and commands can be
	// run in it. But its ports are closed, its memory is free, and its log stands still. Probes are
	// answered accordingly. When the effect ends, the program is started anew in the same container.
	Hang bool
	// Kill ends containers with SIGKILL shortly after they have started.
	Kill bool
	// Files decides what becomes of an operation on files; see vfs.Hook.
	Files func(method string, paths ...string) (delay time.Duration, errno syscall.Errno)
	// Calls decides what becomes of a call into the kernel: those of vnet.Stack.OnCall, "openat",
	// and "mmap" for a program that states it holds more memory.
	Calls func(call string) syscall.Errno
}

// suffering is all that is done to one container.
type suffering struct {
	cpu        float64
	memory     int64
	hang, kill bool
	files      []func(string, ...string) (time.Duration, syscall.Errno)
	calls      []func(string) syscall.Errno
}

func (s suffering) call(name string) syscall.Errno {
	for _, f := range s.calls {
		if errno := f(name); errno != 0 {
			return errno
		}
	}
	return 0
}

// Disturb replaces the effects on the containers of a pod, future containers included. Without effects the
// disturbance ends. It returns when the running containers are affected as it says.
func (r *Runtime) Disturb(podUID string, effects ...Effect) {
	r.mu.Lock()
	if len(effects) == 0 {
		delete(r.effects, podUID)
	} else {
		r.effects[podUID] = effects
	}
	var list []*Container
	for _, c := range r.containers {
		if c.sandbox.podUID() == podUID {
			list = append(list, c)
		}
	}
	r.mu.Unlock()
	done := make(chan struct{})
	for _, c := range list {
		go func() {
			if wake := c.waking.Load(); wake != nil {
				(*wake)() // It may be waiting for its files, be it to start.
			}
			c.adapt()
			done <- struct{}{}
		}()
	}
	for range list {
		<-done
	}
}

// suffers returns what is done to the container now.
func (c *Container) suffers() (s suffering) {
	c.runtime.mu.Lock()
	effects := c.runtime.effects[c.sandbox.podUID()]
	c.runtime.mu.Unlock()
	for _, e := range effects {
		if len(e.Containers) > 0 && !slices.Contains(e.Containers, c.config.GetMetadata().GetName()) ||
			len(e.Containers) == 0 && c.looksOn() {
			continue
		}
		s.cpu += e.CPU
		s.memory += e.Memory
		s.hang, s.kill = s.hang || e.Hang, s.kill || e.Kill
		if e.Files != nil {
			s.files = append(s.files, e.Files)
		}
		if e.Calls != nil {
			s.calls = append(s.calls, e.Calls)
		}
	}
	return s
}

// adapt makes the container suffer what it has to, if it runs.
func (c *Container) adapt() {
	c.adapting.Lock()
	defer c.adapting.Unlock()
	if !c.runs() {
		return
	}
	s := c.suffers()
	c.setHooks(s)
	if s.hang != c.hanging {
		c.hanging = s.hang
		c.replaceMain(s)
	}
	c.endure(s)
}

func (c *Container) runs() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == runtimeapi.ContainerState_CONTAINER_RUNNING && !c.ending
}

// setHooks makes calls and operations on files fail.
func (c *Container) setHooks(s suffering) {
	var calls func(string) syscall.Errno
	if len(s.calls) > 0 {
		calls = s.call
	}
	c.stack.Load().OnCall(calls)
	c.group.onCall(calls)
	if len(s.files) == 0 && calls == nil {
		c.files.SetHook(nil)
		return
	}
	ctx, wake := context.WithCancel(c.ctx)
	if old := c.waking.Swap(&wake); old != nil {
		(*old)()
	}
	c.files.SetHook(func(method string, paths ...string) syscall.Errno {
		switch method {
		case "open", "create", "opendir":
			if errno := s.call("openat"); errno != 0 {
				return errno
			}
		}
		var wait time.Duration
		var failure syscall.Errno
		for _, f := range s.files {
			d, errno := f(method, paths...)
			wait += d
			if failure == 0 {
				failure = errno
			}
		}
		if wait > 0 {
			_ = sleep(ctx, wait)
		}
		return failure
	})
}

// endure applies what takes effect besides the container's programs.
func (c *Container) endure(s suffering) {
	if s.cpu != c.busy {
		c.busy = s.cpu
		if c.relax != nil {
			c.relax()
		}
		var ctx context.Context
		ctx, c.relax = context.WithCancel(c.ctx)
		c.group.stress(ctx, s.cpu)
	}
	c.group.hold(s.memory)
	switch {
	case !s.kill && c.doom != nil:
		c.doom.Stop()
		c.doom = nil
	case s.kill && c.doom == nil:
		wait := killDelay - time.Since(c.began)
		c.doom = time.AfterFunc(max(wait, 0), c.kill)
		if wait <= 0 {
			<-c.done
		}
	}
}

// replaceMain ends the main program and runs another in its place.
func (c *Container) replaceMain(s suffering) {
	// Meanwhile nothing that ends is the end of the container.
	between, ended := kit.Standing(c.cancel, exitKilled)
	defer ended()
	c.mu.Lock()
	if c.ending {
		c.mu.Unlock()
		return
	}
	old := c.main
	c.main = between
	at := c.started
	c.mu.Unlock()

	c.clear(old)
	select {
	case <-old.Done():
	case <-time.After(killPatience):
	}
	c.group.renew()
	if c.ctx.Err() != nil {
		return
	}
	if !s.hang {
		c.began = time.Now()
	}
	if err := c.launch(s, at, c.runtime.cfg.Now()); err != nil {
		c.kill()
	}
	if c.ctx.Err() != nil { // It was killed while it had no sockets to close.
		c.stack.Load().Close()
	}
}

// stress keeps some cores busy until ctx ends.
func (g *group) stress(ctx context.Context, cores float64) {
	cores = min(cores, float64(g.machine.Cores))
	workers := math.Ceil(cores)
	for range int(workers) {
		go g.burn(ctx, cores/workers)
	}
}

// burn uses a part of a core.
func (g *group) burn(ctx context.Context, part float64) {
	for ctx.Err() == nil {
		start := time.Now()
		_ = g.Use(ctx, time.Duration(part*float64(cfsPeriod)))
		if rest := cfsPeriod - time.Since(start); part < 1 && rest > 0 {
			_ = sleep(ctx, rest)
		}
	}
}
