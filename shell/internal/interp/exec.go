package interp

import (
	"context"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// flow is how a script goes on after a command.
type flow int

const (
	flowNext     flow = iota // with the next command
	flowBreak                // after the loop
	flowContinue             // with the next round of the loop
	flowReturn               // after the function or the file
	flowExit                 // not at all
)

// What things cost on the model's processor, so that a script that spins uses time.
const (
	commandCost = 5 * time.Microsecond
	spawnCost   = 300 * time.Microsecond
)

// stmts runs commands one after the other.
func (s *Shell) stmts(ctx context.Context, list []*syntax.Stmt) flow {
	for _, st := range list {
		if fl := s.stmt(ctx, st); fl != flowNext {
			return fl
		}
	}
	return flowNext
}

// checkpoint is what happens between commands: the shell notices that it has been killed, and runs
// the traps of signals that have arrived.
func (s *Shell) checkpoint(ctx context.Context) flow {
	if s.meter.Spend(ctx, commandCost) != nil || ctx.Err() != nil {
		if s.status == 0 {
			s.status = killedStatus(ctx)
		}
		return flowExit
	}
	return s.runTraps(ctx)
}

// killedStatus is the status of a shell whose context has ended.
func killedStatus(ctx context.Context) int {
	code, _ := tool.Killed(ctx).(kit.ExitError)
	return int(code)
}

func (s *Shell) stmt(ctx context.Context, st *syntax.Stmt) flow {
	defer s.shallower()
	if !s.deeper() {
		return flowExit
	}
	if fl := s.checkpoint(ctx); fl != flowNext {
		return fl
	}
	if s.opts.noExec {
		return flowNext
	}
	s.line = st.Pos().Line()
	if st.Background || st.Disown {
		s.background(ctx, st)
		return flowNext
	}
	undo, ok := s.redirect(ctx, st.Redirs)
	fl := flowNext
	if ok {
		if st.Cmd == nil {
			s.status = 0
		} else {
			fl = s.negatable(ctx, st)
		}
	}
	undo(s.keepRedirs)
	s.keepRedirs = false
	if fl != flowNext {
		return fl
	}
	if st.Negated {
		if s.status == 0 {
			s.status = 1
		} else {
			s.status = 0
		}
		return flowNext
	}
	if b, ok := st.Cmd.(*syntax.BinaryCmd); ok && (b.Op == syntax.AndStmt || b.Op == syntax.OrStmt) {
		return flowNext // Its parts have been checked.
	}
	return s.checkStatus(ctx)
}

// lastStmt runs the only statement of a copy of the shell: what it redirects need not be put back,
// and is not held.
func (s *Shell) lastStmt(ctx context.Context, st *syntax.Stmt) {
	undo, ok := s.redirect(ctx, st.Redirs)
	if undo(ok); !ok {
		return
	}
	plain := *st
	plain.Redirs = nil
	s.stmt(ctx, &plain)
}

// negatable runs the command of a statement; what follows ! may fail.
func (s *Shell) negatable(ctx context.Context, st *syntax.Stmt) flow {
	if !st.Negated {
		return s.command(ctx, st.Cmd)
	}
	return s.guard(func() flow { return s.command(ctx, st.Cmd) })
}

// guard runs what may fail without ending a shell that is set -e.
func (s *Shell) guard(f func() flow) flow {
	old := s.guarded
	s.guarded = true
	defer func() { s.guarded = old }()
	return f()
}

// checkStatus ends a shell that is set -e after a failure.
func (s *Shell) checkStatus(ctx context.Context) flow {
	if s.status == 0 || s.guarded {
		return flowNext
	}
	if fl := s.errTrap(ctx); fl != flowNext {
		return fl
	}
	if s.opts.errExit {
		return flowExit
	}
	return flowNext
}

func (s *Shell) command(ctx context.Context, cmd syntax.Command) flow {
	switch c := cmd.(type) {
	case *syntax.CallExpr:
		return s.simple(ctx, c)
	case *syntax.Block:
		return s.stmts(ctx, c.Stmts)
	case *syntax.Subshell:
		return s.subshellCommand(ctx, c.Stmts)
	case *syntax.IfClause:
		return s.ifClause(ctx, c)
	case *syntax.WhileClause:
		return s.whileClause(ctx, c)
	case *syntax.ForClause:
		return s.forClause(ctx, c)
	case *syntax.CaseClause:
		return s.caseClause(ctx, c)
	case *syntax.BinaryCmd:
		return s.binary(ctx, c)
	case *syntax.FuncDecl:
		if c.Name != nil {
			if err := s.holder.Add(nodeSize * int(c.End().Offset()-c.Pos().Offset())); err != nil {
				return s.badExpansion(err)
			}
			s.funcs[c.Name.Value] = c.Body
		}
		s.status = 0
		return flowNext
	case *syntax.ArithmCmd:
		return s.arithmetic(ctx, c.X)
	case *syntax.LetClause:
		return s.letClause(ctx, c.Exprs)
	case *syntax.TestClause:
		return s.testClause(ctx, c)
	case *syntax.DeclClause:
		return s.declClause(ctx, c)
	case *syntax.TimeClause:
		return s.timeClause(ctx, c)
	}
	return s.fail(2, "syntax error: unsupported command")
}

// subshellCommand runs ( ... ).
func (s *Shell) subshellCommand(ctx context.Context, list []*syntax.Stmt) flow {
	sub := s.fork()
	sub.stmts(ctx, list)
	sub.finish(ctx)
	s.status = sub.status
	return s.died(ctx)
}

// died ends the shell if the context has ended while a copy of it ran.
func (s *Shell) died(ctx context.Context) flow {
	if ctx.Err() != nil {
		return flowExit
	}
	return flowNext
}

func (s *Shell) binary(ctx context.Context, c *syntax.BinaryCmd) flow {
	if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
		return s.pipeline(ctx, c)
	}
	if fl := s.guard(func() flow { return s.stmt(ctx, c.X) }); fl != flowNext {
		return fl
	}
	if (s.status == 0) == (c.Op == syntax.AndStmt) {
		return s.stmt(ctx, c.Y)
	}
	return flowNext
}

