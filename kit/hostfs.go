package kit

import (
	"io/fs"
	"os"
	"time"
)

// hostFS are the files of the operating system.
type hostFS struct{}

// hostFile is a file of the operating system, which can be locked.
type hostFile struct{ *os.File }

func (f hostFile) Stat() (fs.FileInfo, error)           { return hostInfoOf(f.File.Stat()) }
func (f hostFile) ReadDir(n int) ([]fs.DirEntry, error) { return hostEntries(f.File.ReadDir(n)) }

func (hostFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return hostFile{f}, nil
}
func (hostFS) Stat(name string) (fs.FileInfo, error)      { return hostInfoOf(os.Stat(name)) }
func (hostFS) Lstat(name string) (fs.FileInfo, error)     { return hostInfoOf(os.Lstat(name)) }
func (hostFS) ReadDir(name string) ([]fs.DirEntry, error) { return hostEntries(os.ReadDir(name)) }
func (hostFS) Readlink(name string) (string, error)       { return os.Readlink(name) }
func (hostFS) Mkdir(name string, perm fs.FileMode) error  { return os.Mkdir(name, perm) }
func (hostFS) Remove(name string) error                   { return os.Remove(name) }
func (hostFS) Rename(oldname, newname string) error       { return os.Rename(oldname, newname) }
func (hostFS) Link(oldname, newname string) error         { return os.Link(oldname, newname) }
func (hostFS) Symlink(target, name string) error          { return os.Symlink(target, name) }
func (hostFS) Chmod(name string, mode fs.FileMode) error  { return os.Chmod(name, mode) }
func (hostFS) Chown(name string, uid, gid int) error      { return os.Chown(name, uid, gid) }
func (hostFS) Chtimes(name string, mtime time.Time) error { return os.Chtimes(name, mtime, mtime) }
func (hostFS) StatFS(name string) (FSInfo, error)         { return hostStatFS(name) }

// hostInfo tells of a file's owner what any other FS does.
type hostInfo struct {
	fs.FileInfo
	owner *Owner
}

// Sys returns a *Owner.
func (i hostInfo) Sys() any { return i.owner }

func hostInfoOf(fi fs.FileInfo, err error) (fs.FileInfo, error) {
	if err != nil {
		return nil, err
	}
	return hostInfo{fi, hostOwner(fi)}, nil
}

// hostEntry is an entry of a directory.
type hostEntry struct{ fs.DirEntry }

func (e hostEntry) Info() (fs.FileInfo, error) { return hostInfoOf(e.DirEntry.Info()) }

func hostEntries(list []fs.DirEntry, err error) ([]fs.DirEntry, error) {
	for i, e := range list {
		list[i] = hostEntry{e}
	}
	return list, err
}
