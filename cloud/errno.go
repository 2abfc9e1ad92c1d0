package cloud

import (
	"maps"
	"slices"
	"syscall"
)

// errnos are the errors that a disturbance can make calls fail with, by their names.
var errnos = map[string]syscall.Errno{
	"EPERM": syscall.EPERM, "ENOENT": syscall.ENOENT, "EINTR": syscall.EINTR, "EIO": syscall.EIO,
	"ENXIO": syscall.ENXIO, "EBADF": syscall.EBADF, "EAGAIN": syscall.EAGAIN, "ENOMEM": syscall.ENOMEM,
	"EACCES": syscall.EACCES, "EFAULT": syscall.EFAULT, "EBUSY": syscall.EBUSY, "EEXIST": syscall.EEXIST,
	"ENODEV": syscall.ENODEV, "ENOTDIR": syscall.ENOTDIR, "EISDIR": syscall.EISDIR, "EINVAL": syscall.EINVAL,
	"ENFILE": syscall.ENFILE, "EMFILE": syscall.EMFILE, "EFBIG": syscall.EFBIG, "ENOSPC": syscall.ENOSPC,
	"EROFS": syscall.EROFS, "EPIPE": syscall.EPIPE, "ENOSYS": syscall.ENOSYS, "EDQUOT": syscall.EDQUOT,
	"ESTALE": syscall.ESTALE, "ENOBUFS": syscall.ENOBUFS, "ENOTCONN": syscall.ENOTCONN, "ETIMEDOUT": syscall.ETIMEDOUT,
	"ENETDOWN": syscall.ENETDOWN, "ECONNREFUSED": syscall.ECONNREFUSED, "ECONNRESET": syscall.ECONNRESET,
	"ECONNABORTED": syscall.ECONNABORTED, "EHOSTUNREACH": syscall.EHOSTUNREACH, "ENETUNREACH": syscall.ENETUNREACH,
	"EADDRINUSE": syscall.EADDRINUSE, "EADDRNOTAVAIL": syscall.EADDRNOTAVAIL,
}

// Errno returns the kernel error with the given name, such as "EIO".
func Errno(name string) (syscall.Errno, bool) {
	e, ok := errnos[name]
	return e, ok
}

func errnoNames() []string { return slices.Sorted(maps.Keys(errnos)) }
