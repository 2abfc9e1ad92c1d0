package interp

import (
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// descriptorFS is a file system with the shell's descriptors in /dev/fd. Commands get it when there
// are any beyond the standard ones: that is how they open <(...).
type descriptorFS struct {
	kit.FS
	fds map[int]*file
}

// childFS is the file system of the commands the shell starts.
func (s *Shell) childFS() kit.FS {
	base := s.env.FS
	extra := map[int]*file{}
	for n, f := range s.fds {
		if n > 2 {
			extra[n] = f
		}
	}
	if len(extra) == 0 {
		return base
	}
	if d, ok := base.(descriptorFS); ok {
		base = d.FS
	}
	return descriptorFS{base, extra}
}

func (d descriptorFS) descriptor(name string) *file {
	digits, ok := strings.CutPrefix(name, "/dev/fd/")
	if !ok {
		return nil
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return nil
	}
	return d.fds[n]
}

func (d descriptorFS) OpenFile(name string, flag int, perm fs.FileMode) (kit.File, error) {
	if f := d.descriptor(name); f != nil {
		return &descriptorFile{file: f.retain(), name: name}, nil
	}
	return d.FS.OpenFile(name, flag, perm)
}

func (d descriptorFS) Stat(name string) (fs.FileInfo, error) {
	if d.descriptor(name) != nil {
		return descriptorInfo(name), nil
	}
	return d.FS.Stat(name)
}

func (d descriptorFS) Lstat(name string) (fs.FileInfo, error) {
	if d.descriptor(name) != nil {
		return descriptorInfo(name), nil
	}
	return d.FS.Lstat(name)
}

// Chroot implements kit.Chrooter, if the file system below does. Descriptors stay open.
func (d descriptorFS) Chroot(dir string) (kit.FS, error) {
	c, ok := d.FS.(kit.Chrooter)
	if !ok {
		return nil, &fs.PathError{Op: "chroot", Path: dir, Err: syscall.ENOSYS}
	}
	inner, err := c.Chroot(dir)
	if err != nil {
		return nil, err
	}
	return descriptorFS{inner, d.fds}, nil
}

// descriptorFile is an opened descriptor. It is a pipe, so far as it matters.
type descriptorFile struct {
	*file
	name string
	once sync.Once
}

var _ kit.File = (*descriptorFile)(nil)

func (f *descriptorFile) fail(op string) error {
	return &fs.PathError{Op: op, Path: f.name, Err: syscall.ESPIPE}
}

func (f *descriptorFile) Name() string                       { return f.name }
func (f *descriptorFile) Stat() (fs.FileInfo, error)         { return descriptorInfo(f.name), nil }
func (f *descriptorFile) Seek(int64, int) (int64, error)     { return 0, f.fail("seek") }
func (f *descriptorFile) ReadAt([]byte, int64) (int, error)  { return 0, f.fail("read") }
func (f *descriptorFile) WriteAt([]byte, int64) (int, error) { return 0, f.fail("write") }
func (f *descriptorFile) Truncate(int64) error               { return f.fail("truncate") }
func (f *descriptorFile) Sync() error                        { return nil }
func (f *descriptorFile) ReadDir(int) ([]fs.DirEntry, error) { return nil, f.fail("readdirent") }
func (f *descriptorFile) Close() error                       { f.once.Do(f.release); return nil }

type descriptorInfo string

func (i descriptorInfo) Name() string       { return string(i[strings.LastIndexByte(string(i), '/')+1:]) }
func (i descriptorInfo) Size() int64        { return 0 }
func (i descriptorInfo) Mode() fs.FileMode  { return fs.ModeNamedPipe | 0o600 }
func (i descriptorInfo) ModTime() time.Time { return time.Time{} }
func (i descriptorInfo) IsDir() bool        { return false }
func (i descriptorInfo) Sys() any           { return nil }
