package cli

import (
	"os"
	"strings"
	"unsafe"
)

// Who lists the processes of a machine sees their command lines, and an agent that is a program does
// so as well: a command line that names the problem would tell it what is wrong. So the process takes
// its own away, and what the environment says of problems. On Linux the strings of os.Args lie where the
// kernel reads them.

// ownArguments copies the arguments of this process, so that the originals can be hidden.
func ownArguments() []string {
	list := make([]string, len(os.Args))
	for i, a := range os.Args {
		list[i] = strings.Clone(a)
	}
	return list
}

// hideArguments overwrites what the command line says behind the name of the command. Nobody but
// [ownArguments] may have kept a part of it.
func hideArguments(s *State) {
	if !s.own {
		return
	}
	keepMemory()
	_ = os.Unsetenv(appsVariable) // What was to be read there was read.
	_ = os.Unsetenv(problemsVariable)
	if len(os.Args) < 3 {
		return
	}
	for _, a := range os.Args[2:] {
		b := unsafe.Slice(unsafe.StringData(a), len(a))
		for i := range b {
			b[i] = '*'
		}
	}
}
