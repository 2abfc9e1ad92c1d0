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

// Confine takes from the process, for good, all files but those below root, which it may not
// execute, and all TCP connections but those to a port. On a kernel that lacks a part of this it
// does the rest; [Describe] tells.
func Confine(root string, port int) error {
	if port < 1 || port > math.MaxUint16 {
		return fmt.Errorf("confine: %d is no port", port)
	}
	if fi, err := os.Stat(root); err != nil || !fi.IsDir() {
		return fmt.Errorf("confine: %s is no directory", root)
	}
	cfg := landlock.V10
	rights := cfg.HandledAccessFS &^ (ll.AccessFSExecute | ll.AccessFSMakeChar | ll.AccessFSMakeBlock | ll.AccessFSMakeFifo | ll.AccessFSMakeSock)
	if abi() < abiRefer {
		rights &^= ll.AccessFSRefer // Asking for it would turn everything off.
	}
	err := cfg.BestEffort().Restrict(
		landlock.PathAccess(rights, root),
		landlock.RWFiles(os.DevNull),
		landlock.ConnectTCP(uint16(port)),
	)
	if err != nil {
		return fmt.Errorf("confine: %w", err)
	}
	return limit()
}

// abi is the version of Landlock's interface that the kernel has; 0 if it has none.
func abi() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

// Describe says how far Confine goes on this machine.
func Describe() string { return describe(abi()) }

func describe(abi int) string {
	switch {
	case abi < 1:
		return "none: this system has no Landlock, so that kubectl and helm are kept in the scratch root by their arguments and environment only"
	case abi < abiTCP:
		return fmt.Sprintf("Landlock ABI %d: files below the scratch root only; this kernel cannot confine connections", abi)
	case abi < abiUDP:
		return fmt.Sprintf("Landlock ABI %d: files below the scratch root and TCP to the API's port only; this kernel cannot confine UDP", abi)
	}
	return fmt.Sprintf("Landlock ABI %d: files below the scratch root and TCP to the API's port only, no UDP", abi)
}
