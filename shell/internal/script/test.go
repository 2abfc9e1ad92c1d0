package script

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
	"github.com/aiopslab/aiopslab/shell/internal/tty"
)

var test = tool.Tool{
	Name: "test", Raw: true,
	Run: func(_ context.Context, c *tool.Call) error {
		args := c.Args
		if c.Name == "[" {
			if len(args) == 0 || args[len(args)-1] != "]" {
				return c.Fail(2, "missing ]")
			}
			args = args[:len(args)-1]
		}
		t := &tester{c: c, args: args}
		ok, err := t.evaluate()
		if err != nil {
			return c.Fail(2, "%v", err)
		}
		if !ok {
			return kit.Exit(1)
		}
		return nil
	},
}

// tester evaluates an expression of test. With up to four arguments POSIX says what is meant by
// their number, so that no operand can be mistaken for an operator.
type tester struct {
	c    *tool.Call
	args []string
	at   int
	deep int // of ! and (
}

// maxNested is how deep expressions of test and expr may nest. Each level is one of the stack's.
const maxNested = 1000

var errNested = errors.New("expression is nested too deep")

func (t *tester) evaluate() (bool, error) {
	a := t.args
	switch len(a) {
	case 0:
		return false, nil
	case 1:
		return a[0] != "", nil
	case 2:
		if a[0] == "!" {
			return a[1] == "", nil
		}
	case 3:
		if isBinary(a[1]) {
			return t.binary(a[0], a[1], a[2])
		}
		if a[0] == "!" {
			return t.not(a[1:])
		}
		if a[0] == "(" && a[2] == ")" {
			return a[1] != "", nil
		}
	case 4:
		if a[0] == "!" {
			return t.not(a[1:])
		}
		if a[0] == "(" && a[3] == ")" {
			return (&tester{c: t.c, args: a[1:3]}).evaluate()
		}
	}
	ok, err := t.or()
	if err == nil && t.at < len(a) {
		err = fmt.Errorf("%s: unknown operand", a[t.at])
	}
	return ok, err
}

func (t *tester) not(args []string) (bool, error) {
	ok, err := (&tester{c: t.c, args: args}).evaluate()
	return !ok, err
}

func (t *tester) peek() string {
	if t.at < len(t.args) {
		return t.args[t.at]
	}
	return ""
}

func (t *tester) or() (bool, error) {
	ok, err := t.and()
	for err == nil && t.at < len(t.args) && t.peek() == "-o" {
		t.at++
		var right bool
		right, err = t.and()
		ok = ok || right
	}
	return ok, err
}

func (t *tester) and() (bool, error) {
	ok, err := t.primary()
	for err == nil && t.at < len(t.args) && t.peek() == "-a" {
		t.at++
		var right bool
		right, err = t.primary()
		ok = ok && right
	}
	return ok, err
}

func (t *tester) primary() (bool, error) {
	if t.at >= len(t.args) {
		return false, fmt.Errorf("argument expected")
	}
	if t.deep++; t.deep > maxNested {
		return false, errNested
	}
	defer func() { t.deep-- }()
	first := t.args[t.at]
	rest := t.args[t.at+1:]
	switch {
	case len(rest) >= 2 && isBinary(rest[0]) && !(first == "!" && len(rest) > 2):
		t.at += 3
		return t.binary(first, rest[0], rest[1])
	case first == "!":
		t.at++
		ok, err := t.primary()
		return !ok, err
	case first == "(":
		t.at++
		ok, err := t.or()
		if err == nil && t.peek() != ")" {
			err = fmt.Errorf("closing paren expected")
		}
		t.at++
		return ok, err
	case len(first) == 2 && first[0] == '-' && strings.Contains("bcdefghknprstuwxzLNOSGovR", first[1:]) &&
		len(rest) > 0:
		t.at += 2
		return t.unary(first, rest[0])
	}
	t.at++
	return first != "", nil
}

func isBinary(op string) bool {
	switch op {
	case "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef":
		return true
	}
	return false
}

func (t *tester) unary(op, operand string) (bool, error) {
	switch op {
	case "-n":
		return operand != "", nil
	case "-z":
		return operand == "", nil
	case "-t":
		fd, err := strconv.Atoi(operand)
		if err != nil {
			return false, fmt.Errorf("%s: bad number", operand)
		}
		streams := []any{t.c.Env.Stdin, t.c.Env.Stdout, t.c.Env.Stderr}
		return fd >= 0 && fd < len(streams) && tty.IsTerminal(streams[fd]), nil
	case "-v":
		_, set := t.c.Env.Vars[operand]
		return set, nil
	case "-o", "-R":
		return false, nil
	}
	return tool.FileTest(t.c.Env, op, operand), nil
}

func (t *tester) binary(x, op, y string) (bool, error) {
	switch op {
	case "=", "==":
		return x == y, nil
	case "!=":
		return x != y, nil
	case "<":
		return x < y, nil
	case ">":
		return x > y, nil
	case "-nt", "-ot", "-ef":
		return tool.CompareFiles(t.c.Env, x, op, y), nil
	}
	a, err := integer(x)
	if err != nil {
		return false, err
	}
	b, err := integer(y)
	if err != nil {
		return false, err
	}
	switch op {
	case "-eq":
		return a == b, nil
	case "-ne":
		return a != b, nil
	case "-lt":
		return a < b, nil
	case "-le":
		return a <= b, nil
	case "-gt":
		return a > b, nil
	}
	return a >= b, nil
}

func integer(s string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: bad number", s)
	}
	return n, nil
}
