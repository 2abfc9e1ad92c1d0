package kit

import (
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"
)

// FS is a Unix file system as a program sees it. Names are absolute or relative to the root. Errors
// are *fs.PathError or *os.LinkError with the kernel's errno.
type FS interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]fs.DirEntry, error) // sorted
	Readlink(name string) (string, error)
	Mkdir(name string, perm fs.FileMode) error
	Remove(name string) error
	Rename(oldname, newname string) error
	Link(oldname, newname string) error
	Symlink(target, name string) error
	Chmod(name string, mode fs.FileMode) error
	Chown(name string, uid, gid int) error
	Chtimes(name string, mtime time.Time) error
	// StatFS describes the file system that holds name.
	StatFS(name string) (FSInfo, error)
}

// Chrooter is an optional power of FS: chroot(2), for root alone.
type Chrooter interface {
	// Chroot returns the files below a directory, which is their root. Nothing above it can be reached.
	Chroot(dir string) (FS, error)
}

// File is an open file.
type File interface {
	fs.File
	io.Writer
	io.Seeker
	io.ReaderAt
	io.WriterAt
	Name() string
	Truncate(size int64) error
	Sync() error
	ReadDir(n int) ([]fs.DirEntry, error)
}

// FSInfo is what statfs(2) and /proc/mounts tell of a mounted file system.
type FSInfo struct {
	Source   string // the device
	Type     string // "overlay", "ext4", "tmpfs", ...
	Mount    string // where it is mounted
	ReadOnly bool
	Total    int64 // bytes
	Free     int64 // bytes
}

// Owner is what [fs.FileInfo.Sys] returns for a file of an FS that is not the host's.
type Owner struct {
	UID, GID int
	Inode    uint64
	Links    int
}

// maxReadFile is how much ReadFile reads. Devices such as /dev/zero have no end.
const maxReadFile = 64 << 20

// ReadFile reads a whole file; its name may be relative to the working directory. A file that is too
// large to be read into memory is EFBIG.
func (e *Env) ReadFile(name string) ([]byte, error) {
	f, err := e.FS.OpenFile(e.Path(name), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxReadFile+1))
	if err == nil && len(data) > maxReadFile {
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EFBIG}
	}
	return data, err
}

// WriteFile creates or replaces a file; its name may be relative to the working directory.
func (e *Env) WriteFile(name string, data []byte, perm fs.FileMode) error {
	f, err := e.FS.OpenFile(e.Path(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// MkdirAll creates a directory and its missing parents.
func (e *Env) MkdirAll(name string, perm fs.FileMode) error {
	name = e.Path(name)
	if fi, err := e.FS.Stat(name); err == nil {
		if fi.IsDir() {
			return nil
		}
		return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
	}
	if parent := path.Dir(name); parent != name {
		if err := e.MkdirAll(parent, perm); err != nil {
			return err
		}
	}
	err := e.FS.Mkdir(name, perm)
	if fi, serr := e.FS.Stat(name); serr == nil && fi.IsDir() {
		return nil // Somebody else was quicker.
	}
	return err
}

// RemoveAll removes a file, or a directory with everything in it. A file that does not exist is no error.
func (e *Env) RemoveAll(name string) error {
	name = e.Path(name)
	fi, err := e.FS.Lstat(name)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.IsDir() {
		entries, err := e.FS.ReadDir(name)
		if err != nil {
			return err
		}
		for _, d := range entries {
			if err := e.RemoveAll(name + "/" + d.Name()); err != nil {
				return err
			}
		}
	}
	return e.FS.Remove(name)
}
