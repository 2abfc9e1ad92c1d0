package cli

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// An environment holds a lock on its directory. The kernel drops the lock when the process ends,
// however it ends, so what can be locked is left over from one that was killed. (The cleaner of
// systemd, too, leaves a locked directory alone.)

// envPattern is how the directories are named. It is narrow, because what matches may be removed.
const envPattern = "aiopslab-env-*"

// errHeld says that another process holds a directory, or has just removed it.
var errHeld = errors.New("held by another process")

// held keeps the locked directories open.
var held struct {
	sync.Mutex
	files []*os.File
}

// hold locks a directory until the process ends.
func hold(dir string) error {
	f, err := lock(dir)
	if err != nil {
		return err
	}
	held.Lock()
	defer held.Unlock()
	held.files = append(held.files, f)
	return nil
}

// sweep removes a directory that nobody holds, and reports whether somebody does. One that belongs
// to another user counts as held by nobody and stays.
func sweep(dir string) (live bool) {
	f, err := lock(dir)
	if err != nil {
		return errors.Is(err, errHeld)
	}
	defer f.Close()
	_ = os.RemoveAll(dir)
	return false
}

// lock returns the directory's locked file. Between the opening and the locking it may have been
// swept: then the lock is on something that has no name any more.
func lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errHeld
	}
	if err != nil {
		return nil, err
	}
	if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		err = errHeld
	}
	if err == nil && !sameFile(f, dir) {
		err = errHeld
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func sameFile(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}
