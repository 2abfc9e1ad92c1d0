package proc

import (
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An agent's program has the user's rights, and so it could kill the lab when it is about to lose, or
// read in the memory of the environment what is wrong. Landlock is the one thing that an unprivileged
// process can put between the two: a program in a domain of its own sends signals to its own processes
// alone, and traces and inspects no others.

// abiScope is the version of Landlock's interface that brought signals, with Linux 6.12.
const abiScope = 6

// Apart reports whether the kernel can keep a program from signalling and inspecting the lab.
func Apart() bool {
	abi, _, err := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return err == 0 && abi >= abiScope
}

// startApart starts a command in a domain of its own, if the kernel can. A domain is a thread's, and
// what the thread starts has it too: so a thread enters one, starts the command, and ends.
func startApart(cmd *exec.Cmd) (err error) {
	if !Apart() {
		return cmd.Start()
	}
	onThread(func() {
		if err = enterDomain(); err == nil {
			err = cmd.Start()
		}
	})
	return err
}

// onThread calls f on a thread that ends with it. It is not the main one, which the kernel takes for the
// whole process when somebody signals it, and which does not end.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return // With its goroutine, which never lets it go, the thread ends.
		}
		defer runtime.UnlockOSThread()
		onThread(f) // As this one is held, it is another.
	}()
	<-done
}

// enterDomain takes from the thread the right to signal and inspect processes outside.
func enterDomain() error {
	attr := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_SIGNAL}
	// The kernel takes a longer struct than it knows if the rest is zero.
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr),
		0)
	if errno != 0 {
		return errno
	}
	defer unix.Close(int(fd))
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
