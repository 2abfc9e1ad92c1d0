// Package process is an environment in a process of its own. Whatever the agent makes run there, it
// cannot reach the process that keeps the record and gives the verdict; and however the environment
// ends, its supervisor learns of it and says why.
//
//	env, err := process.Start(ctx, process.Options{Program: "aiopslab", Args: []string{"worker"}, Dir: dir})
//	err = env.Open(ctx)
//	s := session.Session{Environment: env, ...}
//
// Supervisor and environment speak in lines of JSON: requests go over the standard input of the
// process, and answers and events come back over a pipe, in one order. No argument and no variable of
// the process tells what it is for. The process ends when its supervisor does.
package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/session"
)

const (
	// DefaultCeiling is how much memory an environment may take, in bytes. It takes less than a quarter
	// of that by itself.
	DefaultCeiling = 4 << 30
	// watchInterval is how often that is looked at: memory can grow by 2 GB a second.
	watchInterval = 100 * time.Millisecond
	// answerFD is where the process writes.
	answerFD = 3
)

// Options are how the process is started.
type Options struct {
	Program string
	Args    []string
	// Dir is for its files. It is the caller's to remove.
	Dir string
	// Ceiling is how much memory the process and those it starts may take; 0 is DefaultCeiling. If they
	// take more, the process is killed.
	Ceiling int64
	// Env are the variables of the process.
	Env []string
	// Place is where the process runs, instead of Program on this machine. Its memory is that place's to limit, and
	// it has a directory of its own; Dir is for what comes from it. It may be nil.
	Place Place
	// Worlds are where applications are kept that environments were opened for. If nil, that is up to the process.
	Worlds Worlds
	// Log is for what the process has to tell: the lines that it logs, at the level that it has when Open
	// is called, and its last words. A run has its own. It may be nil.
	Log *slog.Logger
	// grace is how long a request may go on that was cancelled; 0 is defaultGrace.
	grace time.Duration
}

// Worlds are applications that were deployed, kept by the supervisor for the environments that are opened next. They
// are safe for concurrent use. A world comes from a process in which no agent has had its turn yet.
type Worlds interface {
	// Get returns what was kept of an application; nil for nothing.
	Get(a *app.App) []byte
	// Put keeps a world instead of the last one of the application.
	Put(a *app.App, world []byte)
}

// Environment is an environment in another process.
type Environment struct {
	Options
	*conn
	cmd    *exec.Cmd // nil if it runs at another place
	leave  func()    // ends it there
	stderr *ends
	done   chan struct{} // closed when the process is gone
	death  session.Death // known then

	mu     sync.Mutex
	killed *session.Death // why we have killed it
	memory int64          // as of the last look
	base   int64          // before an agent had its way
	inlet  *inlet         // from this machine to the cluster's API; nil if it is here
}

var _ session.Environment = (*Environment)(nil)

// Start starts the process. It runs until Close, and no longer than this process.
func Start(o Options) (*Environment, error) {
	if o.Ceiling == 0 {
		o.Ceiling = DefaultCeiling
	}
	if o.grace == 0 {
		o.grace = defaultGrace
	}
	e := &Environment{Options: o, stderr: &ends{}, done: make(chan struct{})}
	requests, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, answers, err := os.Pipe()
	if err != nil {
		in.Close()
		requests.Close()
		return nil, err
	}
	e.conn = newConn(in, o.Log)
	if o.Place != nil {
		e.lodge(requests, answers, out)
		return e, nil
	}
	defer requests.Close()
	defer answers.Close()
	e.cmd = exec.Command(o.Program, o.Args...)
	e.cmd.Stdin, e.cmd.Stdout, e.cmd.Stderr = requests, e.stderr, e.stderr
	e.cmd.ExtraFiles = []*os.File{answers}
	e.cmd.Env = append(o.Env, fmt.Sprintf("GOMEMLIMIT=%d", o.Ceiling/8*5)) // The rest is for its children.
	e.cmd.WaitDelay = time.Second
	e.cmd.SysProcAttr = attributes() // Ctrl-C on the terminal is for the supervisor alone.
	started := make(chan error)
	go e.live(started, out)
	if err := <-started; err != nil {
		in.Close()
		out.Close()
		return nil, err
	}
	return e, nil
}

// live is the process from its start to its end.
func (e *Environment) live(started chan<- error, out *os.File) {
	runtime.LockOSThread() // The kernel ends the process when the thread that started it does.
	defer runtime.UnlockOSThread()
	err := e.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	read := e.listen(out)
	gone := make(chan struct{})
	go e.watch(gone)
	err = e.cmd.Wait()
	close(gone)
	e.killTree() // What it has started may still be there, and hold the pipe.
	e.ended(err, read, out)
}

// listen reads what the process says. The channel is closed when all is read.
func (e *Environment) listen(out *os.File) (read chan struct{}) {
	read = make(chan struct{})
	go func() {
		defer close(read)
		if err := e.conn.read(out); err != nil {
			e.Kill(&session.Death{Why: "it wrote what cannot be understood: " + err.Error()})
		}
	}()
	return read
}

// ended finds out how the process has ended, and tells those who wait for it.
func (e *Environment) ended(err error, read <-chan struct{}, out *os.File) {
	_ = out.SetReadDeadline(time.Now().Add(time.Second))
	<-read
	out.Close()
	e.in.Close()
	e.death = e.autopsy(err)
	e.death.Idle = !e.acting()
	e.bury()
	close(e.done)
}

