package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// umask is what new files and directories do not get.
const umask = 0o022

// view is a namespace as one user sees it.
type view struct {
	ns         *Namespace
	user       kit.User
	base       *place // its root; nil is the namespace's
	privileged bool   // may write to read-only mounts: the runtime that sets a container up
}

// As returns the namespace as the given user sees it.
func (n *Namespace) As(u kit.User) kit.FS { return &view{ns: n, user: u} }

func (v *view) walk(op, name string, follow bool) (walked, error) {
	if v.base != nil {
		return walk(*v.base, v.user, op, name, follow)
	}
	return v.ns.walk(v.user, op, name, follow)
}

// Chroot implements kit.Chrooter.
func (v *view) Chroot(dir string) (kit.FS, error) {
	w, err := v.find("chroot", dir, true)
	switch {
	case err != nil:
		return nil, err
	case !w.node.isDir():
		return nil, pathError("chroot", dir, syscall.ENOTDIR)
	case v.user.UID != 0:
		return nil, pathError("chroot", dir, syscall.EPERM)
	}
	inner := *v
	inner.base = &w.place
	inner.base.path = "/"
	return &inner, nil
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// find resolves a path that must exist.
func (v *view) find(op, name string, follow bool) (walked, error) {
	w, err := v.walk(op, name, follow)
	if err == nil && w.node == nil {
		err = pathError(op, name, syscall.ENOENT)
	}
	return w, err
}

func (v *view) OpenFile(name string, flag int, perm fs.FileMode) (kit.File, error) {
	exclusive := flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL
	if err := v.allow("open", !exclusive, name); err != nil {
		return nil, pathError("open", name, err)
	}
	w, err := v.walk("open", name, !exclusive)
	if err != nil {
		return nil, err
	}
	if w.node == nil {
		if flag&os.O_CREATE == 0 {
			return nil, pathError("open", name, syscall.ENOENT)
		}
		// The path may have ended in a dangling link, whose target is what gets created.
		err = v.change("open", w.path, func(c walked) error {
			if c.node != nil {
				w.node = c.node
				return nil
			}
			w.node = c.parent.mount.tree.newInode(perm.Perm()&^umask, v.user)
			return v.add(c, w.node)
		})
		if err != nil {
			return nil, pathError("open", name, errors.Unwrap(err))
		}
	} else if exclusive {
		return nil, pathError("open", name, syscall.EEXIST)
	} else if err := v.mayOpen(w, flag); err != nil {
		return nil, pathError("open", name, err)
	}
	f := &file{view: v, place: w.place, name: name, flag: flag}
	if w.node.device != nil {
		if f.stream, err = w.node.device.Open(flag); err != nil {
			return nil, pathError("open", name, err)
		}
		return f, nil
	}
	if flag&os.O_TRUNC != 0 && flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		if err := f.Truncate(0); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (v *view) mayOpen(w walked, flag int) error {
	t := w.mount.tree
	t.mu.RLock()
	defer t.mu.RUnlock()
	writes := flag&(os.O_WRONLY|os.O_RDWR) != 0
	var want fs.FileMode
	if flag&os.O_WRONLY == 0 {
		want |= 4
	}
	if writes {
		want |= 2
	}
	switch {
	case writes && w.node.isDir():
		return syscall.EISDIR
	case writes && w.mount.opts.ReadOnly && !v.privileged && w.node.device == nil:
		return syscall.EROFS
	case !permitted(w.node, v.user, want):
		return syscall.EACCES
	}
	return nil
}

func (v *view) Stat(name string) (fs.FileInfo, error) { return v.stat("stat", name, true) }

func (v *view) Lstat(name string) (fs.FileInfo, error) { return v.stat("lstat", name, false) }

func (v *view) stat(op, name string, follow bool) (fs.FileInfo, error) {
	if err := v.allow("getattr", follow, name); err != nil {
		return nil, pathError(op, name, err)
	}
	w, err := v.find(op, name, follow)
	if err != nil {
		return nil, err
	}
	w.mount.tree.mu.RLock()
	defer w.mount.tree.mu.RUnlock()
	return newInfo(path.Base(name), w.node), nil
}

func (v *view) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := v.allow("opendir", true, name); err != nil {
		return nil, pathError("open", name, err)
	}
	if err := v.allow("readdir", true, name); err != nil {
		return nil, pathError("readdirent", name, err)
	}
	w, err := v.find("open", name, true)
	if err != nil {
		return nil, err
	}
	return v.entries(name, w.place)
}

func (v *view) entries(name string, p place) ([]fs.DirEntry, error) {
	if !p.node.isDir() {
		return nil, pathError("readdirent", name, syscall.ENOTDIR)
	}
	t := p.mount.tree
	t.mu.RLock()
	if !permitted(p.node, v.user, 4) {
		t.mu.RUnlock()
		return nil, pathError("open", name, syscall.EACCES)
	}
	list := make([]fs.DirEntry, 0, len(p.node.children))
	for base, n := range p.node.all() {
		list = append(list, fs.FileInfoToDirEntry(newInfo(base, n)))
	}
	t.mu.RUnlock()
	for i, d := range list {
		if m := p.ns.mountAt(path.Join(p.in, d.Name())); m != nil {
			m.tree.mu.RLock()
			list[i] = fs.FileInfoToDirEntry(newInfo(d.Name(), m.root))
			m.tree.mu.RUnlock()
		}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

func (v *view) Readlink(name string) (string, error) {
	if err := v.allow("readlink", false, name); err != nil {
		return "", pathError("readlink", name, err)
	}
	w, err := v.find("readlink", name, false)
	if err != nil {
		return "", err
	}
	if !w.node.isLink() {
		return "", pathError("readlink", name, syscall.EINVAL)
	}
	return w.node.target, nil
}

func (v *view) StatFS(name string) (kit.FSInfo, error) {
	if err := v.allow("statfs", true, name); err != nil {
		return kit.FSInfo{}, pathError("statfs", name, err)
	}
	w, err := v.find("statfs", name, true)
	if err != nil {
		return kit.FSInfo{}, err
	}
	return w.mount.info(), nil
}

// info is the state of a file at one moment.
type info struct {
	name  string
	size  int64
	mode  fs.FileMode
	mtime time.Time
	owner kit.Owner
}

func newInfo(name string, n *inode) info {
	size := int64(len(n.data))
	switch {
	case n.isLink():
		size = int64(len(n.target))
	case n.device != nil && n.device.Size != nil:
		size = n.device.Size()
	}
	return info{name, size, n.mode, n.mtime, kit.Owner{UID: n.uid, GID: n.gid, Inode: n.id, Links: n.links}}
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.mtime }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return &i.owner }
