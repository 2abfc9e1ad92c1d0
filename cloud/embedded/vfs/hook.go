package vfs

import (
	"path"
	"syscall"
)

// Hook is asked before each operation on the files of a namespace, and may take its time. It answers
// 0 for what may go on, or what the operation fails with. method is what FUSE calls the operation:
// open, create, read, write, fsync, flush (a file is closed), getattr, setattr, opendir, readdir,
// readlink, mkdir, unlink, rmdir, rename, link, symlink, statfs, setlk. paths are what it is done
// to, with no symbolic links on the way; rename and link have two.
type Hook func(method string, paths ...string) syscall.Errno

// SetHook installs a hook, for open files too; nil removes it. Devices are not asked for, nor is
// what sets the namespace up.
func (n *Namespace) SetHook(h Hook) {
	if h == nil {
		n.hook.Store(nil)
	} else {
		n.hook.Store(&h)
	}
}

// allow asks the hook for an operation on names. When there is none it costs one load.
func (v *view) allow(method string, follow bool, names ...string) error {
	h := v.ns.hook.Load()
	if h == nil || v.privileged {
		return nil
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = path.Clean("/" + name)
		w, err := v.ns.walk(v.user, method, name, follow)
		if err != nil {
			continue
		}
		if w.node != nil && w.node.device != nil {
			return nil
		}
		if paths[i] = w.path; i == 0 && w.node != nil && w.node.isDir() {
			method = onDir(method)
		}
		if method == "open" && w.node == nil {
			method = "create"
		}
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
	h := f.view.ns.hook.Load()
	if h == nil || f.view.privileged || f.stream != nil {
		return nil
	}
	if errno := (*h)(method, f.place.path); errno != 0 {
		return f.fail(op, errno)
	}
	return nil
}
