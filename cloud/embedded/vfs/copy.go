package vfs

import (
	"path"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

// Copy returns a copy of a file or a directory, with all that is below it but for what is mounted there. It is on no
// disk, and contents are shared until one side writes. A path that leads over a link is refused: who made the link
// could have anything copied, or filled.
func (n *Namespace) Copy(name string) (*Tree, error) {
	p, err := n.plain("copy", name)
	if err != nil {
		return nil, err
	}
	t := p.mount.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &Tree{opts: t.opts, now: t.now, inode: t.inode}
	c.opts.Disk = nil
	c.root, _ = p.node.copy()
	c.used, _ = c.root.unique()
	return c, nil
}

// Size returns the bytes and the number of files that Copy would copy.
func (n *Namespace) Size(name string) (bytes int64, files int, err error) {
	p, err := n.plain("copy", name)
	if err != nil {
		return 0, 0, err
	}
	p.mount.tree.mu.RLock()
	defer p.mount.tree.mu.RUnlock()
	bytes, files = p.node.unique()
	return bytes, files, nil
}

// Fill makes a file or a directory what a copy of it is, in place: whoever has it mounted sees it, and what is mounted
// below it stays. The copy can be used again.
func (n *Namespace) Fill(name string, from *Tree) error {
	p, err := n.plain("fill", name)
	if err != nil {
		return err
	}
	c := from.Clone(nil).root
	t := p.mount.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	node := p.node
	if node.isDir() != c.isDir() || node.isLink() || node.device != nil || node.live != nil {
		return pathError("fill", name, syscall.EINVAL)
	}
	wasBytes, wasFiles := node.unique()
	bytes, files := c.unique()
	if !t.resize(bytes - wasBytes) {
		return pathError("fill", name, syscall.ENOSPC)
	}
	t.opts.Disk.occupy(int64(files - wasFiles)) // What was there made room for most of it.
	numbered := map[*inode]bool{c: true}
	var number func(*inode)
	number = func(n *inode) {
		for _, child := range n.children {
			if !numbered[child] {
				numbered[child] = true
				t.inode++
				child.id = t.inode
				number(child)
			}
		}
	}
	number(c)
	node.mode, node.uid, node.gid, node.mtime = c.mode, c.uid, c.gid, c.mtime
	node.data, node.borrowed, node.children = c.data, c.borrowed, c.children
	if node.isDir() {
		node.links = c.links
	}
	return nil
}

// plain finds what a path leads to without links.
func (n *Namespace) plain(op, name string) (place, error) {
	name = path.Clean("/" + name)
	w, err := n.walk(kit.User{}, op, name, false)
	switch {
	case err != nil:
		return place{}, err
	case w.node == nil:
		return place{}, pathError(op, name, syscall.ENOENT)
	case w.path != name || w.ns != n || w.node.isLink():
		return place{}, pathError(op, name, syscall.ELOOP)
	}
	return w.place, nil
}

// copy copies an inode and what is below it, and returns how many inodes those are. It is called with the tree's
// mutex held.
func (n *inode) copy() (root *inode, files int64) {
	copies := map[*inode]*inode{} // keeps hard links together
	var copyNode func(*inode) *inode
	copyNode = func(n *inode) *inode {
		if d := copies[n]; d != nil {
			return d
		}
		n.borrowed = true
		d := *n
		d.locker = nil
		copies[n] = &d
		if n.children != nil {
			d.children = make(map[string]*inode, len(n.children))
			for name, child := range n.children {
				d.children[name] = copyNode(child)
			}
		}
		return &d
	}
	return copyNode(n), int64(len(copies))
}

// unique is the bytes and the number of files at and below an inode, with those that have several names counted once.
func (n *inode) unique() (bytes int64, files int) {
	seen := map[*inode]bool{}
	var count func(*inode)
	count = func(n *inode) {
		if seen[n] {
			return
		}
		seen[n] = true
		bytes += int64(len(n.data))
		for _, c := range n.children {
			count(c)
		}
	}
	count(n)
	return bytes, len(seen)
}