// bury logs how the process has ended: as a matter of course if we have ended it, else with its last words.
func (e *Environment) bury() {
	e.mu.Lock()
	killed := e.killed != nil
	e.mu.Unlock()
	where := slog.Any("place", e.Place)
	if e.cmd != nil {
		where = slog.Int("pid", e.cmd.Process.Pid)
	}
	log := e.logger().With(where, "why", e.death.Why)
	if killed {
		log.Debug("the process of the environment was ended", "last_words", e.stderr.String())
		return
	}
	log.Warn("the process of the environment ended by itself", "last_words", e.stderr.String())
}

// autopsy says how the process has ended.
func (e *Environment) autopsy(err error) session.Death {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.killed != nil {
		return *e.killed
	}
	if d, ok := errors.AsType[*session.Death](err); ok {
		return *d
	}
	text := e.stderr.String()
	d := session.Death{Why: epitaph(text, err)}
	for _, sign := range []string{
		"stack overflow", "goroutine stack exceeds", "out of memory",
		"cannot allocate memory",
	} {
		d.Exhausted = d.Exhausted || strings.Contains(text, sign)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		st, _ := exit.Sys().(syscall.WaitStatus)
		if st.Signaled() && st.Signal() == syscall.SIGKILL && e.memory > e.Ceiling/2 {
			d.Why, d.Exhausted = fmt.Sprintf("it was killed when it had taken %d MB of memory", e.memory>>20), true
		}
	}
	d.Exhausted = d.Exhausted && e.base < e.Ceiling/2
	return d
}

// epitaph is the message of a panic, or the last that was said.
func epitaph(stderr string, err error) string {
	status := "it exited"
	if err != nil {
		status = err.Error()
	}
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	line := lines[len(lines)-1]
	for _, l := range lines {
		for _, mark := range []string{"panic: ", "fatal error: ", "runtime: goroutine stack exceeds"} {
			if strings.HasPrefix(l, mark) {
				return strings.TrimSpace(l) + " (" + status + ")"
			}
		}
	}
	if line == "" {
		return status
	}
	return line + " (" + status + ")"
}

// watch kills the process when it takes too much memory.
func (e *Environment) watch(gone <-chan struct{}) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-gone:
			return
		}
		used := memory(e.cmd.Process.Pid)
		e.mu.Lock()
		e.memory = used
		mine := e.base < e.Ceiling/2
		e.mu.Unlock()
		if used > e.Ceiling {
			e.Kill(&session.Death{
				Why:       fmt.Sprintf("it took more than %d MB of memory", e.Ceiling>>20),
				Exhausted: mine,
			})
			return
		}
	}
}

// admitted remembers how much memory there was in use before an agent had its way.
func (e *Environment) admitted() {
	used := e.Memory()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.base = used
}

// Kill ends the process at once, for a reason. The first counts.
func (e *Environment) Kill(why *session.Death) {
	e.mu.Lock()
	if e.killed == nil {
		e.killed = why
	}
	e.mu.Unlock()
	if e.cmd == nil {
		e.leave()
		return
	}
	e.killTree()
}

func (e *Environment) killTree() {
	for _, pid := range tree(e.cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = syscall.Kill(-e.cmd.Process.Pid, syscall.SIGKILL)
}

// Close ends the process, and waits until it is gone.
func (e *Environment) Close() {
	e.Kill(&session.Death{Why: "it was closed"})
	<-e.done
}

// PID is the number of the process, if it runs on this machine.
func (e *Environment) PID() int {
	if e.cmd == nil {
		return 0
	}
	return e.cmd.Process.Pid
}

// Memory is how many bytes the process and those it has started take, if they run on this machine.
func (e *Environment) Memory() int64 {
	if e.cmd == nil {
		return 0
	}
	return memory(e.cmd.Process.Pid)
}

// Done is closed when the process is gone.
func (e *Environment) Done() <-chan struct{} { return e.done }

// Err says how it has ended. It waits for that.
func (e *Environment) Err() *session.Death {
	<-e.done
	d := e.death
	return &d
}

// dir is where the process has its files; none if that is up to it.
func (e *Environment) dir() string {
	if e.Place != nil {
		return ""
	}
	return e.Dir
}

// Open starts the cluster.
func (e *Environment) Open(ctx context.Context) error {
	return e.call(ctx, "open", openParams{Dir: e.dir(), Log: wanted(e.logger())}, nil)
}

// OpenFor starts the cluster for a run with an application, which may be in it already, if it was kept.
func (e *Environment) OpenFor(ctx context.Context, a *app.App, seed uint64) error {
	run := &runParams{App: a.Name, Archive: a.Archive, Seed: seed}
	if e.Worlds != nil {
		run.Handed, run.World = true, e.Worlds.Get(a)
		e.takeWorlds(func(world []byte) { e.Worlds.Put(a, world) })
	}
	return e.call(ctx, "open", openParams{Dir: e.dir(), Log: wanted(e.logger()), Run: run}, nil)
}

// Cluster is one that is there already, and what of it is the environment's.
type Cluster struct {
	Kubeconfig []byte   `json:"kubeconfig"`       // with one context
	Run        string   `json:"run"`              // what is made there is marked with it
	Namespaces []string `json:"namespaces"`       // that were made for it
	Suffix     string   `json:"suffix,omitempty"` // of their names; see [cloud.Tenancy]
	Load       string   `json:"load,omitempty"`   // the one of the load generator, likewise
	// Registry is the prefix of the registry that the lab's images come from; none if they are where their names say.
	Registry string `json:"registry,omitempty"`
	// Telemetry is where the agent's actions read metrics and traces, instead of what is deployed for the run.
	Telemetry observe.External `json:"telemetry,omitzero"`
}

// OpenOn uses a cluster that is there. What is made there is the caller's to remove.
func (e *Environment) OpenOn(ctx context.Context, c Cluster) error {
	return e.call(ctx, "open", openParams{Dir: e.dir(), Log: wanted(e.logger()), On: &c}, nil)
}
