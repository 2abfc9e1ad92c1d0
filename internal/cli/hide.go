package cli

import (
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/aiopslab/aiopslab/problem"
)

// Who lists the processes of a machine sees their command lines, and an agent that is a program does
// so as well: a command line that names the problem would tell it what is wrong. So the process takes
// its own away, and what the environment says of problems, which what it starts would have, too. On Linux
// the strings of os.Args lie where the kernel reads them.

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
func hideArguments(s *State, p *problem.Problem) {
	if !s.own {
		return
	}
	keepMemory()
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); tells(name, value, p) {
			_ = os.Unsetenv(name) // What was to be read there was read.
		}
	}
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

// tells reports whether a variable says something of a problem: it is one of ours that does, or its value
// names the problem or its document, as make and CI systems leave there what they were called with.
func tells(name, value string, p *problem.Problem) bool {
	switch name {
	case appsVariable, problemsVariable, seedVariable:
		return true
	}
	file := p.Document.File
	return strings.Contains(value, p.ID) || !p.BuiltIn() && file != "" && strings.Contains(value, filepath.Base(file))
}
