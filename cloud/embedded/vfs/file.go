package vfs

import (
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

// file is an open file, directory or device.
type file struct {
	view   *view
	place  place
	name   string
	flag   int
	stream Stream // of a device

	mu     sync.Mutex // protects what follows
	offset int64
	read   []fs.DirEntry // what ReadDir has not returned yet
	listed bool
	closed bool
}

var (
	_ kit.File       = (*file)(nil)
	_ kit.FileLocker = (*file)(nil)
)

func (f *file) fail(op string, err error) error { return pathError(op, f.name, err) }

// ready checks that the file is open and may be used as op does.
func (f *file) ready(op string, writes bool) error {
	switch {
	case f.closed:
		return f.fail(op, fs.ErrClosed)
	case f.place.node.isDir():
		return f.fail(op, syscall.EISDIR)
	case writes && f.flag&(os.O_WRONLY|os.O_RDWR) == 0, !writes && f.flag&os.O_WRONLY != 0:
		return f.fail(op, syscall.EBADF)
	}
	return nil
}

func (f *file) Read(b []byte) (int, error) {
	if err := f.allow("read", "read"); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ready("read", false); err != nil {
		return 0, err
	}
	if f.stream != nil {
		f.mu.Unlock() // A device may block.
		defer f.mu.Lock()
		return f.stream.Read(b)
	}
	n, err := f.readAt(b, f.offset)
	f.offset += int64(n)
	return n, err
}

func (f *file) ReadAt(b []byte, offset int64) (int, error) {
	if err := f.allow("read", "read"); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ready("read", false); err != nil {
		return 0, err
	}
	n, err := f.readAt(b, offset)
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

func (f *file) readAt(b []byte, offset int64) (int, error) {
	t := f.place.mount.tree
	t.mu.RLock()
	defer t.mu.RUnlock()
	data := f.place.node.data
	if offset >= int64(len(data)) {
		if len(b) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	return copy(b, data[offset:]), nil
}

func (f *file) Write(b []byte) (int, error) {
	if err := f.allow("write", "write"); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ready("write", true); err != nil {
		return 0, err
	}
	if f.stream != nil {
		f.mu.Unlock()
		defer f.mu.Lock()
		return f.stream.Write(b)
	}
	n, end, err := f.writeAt(b, f.offset, f.flag&os.O_APPEND != 0)
	f.offset = end
	return n, err
}

func (f *file) WriteAt(b []byte, offset int64) (int, error) {
	if err := f.allow("write", "write"); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ready("write", true); err != nil {
		return 0, err
	}
	n, _, err := f.writeAt(b, offset, false)
	return n, err
}

// writeAt returns how much it wrote and where it ended.
func (f *file) writeAt(b []byte, offset int64, atEnd bool) (n int, end int64, err error) {
	t, node := f.place.mount.tree, f.place.node
	t.mu.Lock()
	defer t.mu.Unlock()
	if atEnd {
		offset = int64(len(node.data))
	}
	end = offset + int64(len(b))
	if grow := end - int64(len(node.data)); grow > 0 {
		if !t.resize(grow) {
			return 0, offset, f.fail("write", syscall.ENOSPC)
		}
		node.extend(end)
	} else {
		node.private()
	}
	copy(node.data[offset:], b)
	node.mtime = t.now()
	return len(b), end, nil
}

// private makes sure that nobody else uses the inode's data.
func (n *inode) private() {
	if n.borrowed {
		n.data, n.borrowed = append([]byte(nil), n.data...), false
	}
}

// extend makes the data size bytes long.
func (n *inode) extend(size int64) {
	if !n.borrowed && size <= int64(cap(n.data)) {
		old := len(n.data)
		n.data = n.data[:size]
		clear(n.data[old:])
		return
	}
	data := make([]byte, size, max(size, min(2*int64(cap(n.data)), size+size/4)))
	copy(data, n.data)
	n.data, n.borrowed = data, false
}

func (f *file) Truncate(size int64) error {
	if err := f.allow("truncate", "setattr"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ready("truncate", true); err != nil {
		return err
	}
	t, node := f.place.mount.tree, f.place.node
	t.mu.Lock()
	defer t.mu.Unlock()
	if size < 0 {
		return f.fail("truncate", syscall.EINVAL)
	}
	if !t.resize(size - int64(len(node.data))) {
		return f.fail("truncate", syscall.ENOSPC)
	}
	switch {
	case size == 0:
		node.data, node.borrowed = nil, false
	case size > int64(len(node.data)):
		node.extend(size)
	default:
		node.private()
		node.data = node.data[:size]
	}
	node.mtime = t.now()
	return nil
}

func (f *file) Seek(offset int64, whence int) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, f.fail("seek", fs.ErrClosed)
	}
	if f.stream != nil {
		return 0, f.fail("seek", syscall.ESPIPE)
	}
	switch whence {
	case io.SeekCurrent:
		offset += f.offset
	case io.SeekEnd:
		t := f.place.mount.tree
		t.mu.RLock()
		offset += int64(len(f.place.node.data))
		t.mu.RUnlock()
	}
	if offset < 0 {
		return 0, f.fail("seek", syscall.EINVAL)
	}
	f.offset, f.listed, f.read = offset, false, nil
	return offset, nil
}

func (f *file) ReadDir(n int) ([]fs.DirEntry, error) {
	if err := f.allow("readdirent", "readdir"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, f.fail("readdirent", fs.ErrClosed)
	}
	if !f.listed {
		list, err := f.view.entries(f.name, f.place)
		if err != nil {
			return nil, err
		}
		f.read, f.listed = list, true
	}
	if n <= 0 || n > len(f.read) {
		if n > 0 && len(f.read) == 0 {
			return nil, io.EOF
		}
		n = len(f.read)
	}
	list := f.read[:n]
	f.read = f.read[n:]
	return list, nil
}

func (f *file) Stat() (fs.FileInfo, error) {
	if err := f.allow("stat", "getattr"); err != nil {
		return nil, err
	}
	t := f.place.mount.tree
	t.mu.RLock()
	defer t.mu.RUnlock()
	return newInfo(path.Base(f.name), f.place.node), nil
}

func (f *file) Name() string { return f.name }

func (f *file) Sync() error { return f.allow("sync", "fsync") }

func (f *file) TryLock() error {
	if err := f.allow("flock", "setlk"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return f.fail("flock", fs.ErrClosed)
	}
	t, node := f.place.mount.tree, f.place.node
	t.mu.Lock()
	defer t.mu.Unlock()
	if node.locker != nil && node.locker != f {
		return f.fail("flock", syscall.EAGAIN)
	}
	node.locker = f
	return nil
}

func (f *file) Close() error {
	lost := f.allow("close", "flush") // It is closed all the same.
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return f.fail("close", fs.ErrClosed)
	}
	f.closed = true
	t, node := f.place.mount.tree, f.place.node
	t.mu.Lock()
	if node.locker == f {
		node.locker = nil
	}
	t.mu.Unlock()
	if c, ok := f.stream.(io.Closer); ok {
		return c.Close()
	}
	return lost
}
