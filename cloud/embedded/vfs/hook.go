package vfs

import (
	"path"
	"sync/atomic"
	"syscall"
)

// Hook is called before each operation on the files of a namespace, and may block. It returns 0 if the operation
// may go on, or the error that it fails with. method is what FUSE calls the operation: open, create, read, write,
// fsync, flush (a file is closed), getattr, setattr, opendir, readdir, readlink, mkdir, unlink, rmdir, rename,
// link, symlink, statfs, setlk. paths are what the operation is done to, without symbolic links on the way; rename
// and link have two.
type Hook func(method string, paths ...string) syscall.Errno

// SetHook installs a hook, for open files too; nil removes it. The hook is not called for devices, nor while the
// namespace is set up.
func (n *Namespace) SetHook(h Hook) {
	var next *Hook
	if h != nil {
		next = &h
	}
	switch old := n.hook.Swap(next); {
	case old == nil && next != nil:
		hooked.Add(1)
	case old != nil && next == nil:
		hooked.Add(-1)
	}
}

// hooked counts the namespaces with a hook: a path may lead into another namespace, and whether it
// does is only known when it is resolved.
var hooked atomic.Int64

// allow asks the hook for an operation on names. When there is none it costs one load.
func (v *view) allow(method string, follow bool, names ...string) error {
	if hooked.Load() == 0 || v.privileged {
		return nil
	}
	ns := v.ns
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = path.Clean("/" + name)
		w, err := v.walk(method, name, follow)
		if err != nil {
			continue
		}
		if w.node != nil && w.node.device != nil {
			return nil
		}
		if i == 0 {
			ns = w.ns
		}
		if paths[i] = w.in; i == 0 && w.node != nil && w.node.isDir() {
			method = onDir(method)
		}
		if method == "open" && w.node == nil {
			method = "create"
		}
	}
	h := ns.hook.Load()
	if h == nil {
		return nil
	}
	if errno := (*h)(method, paths...); errno != 0 {
		return errno
	}
	return nil
}

// onDir is what a method is called when it is done to a directory.
func onDir(method string) string {
	switch method {
	case "open":
		return "opendir"
	case "unlink":
		return "rmdir"
	}
	return method
}

// allow asks the hook for an operation on an open file.
func (f *file) allow(op, method string) error {
	h := f.place.ns.hook.Load()
	if h == nil || f.view.privileged || f.stream != nil {
		return nil
	}
	if errno := (*h)(method, f.place.in); errno != 0 {
		return f.fail(op, errno)
	}
	return nil
}
