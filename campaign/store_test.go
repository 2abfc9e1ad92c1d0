package campaign

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/aiopslab/aiopslab/kit"
)

// testStore holds a store to its promises. Open returns another way to the same place.
func testStore(t *testing.T, open func() Store) {
	ctx := t.Context()
	s := open()
	if has, err := s.Has(ctx, "a"); has || err != nil {
		t.Errorf("it has what nobody put there: %v, %v", has, err)
	}
	if _, err := s.Get(ctx, "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
	if list, err := s.List(ctx); len(list) > 0 || err != nil {
		t.Errorf("what nobody put there: %v, %v", list, err)
	}
	// Many put something under the same names at once. One of them does, and whole; nobody sees a part.
	const names, writers = 5, 8
	content := func(writer int) string { return strings.Repeat(fmt.Sprint(writer), 100_000) }
	var fresh [names]atomic.Int32
	var all sync.WaitGroup
	for w := range writers {
		mine := open()
		all.Go(func() {
			for n := range names {
				ok, err := mine.Put(ctx, RecordName(n), []byte(content(w)))
				if err != nil {
					t.Error(err)
				}
				if ok {
					fresh[n].Add(1)
				}
				if b, err := mine.Get(ctx, RecordName(n)); err != nil || len(b) != 100_000 || strings.Trim(string(b), string(b[:1])) != "" {
					t.Errorf("%d bytes of %d were seen: %v", len(b), 100_000, err)
				}
			}
		})
	}
	all.Wait()
	for n := range names {
		if got := fresh[n].Load(); got != 1 {
			t.Errorf("%d have put what is under %s", got, RecordName(n))
		}
	}
	list, err := s.List(ctx)
	slices.Sort(list)
	if want := []string{"00000.jsonl", "00001.jsonl", "00002.jsonl", "00003.jsonl", "00004.jsonl"}; err != nil || !slices.Equal(list, want) {
		t.Errorf("there are %v: %v", list, err)
	}
	if has, err := s.Has(ctx, "00003.jsonl"); !has || err != nil {
		t.Errorf("it has not what is there: %v", err)
	}
	before, _ := s.Get(ctx, "00003.jsonl")
	if ok, err := s.Put(ctx, "00003.jsonl", []byte("later")); ok || err != nil {
		t.Errorf("put again: %v, %v", ok, err)
	}
	if after, err := s.Get(ctx, "00003.jsonl"); err != nil || !slices.Equal(before, after) {
		t.Errorf("it was changed to %.20q: %v", after, err)
	}
}

func TestVolume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nightly")
	testStore(t, func() Store { return newVolume(t, kit.HostEnv(), dir) })
	if names, err := os.ReadDir(dir); err != nil || len(names) != 5 {
		t.Errorf("there are files beside the records: %v, %v", names, err)
	}
}

func newVolume(t *testing.T, env *kit.Env, dir string) *volume {
	t.Helper()
	v, err := openVolume(env, dir)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// linkless are files without hard links, as those of many network volumes.
type linkless struct{ kit.FS }

func (linkless) Link(oldname, newname string) error {
	return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: syscall.ENOTSUP}
}

// TestVolumeWithoutLinks: a record is whole there, too, and stays as it is.
func TestVolumeWithoutLinks(t *testing.T) {
	env := kit.HostEnv()
	env.FS = linkless{env.FS}
	v, ctx := newVolume(t, env, t.TempDir()), t.Context()
	for i, want := range []bool{true, false} {
		if fresh, err := v.Put(ctx, "00001.jsonl", []byte(fmt.Sprint(i))); fresh != want || err != nil {
			t.Errorf("put %d: %v, %v", i, fresh, err)
		}
	}
	if b, err := v.Get(ctx, "00001.jsonl"); string(b) != "0" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// full are files on a disk without room.
type full struct{ kit.FS }

type fullFile struct{ kit.File }

func (fullFile) Write(b []byte) (int, error) { return len(b) / 2, syscall.ENOSPC }

func (f full) OpenFile(name string, flag int, perm fs.FileMode) (kit.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	if err != nil || flag&os.O_WRONLY == 0 {
		return file, err
	}
	return fullFile{file}, nil
}

// TestVolumeIsFull: what is not whole is not there.
func TestVolumeIsFull(t *testing.T) {
	env, dir := kit.HostEnv(), t.TempDir()
	env.FS = full{env.FS}
	v := newVolume(t, env, dir)
	if fresh, err := v.Put(t.Context(), "00001.jsonl", []byte("hello")); fresh || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v, %v", fresh, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("there is %v, %v", names, err)
	}
}

// TestVolumeOfTheKilled: what a killed pod was writing is no record, and goes with the next one's.
func TestVolumeOfTheKilled(t *testing.T) {
	dir := t.TempDir()
	v := newVolume(t, kit.HostEnv(), dir)
	draft := filepath.Join(dir, ".00001.jsonl-OTHER")
	if err := os.WriteFile(draft, []byte("hal"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := v.List(context.Background()); len(list) > 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
	if fresh, err := v.Put(t.Context(), "00001.jsonl", []byte("hello")); !fresh || err != nil {
		t.Errorf("%v, %v", fresh, err)
	}
	if _, err := os.Stat(draft); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the draft is still there: %v", err)
	}
}
