package box

import (
	"crypto/rand"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// node is a file that is not in the scratch directory: a program, a device or their directory.
type node struct {
	name   string
	mode   fs.FileMode
	source io.Reader // of a device; nil is always at its end
}

var (
	_ fs.FileInfo = node{}
	_ fs.DirEntry = node{}
)

func (n node) Name() string               { return n.name }
func (n node) Size() int64                { return 0 }
func (n node) Mode() fs.FileMode          { return n.mode }
func (n node) ModTime() time.Time         { return time.Time{} }
func (n node) IsDir() bool                { return n.mode.IsDir() }
func (n node) Sys() any                   { return nil }
func (n node) Type() fs.FileMode          { return n.mode.Type() }
func (n node) Info() (fs.FileInfo, error) { return n, nil }

// devices are the directory /dev and what is in it.
func devices() map[string]node {
	all := map[string]node{"/dev": {name: "dev", mode: fs.ModeDir | 0o755}}
	for name, source := range map[string]io.Reader{
		"null": nil, "zero": zeros{}, "random": rand.Reader,
		"urandom": rand.Reader,
	} {
		all["/dev/"+name] = node{name: name, mode: fs.ModeDevice | fs.ModeCharDevice | 0o666, source: source}
	}
	return all
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// virtualEntries are the nodes in a directory.
func (f *rootFS) virtualEntries(dir string) (list []fs.DirEntry) {
	for name, n := range f.virtual {
		if name != dir && path.Dir(name) == dir {
			list = append(list, n)
		}
	}
	return list
}

func (f *rootFS) openVirtual(n node, name string, flag int) (kit.File, error) {
	writes := flag&(os.O_WRONLY|os.O_RDWR) != 0
	switch {
	case n.IsDir() && writes:
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	case n.mode.IsRegular() && writes:
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EROFS}
	}
	return &nodeFile{node: n, name: name, fs: f}, nil
}

// nodeFile is an open node. What is written to it is gone.
type nodeFile struct {
	node
	name string
	fs   *rootFS
}

var _ kit.File = (*nodeFile)(nil)

func (f *nodeFile) Name() string               { return f.name }
func (f *nodeFile) Stat() (fs.FileInfo, error) { return f.node, nil }
func (f *nodeFile) Close() error               { return nil }
func (f *nodeFile) Sync() error                { return nil }
func (f *nodeFile) Truncate(int64) error       { return nil }

func (f *nodeFile) Read(p []byte) (int, error) {
	switch {
	case f.IsDir():
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: syscall.EISDIR}
	case f.source == nil:
		return 0, io.EOF
	}
	return f.source.Read(p)
}

func (f *nodeFile) Write(p []byte) (int, error)             { return len(p), nil }
func (f *nodeFile) WriteAt(p []byte, _ int64) (int, error)  { return len(p), nil }
func (f *nodeFile) ReadAt(p []byte, _ int64) (int, error)   { return f.Read(p) }
func (f *nodeFile) Seek(offset int64, _ int) (int64, error) { return offset, nil }
func (f *nodeFile) ReadDir(int) ([]fs.DirEntry, error)      { return f.fs.ReadDir(f.name) }
