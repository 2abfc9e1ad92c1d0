package cri

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/aiopslab/aiopslab/kit"
)

// Streams are the ends of an interactive command. Nil ones are not wanted.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	TTY            bool
	Resize         <-chan kit.TerminalSize
}

// running returns a container that runs.
func (r *Runtime) running(id string) (*Container, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return nil, status.Errorf(codes.Unknown, "container %s is not running (%s)", id, c.state)
	}
	return c, nil
}

// Run executes a command in a container and returns when it has ended. If the command exits with a code other than
// 0, the error is a utilexec.CodeExitError.
func (r *Runtime) Run(ctx context.Context, id string, argv []string, s Streams) error {
	c, err := r.running(id)
	if err != nil {
		return err
	}
	env := c.environment(argv)
	env.Net = c.overheard(argv, env.Net)
	if s.Stdin != nil {
		env.Stdin = s.Stdin
	}
	if s.Stdout != nil {
		env.Stdout = s.Stdout
	}
	if s.Stderr != nil {
		env.Stderr = s.Stderr
	}
	if s.TTY {
		env.Terminal = &kit.Terminal{Resize: s.Resize}
		env.Stderr = env.Stdout
		env.Vars["TERM"] = "xterm"
	}
	prog, err := c.procs.lookup(env)
	if err != nil {
		return status.Errorf(codes.Unknown,
			"failed to exec in container: failed to start exec %q: OCI runtime exec failed: exec failed: unable to "+
				"start container process: %v", newID(), err)
	}
	p := c.procs.run(ctx, env, prog)
	select {
	case <-p.Done():
	case <-ctx.Done():
		select {
		case <-p.Done():
		case <-time.After(killPatience):
		}
		return ctx.Err()
	}
	if code := p.Wait(); code != 0 {
		return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: code}
	}
	return nil
}

// ExecSync implements the CRI.
func (r *Runtime) ExecSync(ctx context.Context, id string, argv []string,
	timeout time.Duration,
) (stdout, stderr []byte, err error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var out, errOut lockedBuffer
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	interrupted := r.interruption()
	go func() {
		select {
		case <-interrupted:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	err = r.Run(ctx, id, argv, Streams{Stdout: &out, Stderr: &errOut})
	if context.Cause(ctx) == errInterrupted {
		return nil, nil, errInterrupted
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = status.Errorf(codes.DeadlineExceeded, "failed to exec in container: timeout %v exceeded: %v", timeout,
			err)
	}
	return out.bytes(), errOut.bytes(), err
}

// Connect attaches to a container's main program until it ends or the client goes away.
func (r *Runtime) Connect(ctx context.Context, id string, s Streams) error {
	c, err := r.running(id)
	if err != nil {
		return err
	}
	if s.Stdin != nil && c.stdin != nil {
		go c.stdin.feed(s.Stdin)
	}
	if s.Resize != nil {
		go func() {
			for size := range s.Resize {
				select {
				case c.stdout.resize <- size:
				default:
				}
			}
		}()
	}
	var wait []*attachment
	if s.Stdout != nil {
		a := c.stdout.attach(s.Stdout)
		defer c.stdout.detach(a)
		wait = append(wait, a)
	}
	if s.Stderr != nil && c.stderr != c.stdout {
		a := c.stderr.attach(s.Stderr)
		defer c.stderr.detach(a)
		wait = append(wait, a)
	}
	for _, a := range wait {
		select {
		case <-a.gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Dial connects to a port of a sandbox, from inside it, as port-forward does.
func (r *Runtime) Dial(ctx context.Context, sandboxID string, port int32) (net.Conn, error) {
	s, err := r.sandbox(sandboxID)
	if err != nil {
		return nil, err
	}
	stack := s.host.NewStack()
	c, err := stack.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		stack.Close()
		return nil, fmt.Errorf("failed to connect to localhost:%d inside namespace %q, IPv4: %w", port, sandboxID, err)
	}
	return stackConn{c, stack.Close}, nil
}

// stackConn closes the stack it was made on.
type stackConn struct {
	net.Conn
	closeStack func()
}

func (c stackConn) Close() error {
	err := c.Conn.Close()
	c.closeStack()
	return err
}

// CloseWrite lets the other side see the end of input.
func (c stackConn) CloseWrite() error {
	return c.Conn.(interface{ CloseWrite() error }).CloseWrite()
}

// LogOf returns a container's log.
func (r *Runtime) LogOf(id string) (*Log, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	return c.log, nil
}

// maxSyncOutput bounds what ExecSync keeps of each stream, as containerd does.
const maxSyncOutput = 16 << 20

// lockedBuffer collects output that several goroutines may write.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := maxSyncOutput - b.buf.Len(); len(p) > room {
		b.buf.Write(p[:room])
	} else {
		b.buf.Write(p)
	}
	return len(p), nil
}

func (b *lockedBuffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes())
}
