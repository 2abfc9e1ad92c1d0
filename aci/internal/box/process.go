package box

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

// table is the process table of the agent's machine. Its processes are functions; those of kubectl
// and helm wait for a process of the host.
type table struct {
	*kit.Table
	programs map[string]kit.Program
	// judge decides about a command that is about to run: env.Args may be changed. A refusal has
	// been explained on env.Stderr.
	judge func(ctx context.Context, env *kit.Env) (code int, refused bool)
}

var (
	_ kit.Processes = (*table)(nil)
	_ kit.Forker    = (*table)(nil)
)

// firstPID is the ID of the first program of an agent.
const firstPID = 100

func newTable(programs map[string]kit.Program, most int) *table {
	t := &table{Table: kit.NewTable(firstPID), programs: programs}
	t.Most = most
	return t
}

// binDirs are the directories whose programs are those in /bin.
var binDirs = []string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"}

// Start finds a program, judges the command and runs it.
func (t *table) Start(ctx context.Context, env *kit.Env) (kit.Process, error) {
	name := env.Args[0]
	program := t.programs[name]
	if strings.Contains(name, "/") {
		file := env.Path(name)
		if program = nil; slices.Contains(binDirs, path.Dir(file)) {
			program = t.programs[path.Base(file)]
		}
	} else if file, err := env.LookPath(name); err == nil && path.Dir(file) != "/bin" {
		program = nil // The agent has one of its own before it in PATH.
	}
	if program == nil {
		_, err := env.LookPath(name)
		if err == nil {
			err = syscall.ENOEXEC // A script, which the shell runs itself.
		}
		return nil, &kit.ExecError{Name: name, Err: err}
	}
	return t.Fork(ctx, env, func(ctx context.Context, env *kit.Env) error {
		if code, refused := t.judge(ctx, env); refused {
			return kit.Exit(code)
		}
		return program(ctx, env)
	})
}

// errNoFork is EAGAIN in bash's words.
var errNoFork error = noForkError{}

type noForkError struct{}

func (noForkError) Error() string        { return noFork }
func (noForkError) Is(target error) bool { return target == syscall.EAGAIN }

// Fork runs a program.
func (t *table) Fork(ctx context.Context, env *kit.Env, program kit.Program) (kit.Process, error) {
	p, err := t.Table.Fork(ctx, env, quiet(program))
	if errors.Is(err, syscall.EAGAIN) {
		return nil, errNoFork
	}
	return p, err
}

// quiet makes a panic of a program one line: its trace is not for the agent.
func quiet(program kit.Program) kit.Program {
	return func(ctx context.Context, env *kit.Env) (err error) {
		defer func() {
			if recover() != nil {
				fmt.Fprintf(env.Stderr, "%s: %s\n", env.Args[0], internalError)
				err = kit.Exit(kit.ExitPanic)
			}
		}()
		return program(ctx, env)
	}
}
