package box

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// rootFS is a directory of the host as a whole file system, with the programs in /bin and a few
// devices. No name leads out of it.
type rootFS struct {
	root    *os.Root
	virtual map[string]node // by absolute path

	mu      sync.Mutex
	written int64 // since the files were measured, and what they took then; at most most, if nobody knows
	most    int64
}

var _ kit.FS = (*rootFS)(nil)

func newRootFS(root *os.Root, programs []string, most int64) *rootFS {
	f := &rootFS{root: root, virtual: devices(), most: most, written: most}
	f.virtual["/bin"] = node{name: "bin", mode: fs.ModeDir | 0o755}
	for _, name := range programs {
		f.virtual["/bin/"+name] = node{name: name, mode: 0o755}
	}
	return f
}

// clean is a name as a path of the agent's.
func clean(name string) string { return path.Clean("/" + name) }

// local is a name as the root wants it.
func local(name string) string { return cmp.Or(clean(name)[1:], ".") }

// fail gives an error the agent's name and the kernel's words.
func fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		errno = syscall.EACCES // A link leads out of the root.
	}
	return &fs.PathError{Op: op, Path: name, Err: errno}
}

// frozen is the error for what changes a name that is not a file of the scratch directory, or nil.
func (f *rootFS) frozen(op string, names ...string) error {
	for _, name := range names {
		n := clean(name)
		_, is := f.virtual[n]
		_, below := f.virtual[path.Dir(n)]
		if n == "/" || is || below && path.Dir(n) != "/" {
			return &fs.PathError{Op: op, Path: name, Err: syscall.EROFS}
		}
	}
	return nil
}

func (f *rootFS) OpenFile(name string, flag int, perm fs.FileMode) (kit.File, error) {
	if n, ok := f.virtual[clean(name)]; ok {
		return f.openVirtual(n, clean(name), flag)
	}
	if flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0 {
		if err := f.frozen("open", name); err != nil {
			if fi, serr := f.Stat(name); serr == nil && fi.IsDir() {
				return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
			}
			return nil, err
		}
	}
	if flag&os.O_CREATE != 0 {
		if err := f.add("open", name); err != nil {
			return nil, err
		}
	}
	file, err := f.root.OpenFile(local(name), flag, perm.Perm()|0o600)
	if err != nil {
		return nil, fail("open", name, err)
	}
	return &rootFile{File: file, fs: f, name: clean(name)}, nil
}

func (f *rootFS) Stat(name string) (fs.FileInfo, error) {
	if n, ok := f.virtual[clean(name)]; ok {
		return n, nil
	}
	fi, err := f.root.Stat(local(name))
	if err != nil {
		return nil, fail("stat", name, err)
	}
	return info{fi}, nil
}

func (f *rootFS) Lstat(name string) (fs.FileInfo, error) {
	if n, ok := f.virtual[clean(name)]; ok {
		return n, nil
	}
	fi, err := f.root.Lstat(local(name))
	if err != nil {
		return nil, fail("lstat", name, err)
	}
	return info{fi}, nil
}

func (f *rootFS) ReadDir(name string) ([]fs.DirEntry, error) {
	list := f.virtualEntries(clean(name))
	if n, ok := f.virtual[clean(name)]; !ok {
		dir, err := f.root.Open(local(name))
		if err != nil {
			return nil, fail("open", name, err)
		}
		defer dir.Close()
		entries, err := dir.ReadDir(-1)
		if err != nil {
			return nil, fail("readdirent", name, err)
		}
		list = append(list, entries...)
	} else if !n.IsDir() {
		return nil, &fs.PathError{Op: "readdirent", Path: name, Err: syscall.ENOTDIR}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

func (f *rootFS) Readlink(name string) (string, error) {
	if _, ok := f.virtual[clean(name)]; ok {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: syscall.EINVAL}
	}
	target, err := f.root.Readlink(local(name))
	return target, fail("readlink", name, err)
}

func (f *rootFS) Mkdir(name string, perm fs.FileMode) error {
	if _, err := f.Lstat(name); err == nil {
		return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.EEXIST}
	}
	if err := f.frozen("mkdir", name); err != nil {
		return err
	}
	if err := f.add("mkdir", name); err != nil {
		return err
	}
	return fail("mkdir", name, f.root.Mkdir(local(name), perm.Perm()|0o700))
}

func (f *rootFS) Remove(name string) error {
	if err := f.frozen("remove", name); err != nil {
		return err
	}
	return fail("remove", name, f.root.Remove(local(name)))
}

func (f *rootFS) Rename(oldname, newname string) error {
	if err := f.frozen("rename", oldname, newname); err != nil {
		return err
	}
	return fail("rename", newname, f.root.Rename(local(oldname), local(newname)))
}

