package local

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/aiopslab/aiopslab/session"
)

// TestFolderOfAnother shows that who waits for a folder gets it when it is given back.
func TestFolderOfAnother(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	first, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	waited := false
	second, err := Open(t.Context(), dir, func() {
		waited = true
		first.Close()
	})
	if err != nil || !waited {
		t.Fatalf("waited: %v, %v", waited, err)
	}
	defer second.Close()
	if _, err := second.desk(Contestant{Agent: "a"}); err != nil {
		t.Error(err)
	}
}

// TestCommit shows that a run comes into the folder with all that belongs to it, and that this can be cut off after each
// of its steps and be done again.
func TestCommit(t *testing.T) {
	for cut := range 3 {
		f, err := Open(t.Context(), filepath.Join(t.TempDir(), "folder"), nil)
		if err != nil {
			t.Fatal(err)
		}
		file, run := filepath.Join(t.TempDir(), "1.jsonl"), Run{Agent: "a", Problem: "p", Seed: 1}
		name := f.name(file, run)
		parts := []struct{ from, to string }{
			{session.TelemetryDir(file), session.TelemetryDir(name)},
			{sessionFile(file), sessionFile(name)},
			{file, name},
		}
		err = errors.Join(os.Mkdir(parts[0].from, 0o755), os.WriteFile(parts[1].from, nil, 0o600),
			os.WriteFile(file, nil, 0o600))
		for _, done := range parts[:cut] {
			err = errors.Join(err, os.Rename(done.from, done.to))
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.commit(file, run, ""); err != nil || got != name {
			t.Errorf("cut off after %d: %s, %v", cut, got, err)
		}
		for _, p := range parts {
			if exists(p.from) || !exists(p.to) {
				t.Errorf("cut off after %d: %s is not in its place", cut, p.to)
			}
		}
		f.Close()
	}
}
