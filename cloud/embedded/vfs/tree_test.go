package vfs_test

import (
	"path"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/kit"
)

// A directory can be made older with all that is in it, and nothing else.
func TestAge(t *testing.T) {
	tree := vfs.NewTree(vfs.Options{})
	env := &kit.Env{FS: tree.Root(), Dir: "/"}
	for _, name := range []string{"/old/a/f", "/new/f"} {
		if err := env.MkdirAll(path.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := env.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree.Age("/old", -time.Hour)
	tree.Age("/none", -time.Hour)
	for name, old := range map[string]bool{"/": false, "/old": true, "/old/a": true, "/old/a/f": true, "/new": false, "/new/f": false} {
		fi, err := env.FS.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Since(fi.ModTime()) > 30*time.Minute; got != old {
			t.Errorf("%s is of %v", name, fi.ModTime())
		}
	}
}
