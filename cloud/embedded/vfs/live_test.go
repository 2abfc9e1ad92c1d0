package vfs

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/aiopslab/aiopslab/kit"
)

type textStream struct{ *strings.Reader }

func (textStream) Write([]byte) (int, error) { return 0, syscall.EACCES }

func TestLiveDirectory(t *testing.T) {
	elsewhere := NewNamespace(NewTree(Options{}))
	other := env(elsewhere.As(kit.User{}))
	must(t, other.WriteFile("/f", []byte("from elsewhere"), 0o644))
	must(t, elsewhere.Mount("/vol", NewTree(Options{}), MountOptions{}))
	must(t, other.WriteFile("/vol/g", []byte("mounted there"), 0o644))

	tree := NewTree(Options{Type: "proc"})
	must(t, env(tree.Root()).WriteFile("/fixed", nil, 0o644))
	there := []string{"7"}
	tree.MakeLive(Live{
		List: func() []string { return there },
		Open: func(name string) *LiveDir {
			if name != "7" {
				return nil
			}
			say := func() (Stream, error) { return textStream{strings.NewReader("seven")}, nil }
			return &LiveDir{
				User:  kit.User{UID: 5},
				Files: map[string]LiveFile{"name": {Device{Open: func(int) (Stream, error) { return say() }, Size: func() int64 { return 5 }}, 0o400}},
				Jumps: map[string]Jump{"root": func(u kit.User) (*Namespace, error) {
					if u.UID != 0 {
						return nil, syscall.EACCES
					}
					return elsewhere, nil
				}},
			}
		},
	})
	ns := NewNamespace(NewTree(Options{}))
	must(t, ns.Mount("/proc", tree, MountOptions{}))
	root, user := env(ns.As(kit.User{})), env(ns.As(kit.User{UID: 9}))
	list, err := root.FS.ReadDir("/proc")
	if err != nil || len(list) != 2 || list[0].Name() != "7" || !list[0].IsDir() {
		t.Errorf("list: %v, %v", list, err)
	}
	for name, want := range map[string]string{"/proc/7/name": "seven", "/proc/7/root/f": "from elsewhere", "/proc/7/root/vol/g": "mounted there"} {
		if b, err := root.ReadFile(name); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		if _, err := user.ReadFile(name); !errors.Is(err, syscall.EACCES) {
			t.Errorf("%s as somebody else: %v", name, err)
		}
	}
	must(t, root.WriteFile("/proc/7/root/vol/new", []byte("x"), 0o644))
	if _, err := other.ReadFile("/vol/new"); err != nil {
		t.Errorf("a file that was made from outside: %v", err)
	}
	if fi, err := root.FS.Stat("/proc/7/name"); err != nil || fi.Size() != 5 || !fi.Mode().IsRegular() {
		t.Errorf("stat: %v, %v", fi, err)
	}
	for _, name := range []string{"/proc/new", "/proc/7/new", "/proc/8/name"} {
		if err := root.WriteFile(name, nil, 0o644); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("create %s: %v", name, err)
		}
	}
	// A hook belongs to the files, from wherever one comes.
	elsewhere.SetHook(func(string, ...string) syscall.Errno { return syscall.EIO })
	defer elsewhere.SetHook(nil)
	if _, err := root.ReadFile("/proc/7/root/f"); !errors.Is(err, syscall.EIO) {
		t.Errorf("past the hook: %v", err)
	}
	must(t, root.WriteFile("/own", nil, 0o644))
}

func TestChroot(t *testing.T) {
	host := NewNamespace(NewTree(Options{}))
	on := env(host.As(kit.User{}))
	must(t, on.MkdirAll("/etc", 0o755))
	must(t, on.WriteFile("/etc/name", []byte("the host"), 0o644))
	must(t, on.FS.Symlink("/etc/name", "/link"))
	must(t, host.Mount("/run/vol", NewTree(Options{Type: "tmpfs"}), MountOptions{}))
	must(t, on.WriteFile("/run/vol/f", []byte("in a volume"), 0o644))

	ns := NewNamespace(NewTree(Options{}))
	own := env(ns.As(kit.User{}))
	must(t, own.WriteFile("/secret", nil, 0o644))
	must(t, ns.Bind("/host", host, "/", MountOptions{}))
	if b, err := own.ReadFile("/host/run/vol/f"); err != nil || string(b) != "in a volume" {
		t.Errorf("what is mounted below what is bound: %q, %v", b, err)
	}
	fs, err := ns.As(kit.User{}).(kit.Chrooter).Chroot("/host")
	must(t, err)
	inside := env(fs)
	for name, want := range map[string]string{"/etc/name": "the host", "/link": "the host", "/run/vol/f": "in a volume", "/../../etc/name": "the host"} {
		if b, err := inside.ReadFile(name); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	must(t, inside.WriteFile("/etc/new", nil, 0o644))
	if _, err := on.ReadFile("/etc/new"); err != nil {
		t.Errorf("a file made inside: %v", err)
	}
	must(t, inside.FS.Symlink("/secret", "/out"))
	for _, name := range []string{"/secret", "/../secret", "/out", "/host/etc/name"} {
		if _, err := inside.ReadFile(name); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("%s is reached: %v", name, err)
		}
	}
	if list, err := inside.FS.ReadDir("/run"); err != nil || len(list) != 1 {
		t.Errorf("list: %v, %v", list, err)
	}
	if _, err := ns.As(kit.User{UID: 1}).(kit.Chrooter).Chroot("/host"); !errors.Is(err, syscall.EPERM) {
		t.Errorf("as nobody special: %v", err)
	}
	if _, err := ns.As(kit.User{}).(kit.Chrooter).Chroot("/secret"); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("to a file: %v", err)
	}
}
