package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/server"
)

const (
	// workerTimeout is how long a worker may take until it can be asked.
	workerTimeout = time.Minute
	// keptStderr is how much of what a worker writes to standard error is kept.
	keptStderr = 64 << 10
	// idleConns are how many connections to a worker are kept for further requests.
	idleConns = 16
)

// processes are workers that are processes of this program.
type processes struct {
	program string
	args    []string // behind the name of the command
	dir     string   // of their sockets and locks
	setups  int      // how many set their environments up at a time
	started atomic.Int64
}

// Start starts a worker. It ends when this process does, however that ends: its standard input is
// closed then.
func (p *processes) Start(ctx context.Context) (server.WorkerProcess, error) {
	ctx, cancel := context.WithTimeout(ctx, workerTimeout)
	defer cancel()
	n := p.started.Add(1)
	socket := filepath.Join(p.dir, strconv.FormatInt(n, 10))
	queue := filepath.Join(p.dir, fmt.Sprintf("queue-%d", n%int64(p.setups)))
	cmd := exec.Command(p.program, append([]string{"worker", "--socket", socket, "--queue", queue}, p.args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C on the terminal is for the server alone.
	cmd.WaitDelay = answerTimeout
	// Nothing below it needs the token.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AIOPSLAB_TOKEN=") })
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	w := &process{cmd: cmd, end: sync.OnceFunc(func() { _ = stdin.Close() }), done: make(chan struct{})}
	cmd.Stdout = signalWriter{sync.OnceFunc(func() { close(ready) })}
	cmd.Stderr = &w.stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w.Transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
		MaxIdleConnsPerHost: idleConns, DisableCompression: true,
	}
	go w.wait()
	select {
	case <-ready:
		return w, nil
	case <-w.done:
		return nil, w.Err()
	case <-ctx.Done():
		w.Kill()
		<-w.done
		return nil, fmt.Errorf("it does not start: %w", context.Cause(ctx))
	}
}

// process is a worker.
type process struct {
	*http.Transport
	cmd     *exec.Cmd
	stderr  tail
	end     func()
	stopped atomic.Bool
	done    chan struct{}
	err     error
}

func (w *process) wait() {
	defer close(w.done)
	err := w.cmd.Wait()
	w.CloseIdleConnections()
	w.end()
	if !w.stopped.Load() {
		w.err = errors.New(epitaph(w.stderr.String(), err))
	}
}

// epitaph says why a worker died: the message of a panic, or the last it said.
func epitaph(stderr string, err error) string {
	line := lastLine(stderr, err)
	for l := range strings.Lines(stderr) {
		if strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") {
			line = strings.TrimSpace(l)
			break
		}
	}
	if status := fmt.Sprint(err); line != status {
		line += " (" + status + ")"
	}
	return line
}

func (w *process) Stop() {
	w.stopped.Store(true)
	w.end()
}

// Kill kills the worker, and what its agent has started.
func (w *process) Kill() { _ = syscall.Kill(-w.cmd.Process.Pid, syscall.SIGKILL) }

func (w *process) Done() <-chan struct{} { return w.done }

func (w *process) Err() error {
	<-w.done
	return w.err
}

// signalWriter calls a function when something is written.
type signalWriter struct{ f func() }

func (w signalWriter) Write(b []byte) (int, error) {
	w.f()
	return len(b), nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, b...)
	if over := len(t.b) - keptStderr; over > 0 {
		t.b = t.b[over:]
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.Clone(t.b))
}
