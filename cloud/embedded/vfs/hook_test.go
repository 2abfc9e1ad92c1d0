package vfs

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/kit"
)

// disk returns a namespace with a volume at /data, a link to it, and files on both.
func disk(t *testing.T) (*Namespace, *kit.Env) {
	t.Helper()
	ns := NewNamespace(NewTree(Options{}))
	if err := ns.Mount("/data", NewTree(Options{}), MountOptions{}); err != nil {
		t.Fatal(err)
	}
	env := &kit.Env{FS: ns.As(kit.User{}), Dir: "/"}
	for _, err := range []error{
		env.MkdirAll("/data/db", 0o755), env.WriteFile("/data/db/journal", []byte("text"), 0o644),
		env.FS.Symlink("/data", "/link"), env.WriteFile("/other", []byte("text"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return ns, env
}

func TestHookSeesEveryOperation(t *testing.T) {
	ns, env := disk(t)
	var seen []string
	ns.SetHook(func(method string, paths ...string) syscall.Errno {
		seen = append(seen, method+" "+strings.Join(paths, " "))
		return 0
	})
	files := env.FS
	f, err := files.OpenFile("/link/db/journal", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Read(make([]byte, 1))
	f.ReadAt(make([]byte, 1), 0)
	f.Write([]byte("x"))
	f.WriteAt([]byte("x"), 0)
	f.Sync()
	f.Truncate(1)
	f.Stat()
	f.(kit.FileLocker).TryLock()
	f.Close()
	g, err := files.OpenFile("/data/db/new", os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	g.Close()
	d, err := files.OpenFile("/data/db", os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.ReadDir(-1)
	d.Close()
	files.ReadDir("/data/db")
	files.Stat("/link")
	files.Lstat("/link")
	files.Readlink("/link")
	files.Mkdir("/data/dir", 0o755)
	files.Rename("/data/dir", "/data/moved")
	files.Link("/data/db/new", "/data/hard")
	files.Symlink("hard", "/data/soft")
	files.Chmod("/data/hard", 0o600)
	files.Remove("/data/hard")
	files.Remove("/data/moved")
	files.StatFS("/link/db")
	want := []string{
		"open /data/db/journal", "read /data/db/journal", "read /data/db/journal", "write /data/db/journal", "write /data/db/journal",
		"fsync /data/db/journal", "setattr /data/db/journal", "getattr /data/db/journal", "setlk /data/db/journal", "flush /data/db/journal",
		"create /data/db/new", "flush /data/db/new",
		"opendir /data/db", "readdir /data/db", "flush /data/db", "opendir /data/db", "readdir /data/db",
		"getattr /data", "getattr /link", "readlink /link",
		"mkdir /data/dir", "rename /data/dir /data/moved", "link /data/db/new /data/hard", "symlink /data/soft",
		"setattr /data/hard", "unlink /data/hard", "rmdir /data/moved", "statfs /data/db",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

func TestHookMakesOperationsFail(t *testing.T) {
	ns, env := disk(t)
	open, err := env.FS.OpenFile("/data/db/journal", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	ns.SetHook(func(_ string, paths ...string) syscall.Errno {
		if slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, "/data/") }) {
			return syscall.EIO
		}
		return 0
	})
	fail := func(name string) error { _, err := env.FS.OpenFile(name, os.O_RDONLY, 0); return err }
	write := func() error { _, err := open.Write([]byte("x")); return err }
	read := func() error { _, err := open.Read(make([]byte, 1)); return err }
	stat := func() error { _, err := env.FS.Stat("/data/db"); return err }
	for _, c := range []struct {
		err  error
		want string
	}{
		{fail("/data/db/journal"), "open /data/db/journal: input/output error"},
		{fail("/link/db/journal"), "open /link/db/journal: input/output error"},
		{write(), "write /data/db/journal: input/output error"},
		{read(), "read /data/db/journal: input/output error"},
		{open.Sync(), "sync /data/db/journal: input/output error"},
		{stat(), "stat /data/db: input/output error"},
		{env.FS.Remove("/data/db/journal"), "remove /data/db/journal: input/output error"},
		{env.FS.Rename("/other", "/data/other"), "rename /other /data/other: input/output error"},
		{open.Close(), "close /data/db/journal: input/output error"},
	} {
		if c.err == nil || c.err.Error() != c.want || !errors.Is(c.err, syscall.EIO) {
			t.Errorf("%v; want %s", c.err, c.want)
		}
	}
	if _, ok := errors.AsType[*fs.PathError](fail("/data/db/journal")); !ok {
		t.Error("it is no *fs.PathError")
	}
	if _, err := open.Stat(); err != nil && !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	if err := write(); !errors.Is(err, syscall.EIO) && !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a closed file: %v", err)
	}
	if b, err := env.ReadFile("/other"); err != nil || string(b) != "text" {
		t.Errorf("%q, %v", b, err)
	}
	// The hook is the namespace's, not the volume's, and not that of who sets it up.
	if err := ns.Mount("/data/db/below", NewTree(Options{}), MountOptions{}); err != nil {
		t.Error(err)
	}
	ns.SetHook(nil)
	if b, err := env.ReadFile("/data/db/journal"); err != nil || string(b) != "text" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestHookLeavesDevicesAlone(t *testing.T) {
	tree := NewTree(Options{})
	if err := tree.AddDevice("/null", 0o666, Device{Open: func(int) (Stream, error) { return nullStream{}, nil }}); err != nil {
		t.Fatal(err)
	}
	ns := NewNamespace(tree)
	ns.SetHook(func(string, ...string) syscall.Errno { return syscall.EIO })
	f, err := ns.As(kit.User{}).OpenFile("/null", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

type nullStream struct{}

func (nullStream) Read([]byte) (int, error)    { return 0, nil }
func (nullStream) Write(p []byte) (int, error) { return len(p), nil }
