package vfs

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"
)

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
