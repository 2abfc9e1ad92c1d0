package cage

import (
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// What Landlock does not keep a program from, a filter of system calls does: to speak with other programs
// of its user over sockets of the machine, to type into its terminal for who comes after it, to bound or
// slow other processes. Python, Node and shells do without.

// Offsets in what a filter sees of a call.
const (
	callNumber = 0
	callArch   = 4
	callArgs   = 16 // eight bytes each, the low half first on the machines that we know
)

// x32 is set in the numbers of calls of another interface to the same kernel.
const x32 = 0x40000000

// refused is a call that fails if an argument is, or is not, a number.
type refused struct {
	call  int
	arg   uint32
	value uint32
	not   bool // refused unless it has the value
	errno unix.Errno
}

var refusedCalls = []refused{
	{unix.SYS_SOCKET, 0, unix.AF_UNIX, false, unix.EACCES},
	{unix.SYS_IO_URING_SETUP, 0, 0, false, unix.ENOSYS}, // It makes sockets as well.
	{unix.SYS_IO_URING_SETUP, 0, 0, true, unix.ENOSYS},
	{unix.SYS_IOCTL, 1, unix.TIOCSTI, false, unix.EPERM},
	{unix.SYS_IOCTL, 1, tiocLinux, false, unix.EPERM},
	{unix.SYS_PRLIMIT64, 0, 0, true, unix.EPERM}, // 0 is the process itself.
	{unix.SYS_SETPRIORITY, 0, unix.PRIO_PROCESS, true, unix.EPERM},
	{unix.SYS_SETPRIORITY, 1, 0, true, unix.EPERM},
	{unix.SYS_SCHED_SETSCHEDULER, 0, 0, true, unix.EPERM},
	{unix.SYS_SCHED_SETPARAM, 0, 0, true, unix.EPERM},
	{unix.SYS_SCHED_SETATTR, 0, 0, true, unix.EPERM},
}

// tiocLinux is a request of the console that can paste.
const tiocLinux = 0x541c

// callFilter is the program of the filter; nil for a machine whose calls we do not know.
func callFilter() []bpf.Instruction {
	arch := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if arch == 0 {
		return nil
	}
	refuse := func(e unix.Errno) bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(e)} }
	list := []bpf.Instruction{
		bpf.LoadAbsolute{Off: callArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		refuse(unix.ENOSYS),
		bpf.LoadAbsolute{Off: callNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32, SkipTrue: 1},
		refuse(unix.ENOSYS),
	}
	for _, r := range refusedCalls {
		cond := bpf.JumpEqual
		if r.not {
			cond = bpf.JumpNotEqual
		}
		list = append(list,
			bpf.LoadAbsolute{Off: callNumber, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(r.call), SkipFalse: 3},
			bpf.LoadAbsolute{Off: callArgs + 8*r.arg, Size: 4},
			bpf.JumpIf{Cond: cond, Val: r.value, SkipFalse: 1},
			refuse(r.errno))
	}
	return append(list, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
}

// filterCalls has the kernel refuse the calls of this thread, and of what it starts.
func filterCalls() error {
	program := callFilter()
	if len(program) == 0 {
		return nil
	}
	raw, err := bpf.Assemble(program)
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
	runtime.KeepAlive(filter)
	return err
}
