package interp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// eval runs a text in the shell itself.
func (s *Shell) eval(ctx context.Context, text string) flow {
	return s.evalReader(ctx, strings.NewReader(text))
}

// evalReader runs a text statement by statement, so that what precedes a syntax error runs.
func (s *Shell) evalReader(ctx context.Context, r io.Reader) flow {
	if s.evals++; s.evals > maxEvals {
		s.evals--
		s.fail(tooDeepErr, tooDeep)
		return flowExit
	}
	defer func() { s.evals-- }()
	ran, fl := false, flowNext
	var held []*syntax.Stmt // of one line, until its here-documents have been read
	run := func() bool {
		ran = ran || len(held) > 0
		fl = s.stmts(ctx, held)
		held = nil
		return fl == flowNext
	}
	waiting := false // for a here-document
	statements := newParser().StmtsSeq(guarded(r))
	statements(untilFalse(func(st *syntax.Stmt, err error) bool {
		if len(held) > 0 && held[0].Pos().Line() < startLine(st, err) && !run() {
			return false
		}
		awaits := false
		if err == nil {
			awaits, err = survey(st)
		}
		if err != nil {
			held = nil
			fl = s.syntaxError(err)
			return false
		}
		held = append(held, st)
		// Its here-document begins on the next line, but the statement may end before.
		waiting = awaits || waiting && slices.ContainsFunc(held, awaitsDocument)
		return waiting || run()
	}))
	if fl != flowNext || !run() {
		return fl
	}
	if !ran {
		s.status = 0
	}
	return s.runTraps(ctx)
}

// startLine is where a statement or a mistake is.
func startLine(st *syntax.Stmt, err error) uint {
	if p, ok := errors.AsType[syntax.ParseError](err); ok {
		return p.Pos.Line()
	}
	if err != nil {
		return 0
	}
	return st.Pos().Line()
}

// awaitsDocument reports whether the parser has not yet read a here-document of a statement.
func awaitsDocument(st *syntax.Stmt) bool {
	awaits, _ := survey(st)
	return awaits
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
	x, err := newParser().Arithmetic(guarded(strings.NewReader(text)))
	if err == nil && x != nil {
		_, err = survey(x)
	}
	return x, err
}
