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

// change resolves the place of a directory entry and calls f with its tree locked, if the user may
// change the directory.
func (v *view) change(op, name string, f func(w walked) error) error {
	w, err := v.walk(op, name, false)
	if err != nil {
		return err
	}
	t := w.parent.mount.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case w.node != nil && w.node == w.mount.root:
		err = syscall.EBUSY
	case !v.privileged && w.parent.mount.opts.ReadOnly:
		err = syscall.EROFS
	case !permitted(w.parent.node, v.user, 3):
		err = syscall.EACCES
	case w.parent.node.fixed:
		err = syscall.ENOENT // As in /proc.
	default:
		w.node = w.parent.node.children[w.name] // Nobody can change it any more.
		err = f(w)
	}
	if err != nil {
		return pathError(op, name, err)
	}
	return nil
}

// add links a new inode, if there is room for it. It is called with the tree's mutex held.
func (v *view) add(w walked, n *inode) error {
	dir := w.parent.node
	if !w.parent.mount.tree.opts.Disk.occupy(1) {
		return syscall.ENOSPC
	}
	if dir.mode&fs.ModeSetgid != 0 {
		n.gid = dir.gid
		if n.isDir() {
			n.mode |= fs.ModeSetgid
		}
	}
	if n.isDir() {
		dir.links++
	}
	dir.children[w.name] = n
	dir.mtime = n.mtime
	return nil
}

// drop unlinks an inode. It is called with the tree's mutex held.
func (v *view) drop(w walked, n *inode) {
	dir, t := w.parent.node, w.parent.mount.tree
	delete(dir.children, w.name)
	dir.mtime = t.now()
	if n.isDir() {
		dir.links--
		t.opts.Disk.occupy(-1)
		return
	}
	if n.links--; n.links == 0 {
		t.opts.Disk.occupy(-1)
		t.resize(-int64(len(n.data)))
	}
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

func (v *view) Mkdir(name string, perm fs.FileMode) error {
	if err := v.allow("mkdir", false, name); err != nil {
		return pathError("mkdir", name, err)
	}
	return v.change("mkdir", name, func(w walked) error {
		if w.node != nil {
			return syscall.EEXIST
		}
		return v.add(w, w.parent.mount.tree.newInode(fs.ModeDir|perm.Perm()&^umask, v.user))
	})
}

func (v *view) Remove(name string) error {
	if err := v.allow("unlink", false, name); err != nil {
		return pathError("remove", name, err)
	}
	return v.change("remove", name, func(w walked) error {
		switch {
		case w.node == nil:
			return syscall.ENOENT
		case len(w.node.children) > 0:
			return syscall.ENOTEMPTY
		case w.parent.node.mode&fs.ModeSticky != 0 && v.user.UID != 0 && v.user.UID != w.node.uid &&
			v.user.UID != w.parent.node.uid:
			return syscall.EPERM
		}
		v.drop(w, w.node)
		return nil
	})
}

func (v *view) Rename(oldname, newname string) error {
	fail := func(err error) error {
		return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
	}
	if err := v.allow("rename", false, oldname, newname); err != nil {
		return fail(err)
	}
	// Like the kernel, look at both directories before minding whether the old name exists.
	from, err := v.walk("rename", oldname, false)
	if err == nil {
		_, err = v.walk("rename", newname, false)
	}
	if err != nil {
		return fail(errors.Unwrap(err))
	}
	if from.node == nil {
		return fail(syscall.ENOENT)
	}
	inside := func(w walked, dir *inode) bool {
		return slices.ContainsFunc(w.above, func(p place) bool { return p.node == dir })
	}
	err = v.change("rename", newname, func(to walked) error {
		switch {
		case inside(to, from.node):
			return syscall.EINVAL
		case to.node != nil && inside(from, to.node):
			return syscall.ENOTEMPTY
		}
		if to.parent.mount != from.parent.mount || from.node == from.mount.root {
			return syscall.EXDEV
		}
		if to.node == from.node {
			return nil
		}
		if !permitted(from.parent.node, v.user, 3) {
			return syscall.EACCES
		}
		if to.node != nil {
			switch {
			case to.node.isDir() && !from.node.isDir():
				return syscall.EISDIR
			case !to.node.isDir() && from.node.isDir():
				return syscall.ENOTDIR
			case len(to.node.children) > 0:
				return syscall.ENOTEMPTY
			}
			v.drop(to, to.node)
		}
		delete(from.parent.node.children, from.name)
		to.parent.node.children[to.name] = from.node
		if from.node.isDir() {
			from.parent.node.links--
			to.parent.node.links++
		}
		return nil
	})
	if err != nil {
		return fail(errors.Unwrap(err))
	}
	return nil
}

func (v *view) Link(oldname, newname string) error {
	fail := func(err error) error {
		return &os.LinkError{Op: "link", Old: oldname, New: newname, Err: err}
	}
	if err := v.allow("link", false, oldname, newname); err != nil {
		return fail(err)
	}
	from, err := v.find("link", oldname, false)
	if err != nil {
		return fail(errors.Unwrap(err))
	}
	err = v.change("link", newname, func(to walked) error {
		switch {
		case to.node != nil:
			return syscall.EEXIST
		case to.parent.mount != from.mount:
			return syscall.EXDEV
		case from.node.isDir():
			return syscall.EPERM
		}
		from.node.links++
		to.parent.node.children[to.name] = from.node
		return nil
	})
	if err != nil {
		return fail(errors.Unwrap(err))
	}
	return nil
}

func (v *view) Symlink(target, name string) error {
	if err := v.allow("symlink", false, name); err != nil {
		return &os.LinkError{Op: "symlink", Old: target, New: name, Err: err}
	}
	err := v.change("symlink", name, func(w walked) error {
		switch {
		case target == "":
			return syscall.ENOENT
		case w.node != nil:
			return syscall.EEXIST
		}
		n := w.parent.mount.tree.newInode(fs.ModeSymlink|0o777, v.user)
		n.target = target
		return v.add(w, n)
	})
	if err != nil {
		return &os.LinkError{Op: "symlink", Old: target, New: name, Err: errors.Unwrap(err)}
	}
	return nil
}

// alter changes the attributes of a file that the user owns.
func (v *view) alter(op, name string, f func(n *inode) error) error {
	if err := v.allow("setattr", true, name); err != nil {
		return pathError(op, name, err)
	}
	w, err := v.find(op, name, true)
	if err != nil {
		return err
	}
	t := w.mount.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case w.mount.opts.ReadOnly && !v.privileged:
		err = syscall.EROFS
	case v.user.UID != 0 && v.user.UID != w.node.uid:
		err = syscall.EPERM
	default:
		err = f(w.node)
	}
	if err != nil {
		return pathError(op, name, err)
	}
	return nil
}

func (v *view) Chmod(name string, mode fs.FileMode) error {
	const bits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	return v.alter("chmod", name, func(n *inode) error {
		n.mode = n.mode&^bits | mode&bits
		return nil
	})
}

func (v *view) Chown(name string, uid, gid int) error {
	return v.alter("chown", name, func(n *inode) error {
		if v.user.UID != 0 && (uid >= 0 && uid != n.uid ||
			gid >= 0 && gid != v.user.GID && !slices.Contains(v.user.Groups, gid)) {
			return syscall.EPERM
		}
		if uid >= 0 {
			n.uid = uid
		}
		if gid >= 0 {
			n.gid = gid
		}
		return nil
	})
}

func (v *view) Chtimes(name string, mtime time.Time) error {
	return v.alter("chtimes", name, func(n *inode) error {
		n.mtime = mtime
		return nil
	})
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
