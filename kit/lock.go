package kit

// FileLocker is an optional power of a File: an exclusive lock on the whole file, as flock(2) gives.
type FileLocker interface {
	// TryLock takes the lock, which is given back when the file is closed. If another open file
	// holds it, the error is EAGAIN.
	TryLock() error
}
