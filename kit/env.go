package kit

import (
	"context"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aiopslab/aiopslab/kit/past"
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
	// Started is when the container was started, as its runtime has it. It may be long before the program was: a
	// restored container keeps its age.
	Started time.Time

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
	recall  func(Telling, func(context.Context, *past.Past) error)
	keep    func(Keeping)
	kept    any
}

// Telling is what a program does with what it tells of itself.
type Telling int

// Sources count, Keepers write what they have kept into Sources, Collectors ask all what they have counted, or are
// sent it: they are told their past in this order, so that nobody counts what is only written now. A Beginning is not
// the past but since when there is what there was all the time: whoever wants to know it is told no past.
const (
	Source Telling = iota
	Keeper
	Collector
	Beginning
)

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
	c.Args, c.Vars, c.signals, c.recall, c.kept = args, maps.Clone(e.Vars), nil, nil, nil
	if e.keep != nil {
		c.keep = func(Keeping) { e.keep(NotKept) } // It could not be given back to a program that another starts.
	}
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

// Since is when a program says that it was started, in UTC: when its container was, or else now.
func (e *Env) Since() time.Time {
	if e.Started.IsZero() {
		return time.Now().UTC()
	}
	return e.Started.UTC()
}

// Recall says what a program does when it is told that it has a past: from then on it is to tell of itself as if
// it had run since Started. Sources are told first. Few programs ever are: those of containers that
// were restored with an age.
func (e *Env) Recall(as Telling, f func(context.Context, *past.Past) error) {
	if e.recall != nil {
		e.recall(as, f)
	}
}

// Remembering returns metrics whose counters go on from the program's past, if it is told one.
func (e *Env) Remembering(of prometheus.Gatherer) *past.Gatherer {
	g := &past.Gatherer{Gatherer: of}
	e.Recall(Beginning, func(context.Context, *past.Past) error { return g.Mark() })
	e.Recall(Source, func(_ context.Context, p *past.Past) error { return g.Age(p, e.Started) })
	return g
}

// OnRecall sets what Recall does. It is for those who run programs.
func (e *Env) OnRecall(f func(Telling, func(context.Context, *past.Past) error)) { e.recall = f }
