package vfs

import (
	"io/fs"
	"iter"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
)

// Live is the part of a directory that is made when somebody looks, as the processes in /proc are.
type Live struct {
	// List returns the names that are there now.
	List func() []string
	// Open returns the directory of that name, or nil. It is called often and must not use the files of
	// the tree that it is in.
	Open func(name string) *LiveDir
}

// LiveDir is a directory with all it holds, at one moment.
type LiveDir struct {
	User  kit.User            // who owns it
	Files map[string]LiveFile // by name; one with a slash is in a directory of its own
	Jumps map[string]Jump     // links to the root of another namespace
}

// LiveFile is a file of a LiveDir.
type LiveFile struct {
	Device
	Mode fs.FileMode
}

// Jump returns the namespace that a link leads to, for a user who may go there.
type Jump func(kit.User) (*Namespace, error)

// MakeLive gives the root of the tree a part that is live. From then on nothing can be added to it.
func (t *Tree) MakeLive(l Live) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.root.live, t.root.fixed = &l, true
}

// child returns an entry of a directory, or nil. It is called with the tree's mutex held.
func (n *inode) child(name string) *inode {
	if c := n.children[name]; c != nil || n.live == nil {
		return c
	}
	if d := n.live.Open(name); d != nil {
		return d.inode(n)
	}
	return nil
}

// all yields the entries of a directory. It is called with the tree's mutex held.
func (n *inode) all() iter.Seq2[string, *inode] {
	return func(yield func(string, *inode) bool) {
		for name, c := range n.children {
			if !yield(name, c) {
				return
			}
		}
		if n.live == nil {
			return
		}
		for _, name := range n.live.List() {
			if c := n.child(name); c != nil && !yield(name, c) {
				return
			}
		}
	}
}

// inode turns the directory into one of a tree, below parent.
func (d *LiveDir) inode(parent *inode) *inode {
	made := func(mode fs.FileMode) *inode {
		n := &inode{mode: mode, uid: d.User.UID, gid: d.User.GID, mtime: parent.mtime, links: 1}
		if mode.IsDir() {
			n.links, n.fixed, n.children = 2, true, map[string]*inode{}
		}
		return n
	}
	root := made(fs.ModeDir | 0o555)
	for name, file := range d.Files {
		dir := root
		if at, base, ok := strings.Cut(name, "/"); ok {
			if root.children[at] == nil {
				root.children[at] = made(fs.ModeDir | 0o555)
			}
			dir, name = root.children[at], base
		}
		f := made(file.typed(file.Mode))
		f.device = &file.Device
		dir.children[name] = f
	}
	for name, jump := range d.Jumps {
		l := made(fs.ModeSymlink | 0o777)
		l.target, l.jump = "/", jump
		root.children[name] = l
	}
	return root
}
