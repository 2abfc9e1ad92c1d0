package interp

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// Config is what a shell is built with.
type Config struct {
	// Programs are commands that the shell runs itself, without a process: echo, printf, test.
	Programs map[string]kit.Program
}

// Shell is the state of one shell, or of a copy of it.
type Shell struct {
	env      *kit.Env // the world it was started in; what a script changes is kept below
	programs map[string]kit.Program

	// life is the context of the process. It is kept because background jobs live as long as the
	// process may, not as long as the command that started them.
	life     context.Context
	returned *atomic.Bool            // the process has come to its own end
	kill     context.CancelCauseFunc // ends the process

	name        string // $0
	pid         int    // $$, which subshells share
	bash        bool   // speak as bash does, not as ash does
	interactive bool
	subshell    bool
	process     bool // a subshell in a process of its own
	started     time.Time

	vars    map[string]expand.Variable
	funcs   map[string]*syntax.Stmt
	aliases map[string]string
	calls   []*call // functions under way
	params  []string
	opts    options
	dir     string
	dirs    []string // of pushd
	umask   int
	fds     map[int]*file

	substituted []int // descriptors of process substitutions in the command at hand

	status      int
	lastStatus  int  // of the command before the builtin at hand
	substStatus int  // of the last command substitution in a command; -1 if there was none
	levels      int  // how many loops a break or continue leaves
	loops       int  // that are under way
	depth       int  // of commands within each other
	evals       int  // of texts that are being read
	sourcing    int  // files that are being read by .
	guarded     bool // failures do not end the shell
	keepRedirs  bool // the redirections of exec stay
	line        uint
	pipeStatus  []string

	jobs       *jobTable
	traps      *traps
	trapping   bool
	getopts    getoptsState
	random     *rand.Rand
	meter      tool.Meter
	holder     *kit.Holder // what its variables, functions and aliases take
	paramsSize int         // of the parameters that were set, in it
	// expansion is what the words that are being expanded take; nil if there are none.
	expansion *kit.Holder
	task      func() // gives back the place of a copy in the process table
	refused   bool   // there was none
	fg        *foreground
}

// call is a function under way.
type call struct {
	name   string
	saved  map[string]savedVar // what its local variables hide
	params []string
}

// savedVar is a variable as it was before something hid it.
type savedVar struct {
	v  expand.Variable
	ok bool
}

func newShell(ctx context.Context, env *kit.Env, cfg Config) *Shell {
	s := &Shell{
		env: env, programs: cfg.Programs, life: ctx,
		name: env.Args[0], pid: env.PID, bash: tool.Base(env.Args[0]) == "bash" || env.Args[0] == "-bash",
		started: time.Now(),
		vars:    map[string]expand.Variable{},
		funcs:   map[string]*syntax.Stmt{},
		aliases: map[string]string{},
		dir:     env.Dir,
		umask:   0o022,
		fds:     standardFiles(env),
		jobs:    &jobTable{},
		traps:   newTraps(),
		random:  rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(env.PID))),
		meter:   tool.Meter{CPU: env.CPU},
		holder:  kit.NewHolder(env),
		fg:      &foreground{},
	}
	// A name no script could use, such as "a-b", is passed on to programs all the same.
	for name, value := range env.Vars {
		s.vars[name] = expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: value}
	}
	for name, value := range map[string]string{"IFS": " \t\n", "OPTIND": "1", "PS2": "> ", "PS4": "+ "} {
		s.vars[name] = expand.Variable{Set: true, Kind: expand.String, Str: value}
	}
	s.vars["PWD"] = expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: s.dir}
	if _, ok := s.vars["PATH"]; !ok {
		s.vars["PATH"] = expand.Variable{Set: true, Kind: expand.String, Str: kit.DefaultPath}
	}
	level, _ := strconv.Atoi(env.Vars["SHLVL"])
	s.vars["SHLVL"] = expand.Variable{Set: true, Exported: true, Kind: expand.String, Str: strconv.Itoa(level + 1)}
	if s.bash {
		s.vars["BASH_VERSION"] = expand.Variable{Set: true, Kind: expand.String, Str: "5.2.37(1)-release"}
		s.vars["BASH"] = expand.Variable{Set: true, Kind: expand.String, Str: "/bin/bash"}
	}
	return s
}

// fork returns a copy of s that shares nothing which either could change, except open files. It must
// be closed.
func (s *Shell) fork() *Shell {
	c := *s
	c.subshell = true
	c.vars = maps.Clone(s.vars)
	c.funcs = maps.Clone(s.funcs)
	c.aliases = maps.Clone(s.aliases)
	c.calls = slices.Clone(s.calls)
	c.dirs = slices.Clone(s.dirs)
	c.fds = make(map[int]*file, len(s.fds))
	for n, f := range s.fds {
		c.fds[n] = f.retain()
	}
	c.jobs = &jobTable{}
	c.traps = s.traps.fork()
	c.trapping, c.substituted = false, nil
	c.random = rand.New(rand.NewPCG(s.random.Uint64(), s.random.Uint64()))
	c.meter = tool.Meter{CPU: s.env.CPU}
	c.holder, c.expansion, c.paramsSize = kit.NewHolder(s.env), nil, 0
	c.takePlace()
	return &c
}

// close gives back the open files of a copy.
func (s *Shell) close() {
	for n := range s.fds {
		s.setFD(n, nil)
	}
	s.holder.Release()
	if s.task != nil {
		s.task()
		s.task = nil
	}
}

// finish ends a subshell: its EXIT trap runs, and its files are closed.
func (s *Shell) finish(ctx context.Context) {
	s.exitTrap(ctx)
	s.close()
}

// here is the shell's world as a command run by it would find it, for looking at files.
func (s *Shell) here() *kit.Env {
	e := *s.env
	e.Dir = s.dir
	e.Vars = map[string]string{"PATH": s.get("PATH")}
	return &e
}
