package interp

import (
	"context"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxCalls bounds the recursion of functions, which would end in a crash otherwise.
const maxCalls = 1000

// simple runs a simple command: assignments, a function, a builtin or a program.
func (s *Shell) simple(ctx context.Context, c *syntax.CallExpr) flow {
	if fl, ok := s.aliased(ctx, c); ok {
		return fl
	}
	s.substStatus = -1
	defer s.closeSubstituted()
	args, err := s.fields(ctx, c.Args...)
	if err != nil {
		return s.badExpansion(err)
	}
	if len(args) == 0 {
		return s.assignments(ctx, c.Assigns)
	}
	saved := map[string]savedVar{}
	defer func() { s.restore(saved) }()
	for _, as := range c.Assigns {
		old, ok := s.vars[as.Name.Value]
		if _, done := saved[as.Name.Value]; !done {
			saved[as.Name.Value] = savedVar{old, ok}
		}
		name, err := s.assign(ctx, as, 0)
		if err != nil {
			return s.badExpansion(err)
		}
		v := s.vars[name]
		v.Exported = true
		s.vars[name] = v
	}
	s.trace(c.Assigns, args)
	return s.call(ctx, args)
}

// assignments runs a command that is nothing but assignments.
func (s *Shell) assignments(ctx context.Context, list []*syntax.Assign) flow {
	for _, as := range list {
		name, err := s.assign(ctx, as, 0)
		if err != nil {
			return s.badExpansion(err)
		}
		if s.opts.xTrace {
			s.traceLine(name + "=" + quoteTrace(s.get(name)))
		}
	}
	// a=$(false) fails.
	s.status = max(s.substStatus, 0)
	return flowNext
}

// call runs the command that args name.
func (s *Shell) call(ctx context.Context, args []string) flow {
	if body := s.funcs[args[0]]; body != nil {
		return s.callFunction(ctx, args, body)
	}
	return s.callCommand(ctx, args)
}

// callCommand is call for what is no function.
func (s *Shell) callCommand(ctx context.Context, args []string) flow {
	if b, ok := builtins[args[0]]; ok {
		s.lastStatus, s.status = s.status, 0
		return b(s, ctx, args[1:])
	}
	if p := s.programs[args[0]]; p != nil {
		return s.inside(ctx, p, args)
	}
	return s.external(ctx, args)
}

func (s *Shell) callFunction(ctx context.Context, args []string, body *syntax.Stmt) flow {
	if len(s.calls) >= maxCalls {
		return s.fail(2, "%s: maximum function nesting level exceeded (%d)", args[0], maxCalls)
	}
	c := &call{name: args[0], params: s.params}
	s.calls = append(s.calls, c)
	s.params = args[1:]
	loops := s.loops
	s.loops = 0
	fl := s.stmt(ctx, body)
	s.loops = loops
	s.params = c.params
	s.calls = s.calls[:len(s.calls)-1]
	s.restore(c.saved)
	if fl == flowReturn {
		return s.checkStatus(ctx)
	}
	return fl
}

// aliased runs a command whose first word is an alias. The text of the alias may be anything, so the
// command is read anew.
func (s *Shell) aliased(ctx context.Context, c *syntax.CallExpr) (flow, bool) {
	if len(c.Args) == 0 || len(s.aliases) == 0 || s.bash && !s.interactive && !s.opts.shopted("expand_aliases") {
		return flowNext, false
	}
	name := c.Args[0].Lit()
	value, ok := s.aliases[name]
	if !ok || name == "" {
		return flowNext, false
	}
	var b strings.Builder
	rest := *c
	rest.Args, rest.Assigns = c.Args[1:], nil
	if len(rest.Args) > 0 {
		if err := syntax.NewPrinter().Print(&b, &rest); err != nil {
			return flowNext, false
		}
	}
	delete(s.aliases, name) // An alias is not replaced in its own text.
	defer func() { s.aliases[name] = value }()
	return s.eval(ctx, value+" "+b.String()), true
}

// trace shows a command before it runs, for set -x.
func (s *Shell) trace(assigns []*syntax.Assign, args []string) {
	if !s.opts.xTrace {
		return
	}
	var words []string
	for _, as := range assigns {
		words = append(words, as.Name.Value+"="+quoteTrace(s.get(as.Name.Value)))
	}
	for _, a := range args {
		words = append(words, quoteTrace(a))
	}
	s.traceLine(strings.Join(words, " "))
}

func (s *Shell) traceLine(line string) { s.note("%s%s\n", s.get("PS4"), line) }

func quoteTrace(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
