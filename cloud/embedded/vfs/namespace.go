package vfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

// maxLinks is how many symbolic links a path may lead through.
const maxLinks = 40

// Namespace is a root tree with mounts.
type Namespace struct {
	hook atomic.Pointer[Hook]

	mu     sync.RWMutex
	mounts map[string]*mount // by mount point
}

type mount struct {
	at   string
	tree *Tree
	root *inode
	opts MountOptions
}

// MountOptions say how something is mounted.
type MountOptions struct {
	ReadOnly bool
	Source   string // the device /proc/mounts names; the tree's disk by default
}

// NewNamespace returns a namespace with root mounted at "/".
func NewNamespace(root *Tree) *Namespace {
	return &Namespace{mounts: map[string]*mount{"/": {at: "/", tree: root, root: root.root}}}
}

// Clear leaves nothing in the namespace but an empty root. Whoever still has it, such as a timer of a program that has
// ended, keeps no files with it.
func (n *Namespace) Clear() {
	n.hook.Store(nil)
	empty := NewTree(Options{})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mounts = map[string]*mount{"/": {at: "/", tree: empty, root: empty.root}}
}

// Sub returns a namespace whose root is a directory of n. What is mounted below it stays behind.
func (n *Namespace) Sub(dir string) (*Namespace, error) {
	p, err := n.source(dir)
	if err != nil {
		return nil, err
	}
	if !p.node.isDir() {
		return nil, pathError("chroot", dir, syscall.ENOTDIR)
	}
	return &Namespace{mounts: map[string]*mount{"/": {at: "/", tree: p.mount.tree, root: p.node}}}, nil
}

// SetReadOnly makes the root read-only; what is mounted on it keeps its own mode.
func (n *Namespace) SetReadOnly() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mounts["/"].opts.ReadOnly = true
}

// Mount puts the root of a tree at a path, which is created if it does not exist.
func (n *Namespace) Mount(at string, t *Tree, opts MountOptions) error {
	return n.attach(&mount{at: path.Clean("/" + at), tree: t, root: t.root, opts: opts})
}

// Bind puts a file or directory of another namespace, with what is mounted below it now, at a path,
// which is created if it does not exist.
func (n *Namespace) Bind(at string, from *Namespace, name string, opts MountOptions) error {
	p, err := from.source(name)
	if err != nil {
		return err
	}
	at = path.Clean("/" + at)
	below := p.ns.below(p.in)
	if err := n.attach(&mount{at: at, tree: p.mount.tree, root: p.node, opts: opts}); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for rel, m := range below {
		n.mounts[path.Join(at, rel)] = &mount{at: path.Join(at, rel), tree: m.tree, root: m.root, opts: m.opts}
	}
	return nil
}

// below returns what is mounted below a directory, by the path from there.
func (n *Namespace) below(dir string) map[string]*mount {
	prefix := strings.TrimSuffix(dir, "/") + "/"
	n.mu.RLock()
	defer n.mu.RUnlock()
	list := map[string]*mount{}
	for at, m := range n.mounts {
		if rel, ok := strings.CutPrefix(at, prefix); ok && rel != "" {
			list[rel] = m
		}
	}
	return list
}

// Unmount undoes the mount at a path, if there is one.
func (n *Namespace) Unmount(at string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if at = path.Clean("/" + at); at != "/" {
		delete(n.mounts, at)
	}
}

// source finds what is to be mounted elsewhere.
func (n *Namespace) source(name string) (place, error) {
	w, err := n.walk(kit.User{}, "mount", path.Clean("/"+name), true)
	if err == nil && w.node == nil {
		err = pathError("mount", name, syscall.ENOENT)
	}
	return w.place, err
}

func (n *Namespace) attach(m *mount) error {
	if err := n.mountPoint(m.at, m.root.isDir()); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mounts[m.at] = m
	return nil
}

// mountPoint creates what a mount hides.
func (n *Namespace) mountPoint(at string, dir bool) error {
	if at == "/" {
		return nil
	}
	root := n.As(kit.User{}).(*view)
	root.privileged = true
	env := &kit.Env{FS: root, Dir: "/"}
	if _, err := root.Lstat(at); err == nil {
		return nil
	}
	if dir {
		return env.MkdirAll(at, 0o755)
	}
	if err := env.MkdirAll(path.Dir(at), 0o755); err != nil {
		return err
	}
	return env.WriteFile(at, nil, 0o644)
}

// Mounts lists what is mounted, by mount point.
func (n *Namespace) Mounts() []kit.FSInfo {
	n.mu.RLock()
	defer n.mu.RUnlock()
	list := make([]kit.FSInfo, 0, len(n.mounts))
	for _, m := range n.mounts {
		list = append(list, m.info())
	}
	slices.SortFunc(list, func(a, b kit.FSInfo) int { return strings.Compare(a.Mount, b.Mount) })
	return list
}

