package cell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"

	"github.com/aiopslab/aiopslab/internal/socketpair"
)

const (
	// nameVar is the variable that makes a process a cell, and says which.
	nameVar = "AIOPSLAB_CELL"
	lineFD  = 3 // the line to who started it

	// niceness is how far cells stand back behind everything else, as the agent's own shell does.
	niceness = 2
	maxWords = 4 << 10 // of what a process says when it dies
)

// Needed reports whether an interpreter has to run in a cell.
func Needed(env *kit.Env) bool {
	c, ok := env.Procs.(kit.Confiner)
	return ok && c.Confine()
}

// Cell is a process.
type Cell struct {
	// Line is the connection to the program.
	Line net.Conn

	cmd    *exec.Cmd
	words  lastWords
	holder *kit.Holder
	cancel context.CancelFunc
	free   func()
	done   chan struct{} // closed when the process has ended
	over   bool          // it took too much; valid once done is closed
}

// Start starts the program that was registered by a name. It ends with ctx, and is accounted to env.
func Start(ctx context.Context, env *kit.Env, name string) (*Cell, error) {
	free, err := slot(ctx, env.Memory)
	if err != nil {
		return nil, err
	}
	c := &Cell{holder: kit.NewHolder(env), done: make(chan struct{}), free: free}
	if err := c.launch(name); err != nil {
		free()
		return nil, err
	}
	ctx, c.cancel = context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		c.over = c.watch(ctx, env)
	}()
	go func() {
		<-ctx.Done()
		c.kill()
	}()
	go func() {
		_ = c.cmd.Wait()
		c.cancel()
		<-watched
		c.holder.Release()
		c.Line.Close()
		c.free()
		close(c.done)
	}()
	return c, nil
}

// launch starts the process.
func (c *Cell) launch(name string) error {
	here, there, err := socketpair.New()
	if err != nil {
		return err
	}
	defer there.Close()
	defer here.Close()
	if c.Line, err = net.FileConn(here); err != nil {
		return err
	}
	c.cmd = exec.Command(self())
	c.cmd.Args = []string{name}
	c.cmd.Env = []string{nameVar + "=" + name, "GOMAXPROCS=1", "GOTRACEBACK=none"}
	c.cmd.ExtraFiles, c.cmd.Stderr = []*os.File{there}, &c.words
	// In a group of its own a process that stands still is woken up by the kernel, and ended, if we die.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		c.Line.Close()
		return err
	}
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, c.cmd.Process.Pid, niceness)
	return nil
}

// self is this binary, even if another one has been put in its place since it was started.
func self() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	name, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return name
}

func (c *Cell) kill() { _ = c.cmd.Process.Kill() }

// Done is closed when the process has ended.
func (c *Cell) Done() <-chan struct{} { return c.done }

// Close ends the process and waits for its end.
func (c *Cell) Close() {
	c.cancel()
	<-c.done
}

// Why a process ended without having said that it is done.
var (
	ErrMemory = errors.New("out of memory")
	ErrStack  = errors.New("stack overflow")
	ErrKilled = errors.New("killed")
)

// Cause says why the process has ended. It kills the container of a process that ran out of memory.
func (c *Cell) Cause() error {
	<-c.done
	text := c.words.String()
	switch {
	case c.over:
		return ErrMemory
	case strings.Contains(text, "out of memory"), strings.Contains(text, "cannot allocate memory"),
		strings.Contains(text, "failed to create new OS thread"):
		c.holder.Exhaust()
		return ErrMemory
	case strings.Contains(text, "stack overflow"), strings.Contains(text, "stack exceeds"):
		return ErrStack
	case text != "":
		return fmt.Errorf("%w: %.200s", ErrKilled, text)
	}
	return ErrKilled
}

// lastWords keeps the beginning of what is written.
type lastWords struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p[:min(len(p), maxWords-w.buf.Len())])
	return len(p), nil
}

func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}
