//go:build unix

package cli

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// locked keeps lock files open for the life of the process.
var locked sync.Map // path -> *os.File

// lock takes a lock that the kernel releases when the process ends.
func lock(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return err
	}
	locked.Store(path, f)
	return nil
}

// tryLock reports errRunning if somebody holds the lock, and nil if nobody does any more. A file
// that is not there, or not ours, is an error of its own.
func tryLock(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return errRunning
		}
		return err
	}
	return nil
}
