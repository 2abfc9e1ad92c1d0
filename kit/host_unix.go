//go:build linux || darwin

package kit

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

func hostStatFS(name string) (FSInfo, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(name, &s); err != nil {
		return FSInfo{}, &fs.PathError{Op: "statfs", Path: name, Err: err}
	}
	return FSInfo{Total: int64(s.Blocks) * int64(s.Bsize), Free: int64(s.Bavail) * int64(s.Bsize)}, nil
}

func hostOwner(fi fs.FileInfo) *Owner {
	s, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return &Owner{Links: 1}
	}
	return &Owner{UID: int(s.Uid), GID: int(s.Gid), Inode: s.Ino, Links: int(s.Nlink)}
}

func (f hostFile) TryLock() error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return &fs.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	return nil
}
