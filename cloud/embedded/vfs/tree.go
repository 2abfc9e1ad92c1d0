package vfs

import (
	"io/fs"
	"path"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// Disk is a device of limited size that trees live on. A nil Disk is unlimited.
type Disk struct {
	Name  string
	Total int64 // bytes
	// On is the device below this disk, if it has less space than the disks on it claim together.
	On   *Disk
	used atomic.Int64
}

// inodeSize is what a file takes beside its content, on what disks live on.
const inodeSize = 1 << 10

// Used returns how many bytes the trees on the disk hold.
func (d *Disk) Used() int64 { return d.used.Load() }

// reserve takes n bytes, which may be negative; it reports false if they are not there.
func (d *Disk) reserve(n int64) bool {
	if d == nil {
		return true
	}
	if d.used.Add(n) > d.Total && n > 0 || !d.On.reserve(n) {
		d.used.Add(-n)
		return false
	}
	return true
}

// Free returns how many bytes can still be written.
func (d *Disk) Free() int64 {
	free := max(0, d.Total-d.Used())
	if d.On != nil {
		free = min(free, d.On.Free())
	}
	return free
}

// occupy takes the place of n files, which may be negative; it reports false if it is not there.
func (d *Disk) occupy(n int64) bool { return d == nil || d.On.reserve(n*inodeSize) }

// Options describe a new tree. The zero value is an unlimited file system of no particular type.
type Options struct {
	Type string      // "overlay", "ext4", "tmpfs", ...
	Disk *Disk       // where it lives
	Mode fs.FileMode // permissions of its root; default 0755
}

// Tree is a hierarchy of files.
type Tree struct {
	opts Options
	now  func() time.Time

	mu    sync.RWMutex
	root  *inode
	used  int64 // bytes of content
	inode uint64
}

// inode is a file, a directory or a link. Its fields are protected by its tree's mutex.
type inode struct {
	id       uint64
	mode     fs.FileMode // with type bits
	uid, gid int
	mtime    time.Time
	links    int

	data     []byte // of a regular file
	borrowed bool   // data is shared with a clone: copy before writing to it
	target   string // of a symbolic link
	children map[string]*inode

	device *Device
	live   *Live                              // what it holds besides children
	fixed  bool                               // nobody can add to it
	jump   func(kit.User) (*Namespace, error) // where a link leads that is more than its target
	locker *file                              // holds the lock on it
}

// What kind of file an inode is never changes, so these need no lock.
func (n *inode) isDir() bool  { return n.children != nil }
func (n *inode) isLink() bool { return n.target != "" }

// Device is a file whose content is made, not stored.
type Device struct {
	// Open returns what reads and writes of the file do.
	Open func(flag int) (Stream, error)
	// Size makes the device look like a regular file of that many bytes. If it is nil, it looks like a device.
	Size func() int64
}

// typed adds to permissions what kind of file a device looks like.
func (d Device) typed(perm fs.FileMode) fs.FileMode {
	if d.Size != nil {
		return perm
	}
	return perm | fs.ModeDevice | fs.ModeCharDevice
}

// Stream is an open device.
type Stream interface {
	Read(p []byte) (int, error)
	Write(p []byte) (int, error)
}

// NewTree returns a tree with an empty root directory.
func NewTree(opts Options) *Tree {
	if opts.Mode == 0 {
		opts.Mode = 0o755
	}
	t := &Tree{opts: opts, now: time.Now}
	t.root = t.newInode(fs.ModeDir|opts.Mode, kit.User{})
	return t
}

// Disk returns what the tree lives on; nil if it is unlimited.
func (t *Tree) Disk() *Disk { return t.opts.Disk }

// Used returns the bytes and the number of files in the tree.
func (t *Tree) Used() (bytes int64, files int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.root.usage()
}

func (t *Tree) newInode(mode fs.FileMode, u kit.User) *inode {
	t.inode++
	n := &inode{id: t.inode, mode: mode, uid: u.UID, gid: u.GID, mtime: t.now(), links: 1}
	if mode.IsDir() {
		n.links = 2
		n.children = map[string]*inode{}
	}
	return n
}

// Clone returns a copy of the tree on the given disk. Contents are shared until one side writes.
func (t *Tree) Clone(disk *Disk) *Tree {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &Tree{opts: t.opts, now: t.now, used: t.used, inode: t.inode}
	c.opts.Disk = disk
	var files int64
	c.root, files = t.root.copy()
	if disk != nil {
		disk.take(c.used, files)
	}
	return c
}

// take counts what a disk is given, whether there is room or not.
func (d *Disk) take(bytes, files int64) {
	d.used.Add(bytes)
	if d.On != nil {
		d.On.used.Add(bytes + files*inodeSize)
	}
}

// Graft copies the content of another tree into a new directory of t. Contents are shared until one
// side writes.
func (t *Tree) Graft(dir string, from *Tree) error {
	c := from.Clone(nil)
	w, err := NewNamespace(t).walk(kit.User{}, "graft", path.Clean("/"+dir), true)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case w.node != nil:
		return pathError("graft", dir, syscall.EEXIST)
	case !t.resize(c.used):
		return pathError("graft", dir, syscall.ENOSPC)
	}
	var files int64
	var renumber func(*inode)
	renumber = func(n *inode) {
		t.inode++
		files++
		n.id = t.inode
		for _, c := range n.children {
			renumber(c)
		}
	}
	renumber(c.root)
	t.opts.Disk.occupy(files) // An image is small; there is room for it.
	w.parent.node.children[w.name] = c.root
	w.parent.node.links++
	return nil
}

