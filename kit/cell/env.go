package cell

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/rpc"
	"os"
	"path"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// env is the world of a program at the far end of a line.
func (w *World) env(line *rpc.Client) *kit.Env {
	f := &far{line}
	e := &kit.Env{
		Args: w.Args, Vars: w.Vars, Dir: w.Dir, Hostname: w.Hostname, PID: w.PID, User: w.User,
		Stdin: &handle{f, stdin}, Stdout: &handle{f, stdout}, Stderr: &handle{f, stderr},
		FS: files{f}, Net: network{f}, Procs: processes{f}, CPU: processor(w.CPU), Memory: memory(w.Memory),
	}
	if e.Vars == nil {
		e.Vars = map[string]string{}
	}
	if w.Terminal {
		e.Terminal = &kit.Terminal{}
	}
	return e
}

// far is the other end of the line.
type far struct{ *rpc.Client }

// call asks the host. A line that is broken is the end of the program.
func (f *far) call(method string, question, answer any) {
	if err := f.Call("Host."+method, question, answer); err != nil {
		os.Exit(1)
	}
}

// handle is something that is open at the host.
type handle struct {
	*far
	id int
}

func (h *handle) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	var a Transfer
	h.call("Read", Transfer{Handle: h.id, Size: len(p)}, &a)
	return copy(p, a.Data), a.Failed.err()
}

// ReadContext is for who would else read ahead. A cell whose context ends is killed.
func (h *handle) ReadContext(_ context.Context, p []byte) (int, error) { return h.Read(p) }

func (h *handle) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		var a Transfer
		h.call("Write", Transfer{Handle: h.id, Data: p[:min(len(p), maxRead)]}, &a)
		n, p, err = n+a.Size, p[min(a.Size, len(p)):], a.Failed.err()
	}
	return n, err
}

func (h *handle) Close() error {
	var a Transfer
	h.call("Close", h.id, &a)
	return a.Failed.err()
}

// files are what a program in a cell can do with files: open them.
type files struct{ *far }

func (f files) OpenFile(name string, flag int, perm fs.FileMode) (kit.File, error) {
	var a Opened
	f.call("Open", Opening{name, flag, perm}, &a)
	if a.Failed != nil {
		return nil, a.Failed.err()
	}
	return &file{handle: handle{f.far, a.Handle}, name: name, info: info{path.Base(name), a.Size, a.Mode}}, nil
}

// unsupported is the error of what no program in a cell does.
func unsupported(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: errors.ErrUnsupported}
}

func (files) Stat(name string) (fs.FileInfo, error)      { return nil, unsupported("stat", name) }
func (files) Lstat(name string) (fs.FileInfo, error)     { return nil, unsupported("lstat", name) }
func (files) ReadDir(name string) ([]fs.DirEntry, error) { return nil, unsupported("open", name) }
func (files) Readlink(name string) (string, error)       { return "", unsupported("readlink", name) }
func (files) Mkdir(name string, _ fs.FileMode) error     { return unsupported("mkdir", name) }
func (files) Remove(name string) error                   { return unsupported("remove", name) }
func (files) Rename(name, _ string) error                { return unsupported("rename", name) }
func (files) Link(name, _ string) error                  { return unsupported("link", name) }
func (files) Symlink(_, name string) error               { return unsupported("symlink", name) }
func (files) Chmod(name string, _ fs.FileMode) error     { return unsupported("chmod", name) }
func (files) Chown(name string, _, _ int) error          { return unsupported("chown", name) }
func (files) Chtimes(name string, _ time.Time) error     { return unsupported("chtimes", name) }
func (files) StatFS(name string) (kit.FSInfo, error) {
	return kit.FSInfo{}, unsupported("statfs", name)
}

// file is an open file, to be read or written from its beginning to its end.
type file struct {
	handle
	name string
	info info
}

func (f *file) Name() string                       { return f.name }
func (f *file) Stat() (fs.FileInfo, error)         { return f.info, nil }
func (f *file) Seek(int64, int) (int64, error)     { return 0, unsupported("seek", f.name) }
func (f *file) ReadAt([]byte, int64) (int, error)  { return 0, unsupported("read", f.name) }
func (f *file) WriteAt([]byte, int64) (int, error) { return 0, unsupported("write", f.name) }
func (f *file) Truncate(int64) error               { return unsupported("truncate", f.name) }
func (f *file) Sync() error                        { return nil }
func (f *file) ReadDir(int) ([]fs.DirEntry, error) { return nil, unsupported("readdir", f.name) }

// info describes an open file.
type info struct {
	name string
	size int64
	mode fs.FileMode
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }

// network is what a program in a cell can do with the network: connect.
type network struct{ *far }

func (n network) DialContext(ctx context.Context, kind, address string) (net.Conn, error) {
	q := Dialing{Network: kind, Address: address}
	if d, ok := ctx.Deadline(); ok {
		q.Within = max(time.Until(d), 1)
	}
	var a Opened
	n.call("Dial", q, &a)
	if a.Failed != nil {
		return nil, &net.OpError{Op: "dial", Net: kind, Err: a.Failed.err()}
	}
	return &conn{handle{n.far, a.Handle}, addr{kind, a.Local}, addr{kind, a.Remote}}, nil
}

func (network) Listen(kind, _ string) (net.Listener, error) {
	return nil, &net.OpError{Op: "listen", Net: kind, Err: errors.ErrUnsupported}
}

func (network) ListenPacket(kind, _ string) (net.PacketConn, error) {
	return nil, &net.OpError{Op: "listen", Net: kind, Err: errors.ErrUnsupported}
}

func (network) LookupHost(_ context.Context, host string) ([]string, error) {
	return nil, &net.DNSError{Err: errors.ErrUnsupported.Error(), Name: host}
}

func (network) Addrs() []net.IP { return nil }

// conn is a connection.
type conn struct {
	handle
	local, remote net.Addr
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(at time.Time) error {
	var a Transfer
	c.call("SetDeadline", Deadline{c.id, at}, &a)
	return a.Failed.err()
}

func (c *conn) SetReadDeadline(at time.Time) error  { return c.SetDeadline(at) }
func (c *conn) SetWriteDeadline(at time.Time) error { return c.SetDeadline(at) }

type addr struct{ network, text string }

func (a addr) Network() string { return a.network }
func (a addr) String() string  { return a.text }

// processor and memory are stated by who watches the cell.
type (
	processor kit.CPUInfo
	memory    kit.MemoryInfo
)

func (processor) Use(ctx context.Context, _ time.Duration) error { return ctx.Err() }
func (p processor) Info() kit.CPUInfo                            { return kit.CPUInfo(p) }
func (memory) Add(int64) error                                   { return nil }
func (m memory) Info() kit.MemoryInfo                            { return kit.MemoryInfo(m) }

var (
	_ io.ReadWriteCloser = (*handle)(nil)
	_ kit.File           = (*file)(nil)
	_ net.Conn           = (*conn)(nil)
)