func (m *mount) info() kit.FSInfo {
	i := kit.FSInfo{Source: m.opts.Source, Type: m.tree.opts.Type, Mount: m.at, ReadOnly: m.opts.ReadOnly}
	if d := m.tree.opts.Disk; d != nil {
		i.Total, i.Free = d.Total, d.Free()
		if i.Source == "" {
			i.Source = d.Name
		}
	}
	if i.Source == "" {
		i.Source = i.Type
	}
	return i
}

func (n *Namespace) mountAt(at string) *mount {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.mounts[at]
}

// What a kernel takes as a path, and as a part of it.
const (
	maxPath = 4096
	maxName = 255
)

// place is a point in the hierarchy. Whoever has another root, or looks into another namespace, calls
// it by another path than the namespace it is in.
type place struct {
	ns    *Namespace
	in    string // its path there
	mount *mount
	node  *inode
	path  string // as whoever looks calls it
}

// root is where paths of the namespace start.
func (n *Namespace) root() place {
	m := n.mountAt("/")
	return place{ns: n, in: "/", mount: m, node: m.root, path: "/"}
}

// walked is what a path leads to. node is nil if only its last element does not exist.
type walked struct {
	place
	parent place
	name   string  // last element
	above  []place // the directories it lies in, the root first
}

// walk resolves an absolute path for a user. With follow, a symbolic link at its end is followed.
func (n *Namespace) walk(u kit.User, op, name string, follow bool) (walked, error) {
	return walk(n.root(), u, op, name, follow)
}

func walk(root place, u kit.User, op, name string, follow bool) (walked, error) {
	fail := func(err error) (walked, error) {
		return walked{}, &fs.PathError{Op: op, Path: name, Err: err}
	}
	if len(name) >= maxPath {
		return fail(syscall.ENAMETOOLONG)
	}
	trail := []place{root}
	rest := elements(name)
	last := "/"
	for links := 0; len(rest) > 0; {
		here := trail[len(trail)-1]
		element := rest[0]
		rest = rest[1:]
		switch {
		case len(element) > maxName:
			return fail(syscall.ENAMETOOLONG)
		case !here.node.isDir():
			return fail(syscall.ENOTDIR)
		case element == ".":
			continue
		case element == "..":
			if len(trail) > 1 {
				trail = trail[:len(trail)-1]
			}
			continue
		}
		t := here.mount.tree
		t.mu.RLock()
		searchable := permitted(here.node, u, 1)
		child := here.node.child(element)
		var target string
		if child != nil {
			target = child.target
		}
		t.mu.RUnlock()
		if !searchable {
			return fail(syscall.EACCES)
		}
		last = element
		next := place{here.ns, path.Join(here.in, element), here.mount, child, path.Join(here.path, element)}
		if m := here.ns.mountAt(next.in); m != nil {
			next.mount, next.node = m, m.root
			target = ""
		}
		switch {
		case next.node == nil && len(rest) > 0:
			return fail(syscall.ENOENT)
		case next.node == nil:
			return walked{place: next, parent: here, name: element, above: trail}, nil
		case next.node.jump != nil && (len(rest) > 0 || follow):
			if links++; links > maxLinks {
				return fail(syscall.ELOOP)
			}
			there, err := next.node.jump(u)
			if err != nil {
				return fail(err)
			}
			at := next.path
			next = there.root()
			next.path = at
		case target != "" && (len(rest) > 0 || follow):
			if links++; links > maxLinks {
				return fail(syscall.ELOOP)
			}
			if strings.HasPrefix(target, "/") {
				trail = trail[:1]
			}
			rest = append(elements(target), rest...)
			continue
		}
		trail = append(trail, next)
	}
	w := walked{place: trail[len(trail)-1], name: last, above: trail[:len(trail)-1]}
	w.parent = trail[max(0, len(trail)-2)]
	return w, nil
}

func elements(name string) []string {
	return slices.DeleteFunc(strings.Split(name, "/"), func(s string) bool { return s == "" })
}

// permitted reports whether u may do what the rwx bits in want say. It is called with the tree's
// mutex held.
func permitted(n *inode, u kit.User, want fs.FileMode) bool {
	if u.UID == 0 {
		return want&1 == 0 || n.isDir() || n.mode&0o111 != 0
	}
	perm := n.mode.Perm()
	switch {
	case u.UID == n.uid:
		perm >>= 6
	case u.GID == n.gid || slices.Contains(u.Groups, n.gid):
		perm >>= 3
	}
	return perm&want == want
}