// UsedBy returns the bytes and the number of files at and below a path; nothing if it does not exist.
func (t *Tree) UsedBy(name string) (bytes int64, files int) {
	w, err := NewNamespace(t).walk(kit.User{}, "du", path.Clean("/"+name), true)
	if err != nil || w.node == nil {
		return 0, 0
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return w.node.usage()
}

func (n *inode) usage() (bytes int64, files int) {
	bytes, files = int64(len(n.data)), 1
	for _, c := range n.children {
		b, f := c.usage()
		bytes, files = bytes+b, files+f
	}
	return bytes, files
}

// Discard gives the tree's space back to its disk. The tree must not be used any more.
func (t *Tree) Discard() {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, files := t.root.usage()
	t.opts.Disk.occupy(-int64(files))
	t.opts.Disk.reserve(-t.used)
	t.used = 0
}

// Own gives every file at and below a path to a group and lets it read and write, as the kubelet
// does for a pod's fsGroup.
func (t *Tree) Own(name string, gid int, readOnly bool) error {
	w, err := NewNamespace(t).walk(kit.User{}, "chown", path.Clean("/"+name), true)
	if err != nil {
		return err
	}
	if w.node == nil {
		return pathError("chown", name, syscall.ENOENT)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w.node.own(gid, readOnly)
	return nil
}

func (n *inode) own(gid int, readOnly bool) {
	n.gid = gid
	if !n.isLink() {
		n.mode |= 0o440
		if !readOnly {
			n.mode |= 0o220
		}
		if n.isDir() {
			n.mode |= fs.ModeSetgid | 0o110
		}
	}
	for _, c := range n.children {
		c.own(gid, readOnly)
	}
}

// shipped is the age of files that came with an image: nothing that a program has written is as old.
const shipped = 180 * 24 * time.Hour

// Date gives every file of a tree one time.
func (t *Tree) Date(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.root.date(at)
}

func (n *inode) date(at time.Time) {
	n.mtime = at
	for _, c := range n.children {
		c.date(at)
	}
}

// Age moves the times of every file at and below a path, but for those that came with an image. It is no error if the
// path does not exist.
func (t *Tree) Age(name string, by time.Duration) {
	w, err := NewNamespace(t).walk(kit.User{}, "touch", path.Clean("/"+name), true)
	if err != nil || w.node == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w.node.age(by, t.now().Add(-shipped), map[*inode]bool{})
}

func (n *inode) age(by time.Duration, oldest time.Time, seen map[*inode]bool) {
	if seen[n] { // It has two names.
		return
	}
	if seen[n] = true; n.mtime.After(oldest) {
		n.mtime = n.mtime.Add(by)
	}
	for _, c := range n.children {
		c.age(by, oldest, seen)
	}
}

// AddDevice creates a device file in a directory that exists.
func (t *Tree) AddDevice(name string, mode fs.FileMode, d Device) error {
	return t.Root().(*view).change("mknod", name, func(w walked) error {
		if w.node != nil {
			return syscall.EEXIST
		}
		n := t.newInode(d.typed(mode), kit.User{})
		n.device = &d
		w.parent.node.children[w.name] = n
		return nil
	})
}

// Root returns the tree as root sees it when nothing is mounted on it.
func (t *Tree) Root() kit.FS { return NewNamespace(t).As(kit.User{}) }

// resize accounts for a file growing or shrinking. It is called with t.mu held.
func (t *Tree) resize(delta int64) bool {
	if !t.opts.Disk.reserve(delta) {
		return false
	}
	t.used += delta
	return true
}
