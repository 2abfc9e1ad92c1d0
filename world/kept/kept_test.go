package kept

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "worlds"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAWorldIsKept(t *testing.T) {
	s := newStore(t)
	if _, err := s.Get("a"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("an empty store has %v", err)
	}
	for key, world := range map[string]string{"a": "one", "b": "another", "empty": ""} {
		if err := s.Put(key, []byte(world)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Put("a", []byte("one, made again")); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"a": "one, made again", "b": "another", "empty": ""} {
		if got, err := s.Get(key); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v, want %q", key, got, err, want)
		}
	}
	s.Clear()
	if _, err := s.Get("a"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a cleared store has %v", err)
	}
}

// TestAWorldOfSomebodyElse tries what others could have put where a world is looked for. None of it is read, and it
// is gone afterwards, so that a good one can be kept.
func TestAWorldOfSomebodyElse(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, s *Store, file string){
		"a byte was changed": func(t *testing.T, _ *Store, file string) {
			b, err := os.ReadFile(file)
			must(t, err)
			b[len(b)-1] ^= 1
			must(t, os.WriteFile(file, b, 0o600))
		},
		"its end is missing": func(t *testing.T, _ *Store, file string) { must(t, os.Truncate(file, 60)) },
		"it is empty":        func(t *testing.T, _ *Store, file string) { must(t, os.Truncate(file, 0)) },
		"it is of another version": func(t *testing.T, _ *Store, file string) {
			b, err := os.ReadFile(file)
			must(t, err)
			must(t, os.WriteFile(file, []byte(strings.Replace(string(b), "world 1", "world 0", 1)), 0o600))
		},
		"it was kept for another key": func(t *testing.T, s *Store, file string) {
			must(t, s.Put("other", []byte("of an enemy")))
			must(t, os.Rename(s.file("other"), file))
		},
		"others can write it": func(t *testing.T, _ *Store, file string) { must(t, os.Chmod(file, 0o622)) },
		"others can read it":  func(t *testing.T, _ *Store, file string) { must(t, os.Chmod(file, 0o640)) },
		"it has another name": func(t *testing.T, _ *Store, file string) { must(t, os.Link(file, file+"-too")) },
		"it is a link": func(t *testing.T, _ *Store, file string) {
			must(t, os.Rename(file, file+"-elsewhere"))
			must(t, os.Symlink(file+"-elsewhere", file))
		},
		"it is huge": func(t *testing.T, _ *Store, file string) { must(t, os.Truncate(file, maxSize+1)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			must(t, s.Put("key", []byte("a world")))
			spoil(t, s, s.file("key"))
			b, err := s.Get("key")
			if err == nil || errors.Is(err, os.ErrNotExist) {
				t.Errorf("it was read as %q, %v", b, err)
			}
			if _, err := os.Lstat(s.file("key")); !os.IsNotExist(err) {
				t.Errorf("it is still there: %v", err)
			}
			must(t, s.Put("key", []byte("a new world")))
			if b, err := s.Get("key"); err != nil || string(b) != "a new world" {
				t.Errorf("the next is %q, %v", b, err)
			}
		})
	}
}

func TestADirectoryOfSomebodyElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "worlds")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Chmod(dir, 0o770))
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "mode 0770: others can use it") {
		t.Errorf("a directory that others can write to: %v", err)
	}
	must(t, os.Chmod(dir, 0o700))
	if _, err := Open(dir); err != nil {
		t.Error(err)
	}
	link := dir + "-link"
	must(t, os.Symlink(dir, link))
	if _, err := Open(link); err == nil {
		t.Error("a link to a directory is taken for one")
	}
	if os.Geteuid() == 0 {
		must(t, os.Chown(dir, 12345, -1))
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "is another user's") {
			t.Errorf("a directory of another user: %v", err)
		}
	}
}

func TestOldWorldsGo(t *testing.T) {
	s := newStore(t)
	now := time.Now()
	for i := range MaxWorlds + 3 {
		must(t, os.WriteFile(s.file(fmt.Sprint(i)), nil, 0o600))
		at := now.Add(-time.Duration(i) * time.Minute)
		must(t, os.Chtimes(s.file(fmt.Sprint(i)), at, at))
	}
	old := now.Add(-MaxAge - time.Hour)
	must(t, os.Chtimes(s.file("1"), old, old))
	left, busy := filepath.Join(s.dir, "new-left"), filepath.Join(s.dir, "new-busy")
	for _, file := range []string{left, busy} {
		must(t, os.WriteFile(file, nil, 0o600))
	}
	must(t, os.Chtimes(left, old, old))
	s.prune(now)
	var there []int
	for i := range MaxWorlds + 3 {
		if _, err := os.Stat(s.file(fmt.Sprint(i))); err == nil {
			there = append(there, i)
		}
	}
	if want := "[0 2 3 4 5 6 7 8]"; fmt.Sprint(there) != want { // The eight last used.
		t.Errorf("kept %v, want %s", there, want)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("what a killed program left is there: %v", err)
	}
	if _, err := os.Stat(busy); err != nil {
		t.Errorf("what is being written is gone: %v", err)
	}
}

func TestKeysDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][][]byte{{[]byte("ab"), []byte("c")}, {[]byte("a"), []byte("bc")}, {[]byte("abc")}, {}} {
		k := Key(parts...)
		if seen[k] {
			t.Errorf("%q has the key of another", parts)
		}
		seen[k] = true
	}
}

func TestProgramsDiffer(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	a, err := Program(self)
	if err != nil || len(a) < minID/2 {
		t.Fatalf("this program is %x, %v", a, err)
	}
	script := filepath.Join(t.TempDir(), "script")
	must(t, os.WriteFile(script, []byte("#!/bin/sh\n"), 0o600))
	b, err := Program(script)
	must(t, err)
	must(t, os.WriteFile(script, []byte("#!/bin/sh\nexit 1\n"), 0o600))
	c, err := Program(script)
	must(t, err)
	if string(a) == string(b) || string(b) == string(c) {
		t.Errorf("programs are alike: %x %x %x", a, b, c)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
