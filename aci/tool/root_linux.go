package tool

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// ownNamespace gives a process the right to change its root, where it does not have that anyway: it
// becomes the superuser of a user namespace that only maps whom it runs as.
func ownNamespace(a *syscall.SysProcAttr) {
	if os.Geteuid() == 0 {
		return
	}
	a.Cloneflags |= syscall.CLONE_NEWUSER
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
}

// changeRoot makes a directory the root of the process, whose working directory is below it.
func changeRoot(dir string) error {
	if err := unix.Chroot(dir); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	return nil
}

// dropCapabilities leaves the process with the rights over its own files and nothing else, but that
// it can change its root, if it is to. That comes last: telling all threads takes /proc in builds with
// cgo.
func dropCapabilities(changesRoot bool) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var rights [2]unix.CapUserData
	if changesRoot {
		rights[0].Effective, rights[0].Permitted = 1<<unix.CAP_SYS_CHROOT, 1<<unix.CAP_SYS_CHROOT
	}
	_, _, errno := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&rights[0])),
		0)
	if errno != 0 {
		return fmt.Errorf("drop capabilities: %w", errno)
	}
	return nil
}

// OwnRoot reports whether processes of [Command] can have a root of their own here.
var OwnRoot = sync.OnceValue(func() bool {
	attr := &syscall.SysProcAttr{Chroot: "/proc"}
	ownNamespace(attr)
	_, err := os.StartProcess("/no program", []string{"/no program"}, &os.ProcAttr{Sys: attr})
	return errors.Is(err, syscall.ENOENT) // It came as far as that.
})
