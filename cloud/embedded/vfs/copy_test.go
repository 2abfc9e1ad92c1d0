package vfs_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/kit"
)

// A directory that is filled from a copy of it is as it was, for who has it mounted as well, and the disk has as much
// room as before.
func TestFillFromCopy(t *testing.T) {
	disk := &vfs.Disk{Name: "sda", Total: 1 << 20, On: &vfs.Disk{Total: 1 << 20}}
	tree := vfs.NewTree(vfs.Options{Disk: disk})
	ns := vfs.NewNamespace(tree)
	env := &kit.Env{FS: ns.As(kit.User{}), Dir: "/"}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(env.MkdirAll("/data/sub", 0o755))
	check(env.WriteFile("/data/a", []byte("one"), 0o600))
	check(env.WriteFile("/data/sub/b", []byte("two"), 0o644))
	check(env.FS.Link("/data/a", "/data/also"))
	check(env.FS.Symlink("a", "/data/link"))
	check(env.WriteFile("/etc-hosts", []byte("127.0.0.1 localhost\n"), 0o644))
	memory := vfs.NewTree(vfs.Options{})
	check(ns.Mount("/data/mem", memory, vfs.MountOptions{}))
	check(env.WriteFile("/data/mem/m", []byte("three"), 0o644))
	container := vfs.NewNamespace(vfs.NewTree(vfs.Options{}))
	check(container.Bind("/mnt", ns, "/data", vfs.MountOptions{}))
	inside := &kit.Env{FS: container.As(kit.User{}), Dir: "/"}

	used, files := disk.Used(), disk.On.Used()
	data, err := ns.Copy("/data")
	check(err)
	hosts, err := ns.Copy("/etc-hosts")
	check(err)
	open, err := inside.FS.OpenFile("/mnt/a", syscall.O_RDWR, 0)
	check(err)
	_, err = open.Write([]byte("changed"))
	check(err)
	check(open.Close())
	check(inside.RemoveAll("/mnt/sub"))
	check(inside.WriteFile("/mnt/new", make([]byte, 5000), 0o644))
	check(inside.WriteFile("/mnt/mem/m", []byte("stays"), 0o644))
	check(env.WriteFile("/etc-hosts", []byte("10.0.0.1 store\n"), 0o644))

	for range 2 { // A copy can be used again.
		check(ns.Fill("/data", data))
		check(ns.Fill("/etc-hosts", hosts))
		got := map[string]string{}
		for _, name := range []string{"a", "also", "link", "sub/b", "new", "mem/m"} {
			b, err := inside.ReadFile("/mnt/" + name)
			got[name] = string(b)
			if err != nil {
				got[name] = "none"
			}
		}
		want := map[string]string{"a": "one", "also": "one", "link": "one", "sub/b": "two", "new": "none", "mem/m": "stays"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if b, _ := env.ReadFile("/etc-hosts"); string(b) != "127.0.0.1 localhost\n" {
			t.Errorf("the file is %q", b)
		}
		if fi, err := inside.FS.Stat("/mnt/a"); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("the mode is %v, %v", fi, err)
		}
		if disk.Used() != used || disk.On.Used() != files {
			t.Errorf("%d and %d bytes are used, not %d and %d", disk.Used(), disk.On.Used(), used, files)
		}
		check(inside.WriteFile("/mnt/also", []byte("again"), 0o644)) // The copy has its own.
	}
}

func TestCopyAndFillRefuse(t *testing.T) {
	disk := &vfs.Disk{Name: "sda", Total: 100}
	ns := vfs.NewNamespace(vfs.NewTree(vfs.Options{Disk: disk}))
	env := &kit.Env{FS: ns.As(kit.User{}), Dir: "/"}
	err := errors.Join(env.MkdirAll("/real/dir", 0o755), env.WriteFile("/real/dir/f", make([]byte, 60), 0o644),
		env.FS.Symlink("/real", "/link"), env.FS.Symlink("/real/dir", "/real/other"), env.MkdirAll("/small", 0o755))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := ns.Copy("/real/dir")
	if err != nil {
		t.Fatal(err)
	}
	if b, f, err := ns.Size("/real/dir"); b != 60 || f != 2 || err != nil {
		t.Errorf("%d bytes in %d files, %v", b, f, err)
	}
	for _, tt := range []struct {
		path string
		err  error
	}{
		{"/nowhere", syscall.ENOENT},
		{"/real/other", syscall.ELOOP}, // Who made the link could have anything filled.
		{"/link/dir", syscall.ELOOP},
		{"/real/dir/f", syscall.EINVAL}, // It is no directory.
		{"/small", syscall.ENOSPC},
	} {
		if err := ns.Fill(tt.path, kept); !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, not %v", tt.path, err, tt.err)
		}
		if _, err := ns.Copy(tt.path); tt.err != syscall.EINVAL && tt.err != syscall.ENOSPC && !errors.Is(err, tt.err) {
			t.Errorf("copy %s: %v", tt.path, err)
		}
	}
	if b, err := env.ReadFile("/real/dir/f"); len(b) != 60 || err != nil {
		t.Error(fmt.Sprint(len(b), err))
	}
}