func (f *rootFS) Link(oldname, newname string) error {
	if err := f.frozen("link", oldname, newname); err != nil {
		return err
	}
	if err := f.add("link", newname); err != nil {
		return err
	}
	return fail("link", newname, f.root.Link(local(oldname), local(newname)))
}

// Symlink makes a relative link of what the target means from where the link is: a target that is
// absolute, or climbs beyond the root, would mean something else to the host.
func (f *rootFS) Symlink(target, name string) error {
	if err := f.frozen("symlink", name); err != nil {
		return err
	}
	if err := f.add("symlink", name); err != nil {
		return err
	}
	dir := path.Dir(clean(name))
	if !path.IsAbs(target) {
		target = path.Join(dir, target)
	}
	relative, err := filepath.Rel(dir, clean(target))
	if err != nil {
		return &fs.PathError{Op: "symlink", Path: name, Err: syscall.EINVAL}
	}
	return fail("symlink", name, f.root.Symlink(relative, local(name)))
}

// Chmod leaves the owner's rights alone, so that whoever made the directory can remove it.
func (f *rootFS) Chmod(name string, mode fs.FileMode) error {
	if err := f.frozen("chmod", name); err != nil {
		return err
	}
	keep := fs.FileMode(0o600)
	if fi, err := f.Stat(name); err == nil && fi.IsDir() {
		keep = 0o700
	}
	return fail("chmod", name, f.root.Chmod(local(name), mode.Perm()|keep))
}

// Chown changes nothing: all files are the agent's.
func (f *rootFS) Chown(name string, _, _ int) error {
	_, err := f.Lstat(name)
	return err
}

func (f *rootFS) Chtimes(name string, mtime time.Time) error {
	if err := f.frozen("chtimes", name); err != nil {
		return err
	}
	return fail("chtimes", name, f.root.Chtimes(local(name), mtime, mtime))
}

func (f *rootFS) StatFS(string) (kit.FSInfo, error) {
	used := measure(f.root)
	return kit.FSInfo{Source: "scratch", Type: "tmpfs", Mount: "/", Total: f.most, Free: max(f.most-used, 0)}, nil
}

// info describes a file, which is the agent's whoever owns it on the host.
type info struct{ fs.FileInfo }

// Sys returns a *kit.Owner.
func (i info) Sys() any {
	o := &kit.Owner{Links: 1}
	if s, ok := i.FileInfo.Sys().(*syscall.Stat_t); ok {
		o.Inode, o.Links = s.Ino, int(s.Nlink)
	}
	return o
}

// add asks for room for a new name, if it is one.
func (f *rootFS) add(op, name string) error {
	n := clean(name)
	if len(n) > maxName || strings.Count(n, "/") > maxDepth {
		return &fs.PathError{Op: op, Path: name, Err: syscall.ENAMETOOLONG}
	}
	if _, err := f.root.Lstat(local(name)); err == nil {
		return nil
	}
	if err := f.grow(block); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// measureAgain has the files measured before the next write: somebody else may have written.
func (f *rootFS) measureAgain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written = f.most
}

// grow asks for room for n more bytes.
func (f *rootFS) grow(n int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.written+n > f.most {
		if f.written = measure(f.root); f.written+n > f.most {
			return syscall.ENOSPC
		}
	}
	f.written += n
	return nil
}

// rootFile is an open file under its name in the agent's world. It has no more methods than it must:
// every way to write has to be counted.
type rootFile struct {
	kit.File
	fs   *rootFS
	name string
}

var _ kit.File = (*rootFile)(nil)

func (r *rootFile) Name() string { return r.name }

func (r *rootFile) Stat() (fs.FileInfo, error) {
	fi, err := r.File.Stat()
	if err != nil {
		return nil, fail("stat", r.name, err)
	}
	return info{fi}, nil
}

func (r *rootFile) Write(p []byte) (int, error) {
	if err := r.fs.grow(int64(len(p))); err != nil {
		return 0, &fs.PathError{Op: "write", Path: r.name, Err: err}
	}
	return r.File.Write(p)
}

func (r *rootFile) WriteAt(p []byte, off int64) (int, error) {
	if err := r.fs.grow(int64(len(p))); err != nil {
		return 0, &fs.PathError{Op: "write", Path: r.name, Err: err}
	}
	return r.File.WriteAt(p, off)
}

func (r *rootFile) Truncate(size int64) error {
	if err := r.fs.grow(size); err != nil {
		return &fs.PathError{Op: "truncate", Path: r.name, Err: err}
	}
	return r.File.Truncate(size)
}
