package shelltest

import (
	"context"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

// Table is a process table whose programs are in /bin.
type Table struct {
	*kit.Table
	// Cells has interpreters run in cells.
	Cells bool

	programs map[string]kit.Program
}

var (
	_ kit.Processes = (*Table)(nil)
	_ kit.Forker    = (*Table)(nil)
	_ kit.Confiner  = (*Table)(nil)
)

// Confine implements kit.Confiner.
func (t *Table) Confine() bool { return t.Cells }

func newTable(programs map[string]kit.Program) *Table {
	return &Table{Table: kit.NewTable(7), programs: programs}
}

// SetNext sets the ID of the next program. It is called before any has started.
func (t *Table) SetNext(pid int) { t.Table = kit.NewTable(pid) }

// Start finds a program in /bin, or by its path.
func (t *Table) Start(ctx context.Context, env *kit.Env) (kit.Process, error) {
	name := env.Args[0]
	program := t.programs[strings.TrimPrefix(name, "/bin/")]
	if strings.Contains(name, "/") && !strings.HasPrefix(name, "/bin/") {
		program = nil
	}
	if program != nil {
		return t.Fork(ctx, env, program)
	}
	if !strings.Contains(name, "/") {
		return nil, &kit.ExecError{Name: name, Err: kit.ErrNotInPath}
	}
	fi, err := env.FS.Stat(env.Path(name))
	switch {
	case err != nil:
		return nil, &kit.ExecError{Name: name, Err: syscall.ENOENT}
	case fi.IsDir() || fi.Mode().Perm()&0o111 == 0:
		return nil, &kit.ExecError{Name: name, Err: syscall.EACCES}
	}
	return nil, &kit.ExecError{Name: name, Err: syscall.ENOEXEC}
}

// List returns the running programs by ID.
func (t *Table) List() []kit.ProcessInfo {
	list := t.Table.List()
	if len(list) > 0 && list[0].PID == 1 { // Who holds what the machine uses.
		list[0].Memory = memory{}.Info().Used
	}
	return list
}
