package vfs

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/aiopslab/aiopslab/kit"
)

// TestDiskOnDisk fills what a disk lives on, which is less than the disk says it has.
func TestDiskOnDisk(t *testing.T) {
	store := &Disk{Total: 1 << 20}
	tree := NewTree(Options{Disk: &Disk{Total: 100 << 30, On: store}})
	env := &kit.Env{FS: tree.Root(), Dir: "/"}
	if err := env.WriteFile("/a", make([]byte, 900<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := env.WriteFile("/b", make([]byte, 900<<10), 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a second file: %v, want ENOSPC", err)
	}
	f, err := env.FS.OpenFile("/c", os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(50 << 30); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a large hole: %v, want ENOSPC", err)
	}
	if _, err := f.WriteAt([]byte("x"), 50<<30); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a byte far behind: %v, want ENOSPC", err)
	}
	f.Close()
	if info, _ := env.FS.StatFS("/"); info.Total != 100<<30 || info.Free > 1<<20 {
		t.Errorf("statfs: %+v", info)
	}
	for _, name := range []string{"/a", "/b", "/c"} {
		if err := env.FS.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if store.Used() != 0 {
		t.Errorf("%d bytes are taken after all files are gone", store.Used())
	}
}

// TestManyFiles makes files without content until there is no room.
func TestManyFiles(t *testing.T) {
	store := &Disk{Total: 1 << 20}
	tree := NewTree(Options{Disk: &Disk{Total: 100 << 30, On: store}})
	fsys := tree.Root()
	for i := range 2000 {
		err := fsys.Mkdir("/"+strconv.Itoa(i), 0o755)
		if errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Error("there is room for any number of directories")
}

func TestLongNames(t *testing.T) {
	fsys := NewTree(Options{}).Root()
	for _, name := range []string{"/" + strings.Repeat("a", 256), strings.Repeat("/a", 2048)} {
		if err := fsys.Mkdir(name, 0o755); !errors.Is(err, syscall.ENAMETOOLONG) {
			t.Errorf("a name of %d bytes: %v, want ENAMETOOLONG", len(name), err)
		}
	}
	if err := fsys.Mkdir("/"+strings.Repeat("a", 255), 0o755); err != nil {
		t.Error(err)
	}
}

// TestCloneTakesRoom gives a copy, and takes it back.
func TestCloneTakesRoom(t *testing.T) {
	from := NewTree(Options{})
	env := &kit.Env{FS: from.Root(), Dir: "/"}
	if err := env.WriteFile("/a", make([]byte, 1000), 0o644); err != nil {
		t.Fatal(err)
	}
	store := &Disk{Total: 1 << 20}
	c := from.Clone(&Disk{Total: 1 << 30, On: store})
	if store.Used() < 1000 {
		t.Errorf("a copy takes %d bytes", store.Used())
	}
	if c.Discard(); store.Used() != 0 {
		t.Errorf("%d bytes are taken after the copy is gone", store.Used())
	}
}
