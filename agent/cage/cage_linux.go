package cage

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// What versions of Landlock's interface brought.
const (
	abiRefer    = 2
	abiTruncate = 3
	abiIoctl    = 5
	abiScope    = 6 // signals; with Linux 6.12
	abiUnix     = 9 // sockets that have a name
)

const (
	readRights = ll.AccessFSReadFile | ll.AccessFSReadDir | ll.AccessFSExecute
	// fileRights are those that a file can have, and not only a directory.
	fileRights = ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSExecute | ll.AccessFSTruncate |
		ll.AccessFSIoctlDev
)

// abi is the version of Landlock's interface that the kernel has; 0 if it has none.
func abi() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

func possible() bool { return abi() > 0 }

func gap() string {
	switch v := abi(); {
	case v == 0:
		return "unconfined: this kernel has no Landlock"
	case v < abiScope:
		return fmt.Sprintf("unconfined in part: Landlock ABI %d does not keep it from signalling the lab, as Linux "+
			"6.12 does", v)
	case len(callFilter()) == 0:
		return "unconfined in part: system calls cannot be filtered on " + runtime.GOARCH
	}
	return ""
}

func describe() string {
	return fmt.Sprintf("Landlock ABI %d and a filter of system calls: it reads the system's files and its own, writes "+
		"to a scratch directory, and reaches the network", abi())
}

// handled are the rights that the kernel knows.
func handled(abi int) uint64 {
	rights := uint64(ll.AccessFSRefer - 1)
	for _, r := range []struct {
		since int
		right uint64
	}{
		{abiRefer, ll.AccessFSRefer},
		{abiTruncate, ll.AccessFSTruncate},
		{abiIoctl, ll.AccessFSIoctlDev},
		{abiUnix, ll.AccessFSResolveUnix},
	} {
		if abi >= r.since {
			rights |= r.right
		}
	}
	return rights
}

// start starts a command in a domain of its own. A domain is a thread's, and what the thread starts has
// it too: so a thread enters one, starts the command, and ends.
func start(cmd *exec.Cmd, grants []grant) (err error) {
	onThread(func() {
		if err = enter(grants); err == nil {
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

// enter takes from the thread all rights but those that are granted.
func enter(grants []grant) error {
	v := abi()
	attr := ll.RulesetAttr{HandledAccessFS: handled(v)}
	if v >= abiScope {
		attr.Scoped = ll.ScopeSignal | ll.ScopeAbstractUnixSocket
	}
	rules, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return fmt.Errorf("confine: %w", err)
	}
	defer unix.Close(rules)
	for _, g := range grants {
		if err := g.allow(rules, attr.HandledAccessFS); err != nil {
			return fmt.Errorf("confine: %s: %w", g.path, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("confine: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("confine: drop capabilities: %w", err)
	}
	if err := ll.LandlockRestrictSelf(rules, 0); err != nil {
		return fmt.Errorf("confine: %w", err)
	}
	if err := filterCalls(); err != nil {
		return fmt.Errorf("confine: filter system calls: %w", err)
	}
	return nil
}

// allow adds the rule of a grant. What has gone meanwhile is not granted.
func (g grant) allow(rules int, known uint64) error {
	fd, err := unix.Open(g.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil //nolint:nilerr // It cannot be opened by the program either.
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	rights := uint64(ll.AccessFSReadDir)
	switch g.right {
	case read:
		rights = readRights
	case write:
		rights = known &^ (ll.AccessFSMakeBlock | ll.AccessFSMakeChar)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	return ll.LandlockAddPathBeneathRule(rules, &ll.PathBeneathAttr{AllowedAccess: rights & known, ParentFd: fd}, 0)
}

// keptCapabilities are those of the superuser over files. Others lead out: some let a process read the
// memory of others past Landlock, or load code into the kernel.
const keptCapabilities = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID |
	1<<unix.CAP_NET_BIND_SERVICE

// dropCapabilities leaves the thread, and what it starts, the rights over files and no others.
func dropCapabilities() error {
	if os.Geteuid() != 0 {
		return nil
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now, left [2]unix.CapUserData
	if err := unix.Capget(&header, &now[0]); err != nil {
		return err
	}
	left[0].Permitted = now[0].Permitted & keptCapabilities
	left[0].Effective = left[0].Permitted
	return unix.Capset(&header, &left[0])
}
