package interp

import (
	"context"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// body runs one round of a loop. It reports whether the loop is over, and how the script goes on if
// that is not after the loop.
func (s *Shell) body(ctx context.Context, list []*syntax.Stmt) (over bool, fl flow) {
	s.loops++
	fl = s.stmts(ctx, list)
	s.loops--
	switch fl {
	case flowBreak, flowContinue:
		if s.levels--; s.levels > 0 {
			return true, fl // It is about a loop further out.
		}
		return fl == flowBreak, flowNext
	}
	return fl != flowNext, fl
}

func (s *Shell) whileClause(ctx context.Context, c *syntax.WhileClause) flow {
	status := 0
	for {
		s.loops++
		fl := s.guard(func() flow { return s.stmts(ctx, c.Cond) })
		s.loops--
		switch fl {
		case flowNext:
		case flowBreak, flowContinue:
			if s.levels--; s.levels > 0 {
				return fl
			}
			if fl == flowBreak {
				return flowNext
			}
			continue
		default:
			return fl
		}
		if (s.status == 0) == c.Until {
			s.status = status
			return flowNext
		}
		over, fl := s.body(ctx, c.Do)
		if over {
			return fl
		}
		status = s.status
	}
}

func (s *Shell) forClause(ctx context.Context, c *syntax.ForClause) flow {
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		items := s.params
		if loop.InPos.IsValid() {
			var err error
			if items, err = s.fields(ctx, loop.Items...); err != nil {
				return s.badExpansion(err)
			}
		}
		s.status = 0
		if c.Select {
			return s.selectLoop(ctx, loop.Name.Value, items, c.Do)
		}
		for _, item := range items {
			if fl := s.checkpoint(ctx); fl != flowNext {
				return fl
			}
			if !s.set(loop.Name.Value, item) {
				return flowNext
			}
			if over, fl := s.body(ctx, c.Do); over {
				return fl
			}
		}
	case *syntax.CStyleLoop:
		return s.cLoop(ctx, loop, c.Do)
	}
	return flowNext
}

func (s *Shell) cLoop(ctx context.Context, loop *syntax.CStyleLoop, do []*syntax.Stmt) flow {
	value := func(x syntax.ArithmExpr, otherwise int) (int, error) {
		if x == nil {
			return otherwise, nil
		}
		return expand.Arithm(s.config(ctx), x)
	}
	if _, err := value(loop.Init, 0); err != nil {
		return s.badExpansion(err)
	}
	s.status = 0
	for {
		if fl := s.checkpoint(ctx); fl != flowNext {
			return fl
		}
		switch v, err := value(loop.Cond, 1); {
		case err != nil:
			return s.badExpansion(err)
		case v == 0:
			return flowNext
		}
		if over, fl := s.body(ctx, do); over {
			return fl
		}
		if _, err := value(loop.Post, 0); err != nil {
			return s.badExpansion(err)
		}
	}
}

// selectLoop lets the user choose from a menu until the input ends.
func (s *Shell) selectLoop(ctx context.Context, name string, items []string, do []*syntax.Stmt) flow {
	for menu := true; ; {
		if menu {
			for i, item := range items {
				s.note("%d) %s\n", i+1, item)
			}
		}
		prompt := s.get("PS3")
		if prompt == "" {
			prompt = "#? "
		}
		s.note("%s", prompt)
		line, err := s.readLine(ctx, 0)
		if err != nil {
			s.note("\n")
			s.status = 1
			return s.died(ctx)
		}
		if menu = strings.TrimSpace(line) == ""; menu {
			continue
		}
		choice := ""
		if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && n > 0 && n <= len(items) {
			choice = items[n-1]
		}
		s.set("REPLY", line)
		s.set(name, choice)
		if over, fl := s.body(ctx, do); over {
			return fl
		}
	}
}
