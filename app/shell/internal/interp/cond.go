package interp

import (
	"context"
	"fmt"
	"strconv"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/app/shell/internal/regex"
	"github.com/aiopslab/aiopslab/app/shell/internal/tool"
)

// testClause runs [[ ... ]].
func (s *Shell) testClause(ctx context.Context, c *syntax.TestClause) flow {
	ok, err := s.condition(ctx, c.X)
	if err != nil {
		s.badExpansion(err)
		s.status = 2
		return flowNext
	}
	if s.status = 0; !ok {
		s.status = 1
	}
	return flowNext
}

func (s *Shell) condition(ctx context.Context, x syntax.TestExpr) (bool, error) {
	switch x := x.(type) {
	case *syntax.Word:
		text, err := s.literal(ctx, x)
		return text != "", err
	case *syntax.ParenTest:
		return s.condition(ctx, x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			ok, err := s.condition(ctx, x.X)
			return !ok, err
		}
		operand, err := s.literal(ctx, x.X.(*syntax.Word))
		if err != nil {
			return false, err
		}
		return s.unary(x.Op, operand), nil
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.AndTest, syntax.OrTest:
			ok, err := s.condition(ctx, x.X)
			if err != nil || ok == (x.Op == syntax.OrTest) {
				return ok, err
			}
			return s.condition(ctx, x.Y)
		}
		return s.compare(ctx, x.Op, x.X.(*syntax.Word), x.Y.(*syntax.Word))
	}
	return false, fmt.Errorf("unexpected condition")
}

func (s *Shell) unary(op syntax.UnTestOperator, operand string) bool {
	switch op {
	case syntax.TsEmpStr:
		return operand == ""
	case syntax.TsNempStr:
		return operand != ""
	case syntax.TsVarSet:
		return environ{s}.Get(operand).IsSet()
	case syntax.TsRefVar:
		return s.vars[operand].Kind == expand.NameRef
	case syntax.TsOptSet:
		on := s.opts.byName(operand)
		return on != nil && *on
	case syntax.TsFdTerm:
		n, err := strconv.Atoi(operand)
		return err == nil && s.fd(n).Terminal() != nil
	}
	return tool.FileTest(s.here(), op.String(), operand)
}

func (s *Shell) compare(ctx context.Context, op syntax.BinTestOperator, xw, yw *syntax.Word) (bool, error) {
	x, err := s.literal(ctx, xw)
	if err != nil {
		return false, err
	}
	switch op {
	case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch:
		pat, err := s.pattern(ctx, yw)
		return s.matches(pat, x) == (op != syntax.TsNoMatch), err
	case syntax.TsReMatch:
		return s.matchRegex(ctx, x, yw)
	}
	y, err := s.literal(ctx, yw)
	if err != nil {
		return false, err
	}
	switch op {
	case syntax.TsBefore:
		return x < y, nil
	case syntax.TsAfter:
		return x > y, nil
	case syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
		return tool.CompareFiles(s.here(), x, op.String(), y), nil
	}
	a, err := s.integer(ctx, x)
	if err != nil {
		return false, err
	}
	b, err := s.integer(ctx, y)
	if err != nil {
		return false, err
	}
	switch op {
	case syntax.TsEql:
		return a == b, nil
	case syntax.TsNeq:
		return a != b, nil
	case syntax.TsLss:
		return a < b, nil
	case syntax.TsLeq:
		return a <= b, nil
	case syntax.TsGtr:
		return a > b, nil
	}
	return a >= b, nil
}

// integer evaluates an operand of -eq and the like, which is arithmetic in [[ ]].
func (s *Shell) integer(ctx context.Context, text string) (int, error) {
	if n, err := strconv.Atoi(text); err == nil || text == "" {
		return n, nil
	}
	x, err := s.parseArithmetic(text)
	if err != nil || x == nil {
		return 0, err
	}
	return expand.Arithm(s.config(ctx), x)
}

// matchRegex is =~. What of the expression is quoted stands for itself.
func (s *Shell) matchRegex(ctx context.Context, text string, w *syntax.Word) (bool, error) {
	expr := ""
	for _, part := range w.Parts {
		value, err := s.literal(ctx, &syntax.Word{Parts: []syntax.WordPart{part}})
		if err != nil {
			return false, err
		}
		switch p := part.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			value = quoteRegex(value)
		case *syntax.Lit:
			value = p.Value
		}
		expr += value
	}
	re, err := regex.Compile(expr, regex.Extended, regex.Options{IgnoreCase: s.opts.shopted("nocasematch")})
	if err != nil {
		return false, err
	}
	m := re.Find(text)
	var groups []string
	for i := 0; i < len(m); i += 2 {
		if m[i] < 0 {
			groups = append(groups, "")
		} else {
			groups = append(groups, text[m[i]:m[i+1]])
		}
	}
	s.vars["BASH_REMATCH"] = list(groups)
	return m != nil, nil
}

func quoteRegex(s string) string {
	out := ""
	for _, r := range s {
		switch r {
		case '\\', '.', '*', '+', '?', '(', ')', '[', ']', '{', '}', '|', '^', '$':
			out += `\`
		}
		out += string(r)
	}
	return out
}
