package interp

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/shell/internal/regex"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
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

// condition evaluates an expression; && binds closer than ||, and ! closer than both.
func (s *Shell) condition(ctx context.Context, x syntax.TestExpr) (ok bool, err error) {
	for i, t := range operands(x) {
		if i > 0 && ok == (t.after == syntax.OrTest) {
			if ok {
				return true, nil // Whatever follows.
			}
			continue // To the next ||.
		}
		if ok, err = s.operand(ctx, t.x); err != nil {
			return false, err
		}
		ok = ok != t.not
	}
	return ok, nil
}

// term is an operand of && and ||.
type term struct {
	after syntax.BinTestOperator // the operator before it, if it is not the first
	not   bool
	x     syntax.TestExpr
}

// operands lists what the parser nests to the right, as if && and || bound alike and ! took all that
// follows.
func operands(x syntax.TestExpr) []term {
	switch x := x.(type) {
	case *syntax.UnaryTest:
		if x.Op == syntax.TsNot {
			list := operands(x.X)
			list[0].not = !list[0].not
			return list
		}
	case *syntax.BinaryTest:
		if x.Op == syntax.AndTest || x.Op == syntax.OrTest {
			rest := operands(x.Y)
			rest[0].after = x.Op
			return append(operands(x.X), rest...)
		}
	}
	return []term{{x: x}}
}

// operand evaluates one operand.
func (s *Shell) operand(ctx context.Context, x syntax.TestExpr) (bool, error) {
	switch x := x.(type) {
	case *syntax.Word:
		text, err := s.literal(ctx, x)
		return text != "", err
	case *syntax.ParenTest:
		return s.condition(ctx, x.X)
	case *syntax.UnaryTest:
		operand, err := s.literal(ctx, x.X.(*syntax.Word))
		if err != nil {
			return false, err
		}
		return s.unary(x.Op, operand), nil
	case *syntax.BinaryTest:
		return s.compare(ctx, x.Op, x.X.(*syntax.Word), x.Y.(*syntax.Word))
	}
	return false, errors.New("unexpected condition")
}

func (s *Shell) unary(op syntax.UnTestOperator, operand string) bool {
	switch op {
	case syntax.TsEmpStr:
		return operand == ""
	case syntax.TsNempStr:
		return operand != ""
	case syntax.TsVarSet:
		return s.isSet(operand)
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

// isSet reports whether a variable, or an element of an array, is set.
func (s *Shell) isSet(name string) bool {
	name, index, element := strings.Cut(strings.TrimSuffix(name, "]"), "[")
	v := environ{s}.Get(name)
	if !element {
		return v.IsSet()
	}
	if v.Kind == expand.Associative {
		_, ok := v.Map[index]
		return ok
	}
	i, err := strconv.Atoi(index)
	return err == nil && i >= 0 && i < len(v.List)
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
