package cell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/rpc"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// maxRead is how much is read at a time.
const maxRead = 64 << 10

// The handles of the standard streams.
const (
	stdin = iota
	stdout
	stderr
	firstHandle
)

// Run runs a program in a cell, in the world of env.
func Run(ctx context.Context, env *kit.Env, name string) error {
	c, err := Start(ctx, env, name)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := &Host{
		ctx: ctx, env: env, open: map[int]any{stdin: env.Stdin, stdout: env.Stdout, stderr: env.Stderr},
		next: firstHandle,
	}
	defer h.closeAll()
	server := rpc.NewServer()
	if err := server.RegisterName("Host", h); err != nil {
		return err
	}
	go server.ServeConn(c.Line)
	<-c.Done()
	if code := h.code.Load(); code != nil {
		return kit.Exit(*code)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch err := c.Cause(); {
	case errors.Is(err, ErrMemory):
		return kit.Exit(kit.ExitSignal + int(syscall.SIGKILL))
	case errors.Is(err, ErrStack):
		fmt.Fprintln(env.Stderr, "Segmentation fault")
		return kit.Exit(kit.ExitSignal + int(syscall.SIGSEGV))
	default:
		return err
	}
}

// Host does for a program in a cell what it cannot do there. Its methods are what the program calls; each
// call has a goroutine of its own.
type Host struct {
	ctx  context.Context
	env  *kit.Env
	code atomic.Pointer[int]

	mu   sync.Mutex
	next int
	open map[int]any // by handle
}

// World is what a program finds.
type World struct {
	Args     []string
	Vars     map[string]string
	Dir      string
	Hostname string
	PID      int
	User     kit.User
	Terminal bool
	CPU      kit.CPUInfo
	Memory   kit.MemoryInfo
}

// World tells the program its world.
func (h *Host) World(_ int, w *World) error {
	e := h.env
	*w = World{
		Args: e.Args, Vars: e.Vars, Dir: e.Dir, Hostname: e.Hostname, PID: e.PID, User: e.User,
		Terminal: e.Terminal != nil,
	}
	if e.CPU != nil {
		w.CPU = e.CPU.Info()
	}
	if e.Memory != nil {
		w.Memory = e.Memory.Info()
	}
	return nil
}

// Alive returns when the program is to end.
func (h *Host) Alive(_ int, _ *int) error {
	<-h.ctx.Done()
	return nil
}

// Exit takes the exit code of the program. It is the last call that a program makes.
func (h *Host) Exit(code int, _ *int) error {
	h.code.Store(&code)
	return nil
}

// add gives something a handle.
func (h *Host) add(v any) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	h.open[h.next] = v
	return h.next
}

func (h *Host) get(handle int) any {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open[handle]
}

// closeAll closes what the program has left open. The standard streams are not its own.
func (h *Host) closeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for handle, v := range h.open {
		if c, ok := v.(io.Closer); ok && handle > firstHandle {
			c.Close()
		}
	}
}

// Transfer is data that is read or written.
type Transfer struct {
	Handle int
	Size   int // bytes to read
	Data   []byte
	Failed *Failure
}

// contextReader is a reader that can be interrupted.
type contextReader interface {
	ReadContext(ctx context.Context, p []byte) (int, error)
}

// contextWriter is a writer that can be interrupted.
type contextWriter interface {
	WriteContext(ctx context.Context, p []byte) (int, error)
}

// Read reads from a handle.
func (h *Host) Read(q Transfer, a *Transfer) error {
	p := make([]byte, min(max(q.Size, 0), maxRead))
	var n int
	err := error(syscall.EBADF)
	switch r := h.get(q.Handle).(type) {
	case contextReader:
		n, err = r.ReadContext(h.ctx, p)
	case io.Reader:
		n, err = r.Read(p)
	}
	a.Data, a.Failed = p[:n], failureOf(err)
	return nil
}

// Write writes to a handle. Size is what was written.
func (h *Host) Write(q Transfer, a *Transfer) error {
	err := error(syscall.EBADF)
	switch w := h.get(q.Handle).(type) {
	case contextWriter:
		a.Size, err = w.WriteContext(h.ctx, q.Data)
	case io.Writer:
		a.Size, err = w.Write(q.Data)
	}
	a.Failed = failureOf(err)
	return nil
}

// Close closes a handle.
func (h *Host) Close(handle int, a *Transfer) error {
	v := h.get(handle)
	h.mu.Lock()
	delete(h.open, handle)
	h.mu.Unlock()
	if c, ok := v.(io.Closer); ok && handle > firstHandle {
		a.Failed = failureOf(c.Close())
	}
	return nil
}

// Opening is a file that is to be opened.
type Opening struct {
	Name string
	Flag int
	Perm fs.FileMode
}

// Opened is a file, or a connection.
type Opened struct {
	Handle        int
	Mode          fs.FileMode
	Size          int64
	Local, Remote string
	Failed        *Failure
}

// Open opens a file.
func (h *Host) Open(q Opening, a *Opened) error {
	f, err := h.env.FS.OpenFile(q.Name, q.Flag, q.Perm)
	if err != nil {
		a.Failed = failureOf(err)
		return nil
	}
	if fi, err := f.Stat(); err == nil {
		a.Mode, a.Size = fi.Mode(), fi.Size()
	}
	a.Handle = h.add(f)
	return nil
}

// Dialing is a connection that is to be made.
type Dialing struct {
	Network, Address string
	Within           time.Duration // 0 is as long as it takes
}

// Dial connects.
func (h *Host) Dial(q Dialing, a *Opened) error {
	ctx := h.ctx
	if q.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.Within)
		defer cancel()
	}
	c, err := h.env.Net.DialContext(ctx, q.Network, q.Address)
	if err != nil {
		a.Failed = failureOf(err)
		return nil
	}
	a.Handle, a.Local, a.Remote = h.add(c), c.LocalAddr().String(), c.RemoteAddr().String()
	return nil
}

// Deadline is one of a connection.
type Deadline struct {
	Handle int
	At     time.Time
}

// SetDeadline bounds the operations of a connection.
func (h *Host) SetDeadline(q Deadline, a *Transfer) error {
	if c, ok := h.get(q.Handle).(net.Conn); ok {
		a.Failed = failureOf(c.SetDeadline(q.At))
	}
	return nil
}
