package interp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// eval runs a text in the shell itself.
func (s *Shell) eval(ctx context.Context, text string) flow {
	return s.evalReader(ctx, strings.NewReader(text))
}

// evalReader runs a text statement by statement, so that what precedes a syntax error runs.
func (s *Shell) evalReader(ctx context.Context, r io.Reader) flow {
	ran, fl := false, flowNext
	statements := syntax.NewParser(syntax.Variant(syntax.LangBash)).StmtsSeq(r)
	statements(untilFalse(func(st *syntax.Stmt, err error) bool {
		if err != nil {
			fl = s.syntaxError(err)
			return false
		}
		ran = true
		fl = s.stmt(ctx, st)
		return fl == flowNext
	}))
	if fl != flowNext {
		return fl
	}
	if !ran {
		s.status = 0
	}
	return s.runTraps(ctx)
}

// untilFalse makes a loop body safe for an iterator that goes on after the body has said that it is
// enough, as the parser's does when it finds an error further on.
func untilFalse[T any](body func(T, error) bool) func(T, error) bool {
	over := false
	return func(v T, err error) bool {
		if !over {
			over = !body(v, err)
		}
		return !over
	}
}

// evalFile runs a script. Loops and functions of the caller are none of its business.
func (s *Shell) evalFile(ctx context.Context, r io.Reader) flow {
	loops := s.loops
	s.loops = 0
	s.sourcing++
	fl := s.evalReader(ctx, r)
	s.sourcing--
	s.loops = loops
	if fl == flowReturn {
		return flowNext
	}
	return fl
}

// syntaxError reports a text that is no script. A shell ends by that, unless it is interactive.
func (s *Shell) syntaxError(err error) flow {
	s.status = 2
	text := err.Error()
	if p, ok := errors.AsType[syntax.ParseError](err); ok {
		s.line = p.Pos.Line()
		text = p.Text
		switch {
		case p.Incomplete && strings.Contains(text, "quote"):
			text = "unterminated quoted string"
		case p.Incomplete:
			text = fmt.Sprintf("unexpected end of file (%s)", text)
		}
	}
	if l, ok := errors.AsType[syntax.LangError](err); ok {
		s.line = l.Pos.Line()
		text = l.Feature + " is not supported"
	}
	if s.bash {
		s.complain("syntax error: %s", text)
	} else {
		s.note("%s: syntax error: %s\n", s.name, text)
	}
	if s.interactive {
		return flowNext
	}
	return flowExit
}

// parseArithmetic reads the text of an arithmetic expression; nil if it is empty.
func (s *Shell) parseArithmetic(text string) (syntax.ArithmExpr, error) {
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Arithmetic(strings.NewReader(text))
}
