package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/aiopslab/aiopslab/kit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func env(f kit.FS) *kit.Env { return &kit.Env{FS: f, Dir: "/"} }

// outcome describes the result of an operation so that two implementations can be compared.
func outcome(v any, err error) string {
	if err == nil {
		return fmt.Sprint(v)
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}

// TestAgreesWithTheKernel runs random operations on the kernel's file system and on a tree, and
// wants the same results and errors from both.
func TestAgreesWithTheKernel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		type system struct {
			fs   kit.FS
			path func(string) string
		}
		systems := []system{
			{kit.HostEnv().FS, func(n string) string { return dir + n }},
			{NewTree(Options{}).Root(), func(n string) string { return n }},
		}
		name := rapid.Custom(func(rt *rapid.T) string {
			parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", ".", ".."}), 1, 3).Draw(rt, "parts")
			// Never above the root, which the host's own directory is not.
			depth := 0
			for i, p := range parts {
				if p == ".." {
					if depth--; depth < 0 {
						parts[i], depth = ".", 0
					}
				} else if p != "." {
					depth++
				}
			}
			return "/" + strings.Join(parts, "/")
		})
		ops := map[string]func(system, string, string) string{
			"mkdir":  func(s system, a, _ string) string { return outcome(nil, s.fs.Mkdir(s.path(a), 0o755)) },
			"remove": func(s system, a, _ string) string { return outcome(nil, s.fs.Remove(s.path(a))) },
			"link":   func(s system, a, b string) string { return outcome(nil, s.fs.Link(s.path(a), s.path(b))) },
			"rename": func(s system, a, b string) string {
				if s.path("/") != "/" { // os.Rename has rules of its own on top of the kernel's.
					return outcome(nil, syscall.Rename(s.path(a), s.path(b)))
				}
				return outcome(nil, s.fs.Rename(a, b))
			},
			"symlink": func(s system, a, b string) string {
				return outcome(nil, s.fs.Symlink(strings.TrimPrefix(a, "/"), s.path(b)))
			},
			"readlink": func(s system, a, _ string) string { return outcome(s.fs.Readlink(s.path(a))) },
			"append": func(s system, a, b string) string {
				f, err := s.fs.OpenFile(s.path(a), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
				if err != nil {
					return outcome(nil, err)
				}
				defer f.Close()
				return outcome(f.Write([]byte(b)))
			},
			"create": func(s system, a, _ string) string {
				f, err := s.fs.OpenFile(s.path(a), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
				if err == nil {
					f.Close()
				}
				return outcome(nil, err)
			},
			"read": func(s system, a, _ string) string {
				f, err := s.fs.OpenFile(s.path(a), os.O_RDONLY, 0)
				if err != nil {
					return outcome(nil, err)
				}
				defer f.Close()
				b, err := io.ReadAll(f)
				return outcome(string(b), err)
			},
			"list": func(s system, a, _ string) string {
				list, err := s.fs.ReadDir(s.path(a))
				var names []string
				for _, d := range list {
					names = append(names, d.Name()+" "+d.Type().String())
				}
				return outcome(names, err)
			},
			"stat": func(s system, a, _ string) string {
				fi, err := s.fs.Stat(s.path(a))
				if err != nil || fi.IsDir() {
					return outcome("directory", err)
				}
				return fmt.Sprint(fi.Mode(), fi.Size())
			},
			"lstat": func(s system, a, _ string) string {
				fi, err := s.fs.Lstat(s.path(a))
				if err != nil || fi.IsDir() {
					return outcome("directory", err)
				}
				return fmt.Sprint(fi.Mode(), fi.Size())
			},
			"truncate": func(s system, a, _ string) string {
				f, err := s.fs.OpenFile(s.path(a), os.O_RDWR, 0)
				if err != nil {
					return outcome(nil, err)
				}
				defer f.Close()
				return outcome(nil, f.Truncate(5))
			},
		}
		var names []string
		for n := range ops {
			names = append(names, n)
		}
		slices.Sort(names)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			op, a, b := rapid.SampledFrom(names).Draw(rt, "op"), name.Draw(rt, "a"), name.Draw(rt, "b")
			if strings.ContainsAny(a+b, ".") && (op == "rename" || op == "remove" || op == "mkdir" || op == "create" || op == "link" || op == "symlink") {
				a, b = filepath.Clean(a), filepath.Clean(b) // A final dot is an error of its own kind.
			}
			if a == "/" || b == "/" {
				continue // The root of the one is a plain directory of the other.
			}
			want, got := ops[op](systems[0], a, b), ops[op](systems[1], a, b)
			if got != want {
				rt.Fatalf("%s %s %s: %s, the kernel says %s", op, a, b, got, want)
			}
		}
	})
}