func (s *Shell) ifClause(ctx context.Context, c *syntax.IfClause) flow {
	for c != nil {
		if len(c.Cond) == 0 { // else
			return s.stmts(ctx, c.Then)
		}
		if fl := s.guard(func() flow { return s.stmts(ctx, c.Cond) }); fl != flowNext {
			return fl
		}
		if s.status == 0 {
			return s.stmts(ctx, c.Then)
		}
		c = c.Else
	}
	s.status = 0
	return flowNext
}

func (s *Shell) caseClause(ctx context.Context, c *syntax.CaseClause) flow {
	word, err := s.literal(ctx, c.Word)
	if err != nil {
		return s.badExpansion(err)
	}
	s.status = 0
	matched := false
	for _, item := range c.Items {
		if !matched {
			if matched, err = s.caseMatches(ctx, item, word); err != nil {
				return s.badExpansion(err)
			}
		}
		if !matched {
			continue
		}
		if fl := s.stmts(ctx, item.Stmts); fl != flowNext {
			return fl
		}
		switch item.Op {
		case syntax.Fallthrough: // The next one runs whatever it says.
		case syntax.Resume:
			matched = false
		default:
			return flowNext
		}
	}
	return flowNext
}

func (s *Shell) caseMatches(ctx context.Context, item *syntax.CaseItem, word string) (bool, error) {
	for _, p := range item.Patterns {
		pat, err := s.pattern(ctx, p)
		if err != nil {
			return false, err
		}
		if s.matches(pat, word) {
			return true, nil
		}
	}
	return false, nil
}

// matches reports whether a text as a whole matches a pattern.
func (s *Shell) matches(pat, text string) bool {
	return tool.Glob(pat, text, s.opts.shopted("nocasematch"))
}

// arithmetic runs (( ... )) and let: the status tells whether the last result is not zero.
func (s *Shell) arithmetic(ctx context.Context, exprs ...syntax.ArithmExpr) flow {
	result := 0
	for _, x := range exprs {
		if x == nil {
			continue
		}
		var err error
		if result, err = expand.Arithm(s.config(ctx), x); err != nil {
			return s.badExpansion(err)
		}
	}
	s.status = 0
	if result == 0 {
		s.status = 1
	}
	return flowNext
}

// letClause runs let, whose expressions may be quoted.
func (s *Shell) letClause(ctx context.Context, exprs []syntax.ArithmExpr) flow {
	var parsed []syntax.ArithmExpr
	for _, x := range exprs {
		if w, ok := x.(*syntax.Word); ok {
			text, err := s.literal(ctx, w)
			if err == nil {
				x, err = s.parseArithmetic(text)
			}
			if err != nil {
				return s.badExpansion(err)
			}
		}
		parsed = append(parsed, x)
	}
	return s.arithmetic(ctx, parsed...)
}

func (s *Shell) timeClause(ctx context.Context, c *syntax.TimeClause) flow {
	start := time.Now()
	fl := flowNext
	if c.Stmt != nil {
		fl = s.stmt(ctx, c.Stmt)
	}
	real := time.Since(start)
	lines := [3]time.Duration{real}
	for i, name := range []string{"real", "user", "sys"} {
		d := lines[i]
		switch {
		case c.PosixFormat:
			s.note("%s %.2f\n", name, d.Seconds())
		case s.bash:
			if i == 0 {
				s.note("\n")
			}
			s.note("%s\t%dm%.3fs\n", name, int(d.Minutes()), d.Seconds()-60*float64(int(d.Minutes())))
		default:
			s.note("%s\t%dm %.2fs\n", name, int(d.Minutes()), d.Seconds()-60*float64(int(d.Minutes())))
		}
	}
	return fl
}

// nodeSize is what a byte of a script takes once it is parsed.
const nodeSize = 32
