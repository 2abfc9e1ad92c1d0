package tool

import (
	"fmt"
	"math"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// What versions of Landlock's interface brought.
const (
	abiRefer = 2 // renaming across directories
	abiTCP   = 4
	abiUDP   = 10
)

// Confine takes from the process, for good, all files but those below the root, which it may not
// execute, and all TCP connections but those to the port. On a system that lacks a part of this it
// does the rest; [Describe] tells.
func Confine(p Place) (*World, error) {
	if p.Port < 1 || p.Port > math.MaxUint16 {
		return nil, fmt.Errorf("confine: %d is no port", p.Port)
	}
	if fi, err := os.Stat(p.Root); err != nil || !fi.IsDir() {
		return nil, fmt.Errorf("confine: %s is no directory", p.Root)
	}
	if err := dropCapabilities(p.OwnRoot); err != nil {
		return nil, fmt.Errorf("confine: %w", err)
	}
	cfg := landlock.V10
	rights := cfg.HandledAccessFS &^ (ll.AccessFSExecute | ll.AccessFSMakeChar | ll.AccessFSMakeBlock |
		ll.AccessFSMakeFifo | ll.AccessFSMakeSock)
	if p.ReadOnly {
		rights = ll.AccessFSReadFile | ll.AccessFSReadDir
	} else if abi() < abiRefer {
		rights &^= ll.AccessFSRefer // Asking for it would turn everything off.
	}
	err := cfg.BestEffort().Restrict(
		landlock.PathAccess(rights, p.Root),
		landlock.RWFiles(os.DevNull).IgnoreIfMissing(),
		landlock.ConnectTCP(uint16(p.Port)),
	)
	if err != nil {
		return nil, fmt.Errorf("confine: %w", err)
	}
	if !p.OwnRoot {
		return &World{Root: p.Root}, nil
	}
	if err := changeRoot(p.Root); err != nil {
		return nil, fmt.Errorf("confine: %w", err)
	}
	return &World{Root: "/", OwnRoot: true}, nil
}

// abi is the version of Landlock's interface that the kernel has; 0 if it has none.
func abi() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

// Describe says how far Confine goes on this machine, for processes that have a root of their own or not.
func Describe(ownRoot bool) string {
	if ownRoot {
		return "a root of its own; " + describe(abi())
	}
	return describe(abi())
}

func describe(abi int) string {
	switch {
	case abi < 1:
		return "none: this system has no Landlock, so that the shell's programs are kept in the scratch root by " +
			"their arguments and environment only"
	case abi < abiTCP:
		return fmt.Sprintf("Landlock ABI %d: files below the scratch root only; this kernel cannot confine connections",
			abi)
	case abi < abiUDP:
		return fmt.Sprintf("Landlock ABI %d: files below the scratch root and TCP to the API's port only; this "+
			"kernel cannot confine UDP", abi)
	}
	return fmt.Sprintf("Landlock ABI %d: files below the scratch root and TCP to the API's port only, no UDP", abi)
}