func TestPermissions(t *testing.T) {
	tree := NewTree(Options{})
	ns := NewNamespace(tree)
	root, alice := env(ns.As(kit.User{})), env(ns.As(kit.User{UID: 1000, GID: 1000, Groups: []int{7}}))
	must(t, root.WriteFile("/secret", []byte("x"), 0o600))
	must(t, root.WriteFile("/public", []byte("x"), 0o644))
	must(t, root.FS.Mkdir("/tmp", 0o777))
	must(t, root.FS.Chmod("/tmp", 0o777|fs.ModeSticky))
	must(t, root.WriteFile("/tmp/roots", nil, 0o644))
	if _, err := alice.ReadFile("/secret"); !errors.Is(err, syscall.EACCES) {
		t.Errorf("read another's file: %v", err)
	}
	if _, err := alice.ReadFile("/public"); err != nil {
		t.Errorf("read a public file: %v", err)
	}
	if err := alice.WriteFile("/public", nil, 0); !errors.Is(err, syscall.EACCES) {
		t.Errorf("write a read-only file: %v", err)
	}
	if err := alice.WriteFile("/new", nil, 0o644); !errors.Is(err, syscall.EACCES) {
		t.Errorf("create in another's directory: %v", err)
	}
	must(t, alice.WriteFile("/tmp/mine", nil, 0o644))
	if fi, err := alice.FS.Stat("/tmp/mine"); err != nil || fi.Sys().(*kit.Owner).UID != 1000 {
		t.Errorf("owner of a new file: %+v, %v", fi, err)
	}
	if err := alice.FS.Remove("/tmp/roots"); !errors.Is(err, syscall.EPERM) {
		t.Errorf("remove another's file from a sticky directory: %v", err)
	}
	if err := alice.FS.Chmod("/public", 0o777); !errors.Is(err, syscall.EPERM) {
		t.Errorf("chmod another's file: %v", err)
	}
	must(t, root.FS.Chown("/secret", -1, 7))
	must(t, root.FS.Chmod("/secret", 0o640))
	if _, err := alice.ReadFile("/secret"); err != nil {
		t.Errorf("read through a supplementary group: %v", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMounts(t *testing.T) {
	root, volume := NewTree(Options{Type: "overlay"}), NewTree(Options{Type: "tmpfs"})
	ns := NewNamespace(root)
	e := env(ns.As(kit.User{}))
	v := env(volume.Root())
	must(t, v.MkdirAll("/sub/dir", 0o755))
	must(t, v.WriteFile("/sub/file", []byte("from the volume"), 0o644))

	must(t, ns.Mount("/mnt/rw", volume, MountOptions{}))
	other := NewNamespace(volume)
	must(t, ns.Bind("/mnt/ro", other, "sub", MountOptions{ReadOnly: true}))
	must(t, ns.Bind("/etc/one", other, "sub/file", MountOptions{}))

	if b, err := e.ReadFile("/etc/one"); err != nil || string(b) != "from the volume" {
		t.Errorf("a mounted file: %q, %v", b, err)
	}
	must(t, e.WriteFile("/mnt/rw/new", []byte("12345"), 0o644))
	if b, err := v.ReadFile("/new"); err != nil || string(b) != "12345" {
		t.Errorf("written through a mount: %q, %v", b, err)
	}
	if err := e.WriteFile("/mnt/ro/x", nil, 0o644); !errors.Is(err, syscall.EROFS) {
		t.Errorf("write to a read-only mount: %v", err)
	}
	if err := e.FS.Rename("/mnt/rw/new", "/elsewhere"); !errors.Is(err, syscall.EXDEV) {
		t.Errorf("rename across mounts: %v", err)
	}
	if err := e.FS.Remove("/mnt/rw"); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("remove a mount point: %v", err)
	}
	// Links and .. cross mounts as paths do.
	must(t, e.FS.Symlink("/mnt/ro/dir/../file", "/link"))
	if b, err := e.ReadFile("/link"); err != nil || string(b) != "from the volume" {
		t.Errorf("through a link: %q, %v", b, err)
	}
	if b, err := e.ReadFile("/mnt/ro/../../etc/one"); err != nil || string(b) != "from the volume" {
		t.Errorf("out of a mount: %q, %v", b, err)
	}
	if i, err := e.FS.StatFS("/mnt/rw/new"); err != nil || i.Type != "tmpfs" || i.Mount != "/mnt/rw" {
		t.Errorf("statfs: %+v, %v", i, err)
	}
	inner, err := ns.Sub("/mnt")
	must(t, err)
	if _, err := env(inner.As(kit.User{})).ReadFile("/rw/new"); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("a mount shows in a namespace below it: %v", err)
	}
	ns.SetReadOnly()
	if err := e.WriteFile("/x", nil, 0o644); !errors.Is(err, syscall.EROFS) {
		t.Errorf("write to a read-only root: %v", err)
	}
	must(t, e.WriteFile("/mnt/rw/still", nil, 0o644))
}

func TestCloneAndSave(t *testing.T) {
	disk := &Disk{Total: 1 << 20}
	tree := NewTree(Options{Type: "ext4", Disk: disk})
	e := env(tree.Root())
	must(t, e.MkdirAll("/a/b", 0o750))
	must(t, e.WriteFile("/a/f", []byte("original"), 0o640))
	must(t, e.FS.Link("/a/f", "/a/same"))
	must(t, e.FS.Symlink("../f", "/a/b/l"))
	must(t, e.FS.Chown("/a/f", 5, 6))
	must(t, e.FS.Chtimes("/a/f", time.Unix(1000, 0)))

	clone := tree.Clone(disk)
	saved, err := tree.MarshalBinary()
	must(t, err)
	must(t, e.WriteFile("/a/f", []byte("changed"), 0))
	must(t, e.RemoveAll("/a/b"))

	restored, err := Unmarshal(saved, disk)
	must(t, err)
	for name, c := range map[string]*Tree{"clone": clone, "saved": restored} {
		ce := env(c.Root())
		if b, err := ce.ReadFile("/a/b/l"); err != nil || string(b) != "original" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		fi, err := c.Root().Stat("/a/f")
		must(t, err)
		if o := fi.Sys().(*kit.Owner); o.UID != 5 || o.GID != 6 || o.Links != 2 || fi.Mode() != 0o640 || !fi.ModTime().Equal(time.Unix(1000, 0)) {
			t.Errorf("%s: %v %+v", name, fi.Mode(), o)
		}
		must(t, ce.WriteFile("/a/same", []byte("both"), 0)) // Hard links stay together.
		if b, _ := ce.ReadFile("/a/f"); string(b) != "both" {
			t.Errorf("%s: a hard link came apart: %q", name, b)
		}
	}
	if b, _ := e.ReadFile("/a/f"); string(b) != "changed" {
		t.Errorf("the original was changed through its clone: %q", b)
	}
	if _, err := Unmarshal([]byte("garbage"), nil); err == nil {
		t.Error("garbage was read as a tree")
	}
}

func TestGraft(t *testing.T) {
	disk := &Disk{Total: 1 << 20}
	host, image := NewTree(Options{Disk: disk}), NewTree(Options{})
	must(t, env(image.Root()).WriteFile("/bin", []byte("program"), 0o755))
	he := env(host.Root())
	must(t, he.MkdirAll("/containers", 0o755))
	must(t, host.Graft("/containers/a", image))
	must(t, host.Graft("/containers/b", image))
	must(t, he.WriteFile("/containers/a/bin", []byte("changed!"), 0))
	if b, _ := he.ReadFile("/containers/b/bin"); string(b) != "program" {
		t.Errorf("a graft was changed through another: %q", b)
	}
	if bytes, _ := host.UsedBy("/containers/a"); bytes != 8 || disk.Used() != 15 {
		t.Errorf("%d bytes used below the graft, %d on the disk", bytes, disk.Used())
	}
	must(t, he.RemoveAll("/containers/a"))
	if disk.Used() != 7 {
		t.Errorf("%d bytes on the disk after a graft was removed", disk.Used())
	}
}

func TestDiskFills(t *testing.T) {
	disk := &Disk{Total: 1000}
	a, b := NewTree(Options{Disk: disk}), NewTree(Options{Disk: disk})
	must(t, env(a.Root()).WriteFile("/x", make([]byte, 600), 0o644))
	if err := env(b.Root()).WriteFile("/y", make([]byte, 600), 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write to a full disk: %v", err)
	}
	must(t, a.Root().Remove("/x"))
	must(t, env(b.Root()).WriteFile("/y", make([]byte, 600), 0o644))
	if disk.Used() != 600 {
		t.Errorf("disk holds %d bytes, want 600", disk.Used())
	}
	b.Discard()
	if disk.Used() != 0 {
		t.Errorf("disk holds %d bytes after its trees are gone", disk.Used())
	}
}

func TestFsGroup(t *testing.T) {
	tree := NewTree(Options{Mode: 0o777})
	e := env(tree.Root())
	must(t, e.WriteFile("/f", nil, 0o600))
	must(t, tree.Own("/", 2000, false))
	fi, _ := e.FS.Stat("/f")
	if o := fi.Sys().(*kit.Owner); o.GID != 2000 || fi.Mode() != 0o660 {
		t.Errorf("%v %+v", fi.Mode(), o)
	}
	member := env(NewNamespace(tree).As(kit.User{UID: 9, GID: 9, Groups: []int{2000}}))
	must(t, member.WriteFile("/new", nil, 0o644))
	if fi, _ := e.FS.Stat("/new"); fi.Sys().(*kit.Owner).GID != 2000 {
		t.Error("a new file did not inherit the directory's group")
	}
}

func TestLock(t *testing.T) {
	root := NewTree(Options{}).Root()
	open := func() kit.File {
		t.Helper()
		f, err := root.OpenFile("/lock", os.O_RDWR|os.O_CREATE, 0o600)
		must(t, err)
		return f
	}
	a, b := open(), open()
	must(t, a.(kit.FileLocker).TryLock())
	must(t, a.(kit.FileLocker).TryLock())
	if err := b.(kit.FileLocker).TryLock(); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("a lock that is taken: %v", err)
	}
	must(t, a.Close())
	must(t, b.(kit.FileLocker).TryLock())
}
