// Package kept keeps made worlds on disk: an application that was deployed once need not be deployed again, the
// next cluster starts from it.
//
//	store, err := kept.Open(dir)
//	b, err := store.Get(key) // os.ErrNotExist: make it, and
//	err = store.Put(key, snapshot)
//
// A world is what a verdict rests on, so whoever could write one could decide verdicts. There is no secret that
// this program could know and another program of the same user could not, so a signature would be worth nothing.
// What is trusted instead is the system: the directory and its files are the user's alone, and an agent's program
// is confined so that it cannot reach them. A file that others could have written, that is damaged, or that was
// kept for something else, counts as none.
package kept

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// MaxWorlds is how many worlds are kept, and MaxAge how long one is that nobody starts from.
	MaxWorlds = 8
	MaxAge    = 30 * 24 * time.Hour
	// maxSize is how big the file of a world may be.
	maxSize = 64 << 20
	// abandoned is after which time nobody is writing a file any more.
	abandoned = time.Hour

	magic   = "aiopslab world 1\n"
	suffix  = ".world"
	pattern = "new-*" // of files that are being written
)

// Store is a directory of worlds. Any number of programs can use it at a time.
type Store struct{ dir string }

// Open makes the directory if there is none, and refuses one that is not this user's alone.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	if err := private(fi); err != nil {
		return nil, fmt.Errorf("%s %w", dir, err)
	}
	return &Store{dir}, nil
}

// private says why a file may be the work of somebody else.
func private(fi fs.FileInfo) error {
	st, ok := fi.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(st.Uid) != os.Geteuid():
		return errors.New("is another user's")
	case fi.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("has mode %04o: others can use it", fi.Mode().Perm())
	case fi.Mode().IsRegular() && st.Nlink != 1:
		return errors.New("has another name elsewhere")
	}
	return nil
}

// Key is a key for what depends on all of the given parts.
func Key(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d ", len(p))
		h.Write(p) //nolint:errcheck // It never fails.
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (s *Store) file(key string) string { return filepath.Join(s.dir, Key([]byte(key))+suffix) }

// sum is what holds a file to its key, and its content together.
func sum(key string, content []byte) []byte {
	k, c := sha256.Sum256([]byte(key)), sha256.Sum256(content)
	all := sha256.Sum256(append(k[:], c[:]...))
	return all[:]
}

// Get returns the world of a key. The error is [os.ErrNotExist] if there is none, and something else if there is a
// file that is not to be trusted, which is removed.
func (s *Store) Get(key string) ([]byte, error) {
	name := s.file(key)
	b, err := read(name)
	if err == nil {
		b, err = open(key, b)
	}
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			_ = os.Remove(name) // It would be in the way of a good one.
			err = fmt.Errorf("the kept world %s: %w", name, err)
		}
		return nil, err
	}
	now := time.Now()
	_ = os.Chtimes(name, now, now) // The ones that nobody uses go first.
	return b, nil
}

func read(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	if err := private(fi); err != nil {
		return nil, fmt.Errorf("it %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(b) > maxSize {
		err = errors.New("it is too big")
	}
	return b, err
}

func open(key string, b []byte) ([]byte, error) {
	b, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok || len(b) < sha256.Size || !bytes.Equal(b[:sha256.Size], sum(key, b[sha256.Size:])) {
		return nil, errors.New("it is damaged")
	}
	return b[sha256.Size:], nil
}

// Put keeps the world of a key, and removes the ones that have not been used for longest. Whoever looks for it
// meanwhile finds all of it or nothing.
func (s *Store) Put(key string, content []byte) error {
	if len(magic)+sha256.Size+len(content) > maxSize {
		return fmt.Errorf("a world of %d MB is too big to be kept", len(content)>>20)
	}
	f, err := os.CreateTemp(s.dir, pattern)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{[]byte(magic), sum(key, content), content} {
		if err == nil {
			_, err = f.Write(part)
		}
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), s.file(key))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	s.prune(time.Now())
	return nil
}

// Remove removes the world of a key.
func (s *Store) Remove(key string) { _ = os.Remove(s.file(key)) }

// Clear removes all worlds.
func (s *Store) Clear() {
	for _, f := range s.list() {
		_ = os.Remove(f.name)
	}
}

type file struct {
	name string
	used time.Time
}

// list has the files of the store, the last used first.
func (s *Store) list() (list []file) {
	entries, _ := os.ReadDir(s.dir) // What cannot be read cannot be removed, either.
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && !e.IsDir() {
			list = append(list, file{filepath.Join(s.dir, e.Name()), fi.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b file) int { return b.used.Compare(a.used) })
	return list
}

// prune removes what is too old or too much.
func (s *Store) prune(now time.Time) {
	worlds := 0
	for _, f := range s.list() {
		age := now.Sub(f.used)
		if !strings.HasSuffix(f.name, suffix) {
			if age > abandoned {
				_ = os.Remove(f.name)
			}
			continue
		}
		if worlds++; worlds > MaxWorlds || age > MaxAge {
			_ = os.Remove(f.name)
		}
	}
}
