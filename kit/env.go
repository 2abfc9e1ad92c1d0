package kit

import (
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
)

// Env is the world of one program. The programs of a container share its files, network and
// resources; arguments, variables, directory and standard streams are each one's own.
type Env struct {
	Args     []string          // Args[0] is the name the program was called by
	Vars     map[string]string // environment variables
	Dir      string            // working directory, absolute
	Stdin    io.Reader         // never nil
	Stdout   io.Writer
	Stderr   io.Writer
	Terminal *Terminal // nil unless the standard streams are a terminal

	PID      int // of the program; until it is started, of who starts it
	Hostname string
	User     User

	FS     FS
	Net    Network
	CPU    CPU
	Memory Memory
	Procs  Processes

	// Scratch is a directory of the machine itself, for the rare program whose library must map its
	// files into memory. It is the container's own, need not exist yet, and goes with the container.
	// Everything else belongs into FS.
	Scratch string

	signals func() <-chan syscall.Signal
}

// User is the user that a program runs as.
type User struct {
	UID, GID int
	Groups   []int
}

// Terminal is the window of an interactive program.
type Terminal struct {
	// Resize delivers the window's size, the first one at once.
	Resize <-chan TerminalSize
}

// TerminalSize is measured in characters.
type TerminalSize struct{ Width, Height uint16 }

// Getenv returns a variable, or "".
func (e *Env) Getenv(name string) string { return e.Vars[name] }

// Environ returns the variables as sorted name=value pairs.
func (e *Env) Environ() []string {
	list := make([]string, 0, len(e.Vars))
	for _, name := range slices.Sorted(maps.Keys(e.Vars)) {
		list = append(list, name+"="+e.Vars[name])
	}
	return list
}

// Path makes a file name absolute.
func (e *Env) Path(name string) string {
	if !strings.HasPrefix(name, "/") {
		name = e.Dir + "/" + name
	}
	return path.Clean(name)
}

// Child returns a copy of e for a command it starts.
func (e *Env) Child(args ...string) *Env {
	c := *e
	c.Args, c.Vars, c.signals = args, maps.Clone(e.Vars), nil
	return &c
}

// Notify takes over the handling of signals: from now on SIGTERM and the like no longer end the
// program's context but are sent to the channel. SIGKILL cannot be taken.
func (e *Env) Notify() <-chan syscall.Signal {
	if e.signals == nil {
		return nil
	}
	return e.signals()
}

// OnNotify sets what Notify does. It is for those who run programs.
func (e *Env) OnNotify(f func() <-chan syscall.Signal) { e.signals = f }
