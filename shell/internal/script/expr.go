package script

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/regex"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var expr = tool.Tool{
	Name: "expr", Raw: true, Args: "EXPRESSION", Help: "Print the value of EXPRESSION", UsageCode: 2,
	Run: func(_ context.Context, c *tool.Call) error {
		args := c.Args
		if len(args) > 0 && args[0] == "--" {
			args = args[1:]
		}
		if len(args) == 0 {
			return c.Usage()
		}
		e := &expression{args: args}
		value, err := e.or()
		if err == nil && len(e.args) > 0 {
			err = errSyntax
		}
		if err != nil {
			return c.Fail(2, "%v", err)
		}
		c.Out.Line(value)
		if isNull(value) {
			return kit.Exit(1)
		}
		return nil
	},
}

var (
	errSyntax     = errors.New("syntax error")
	errNonNumeric = errors.New("non-numeric argument")
)

// expression is an expr under way: args are what has not been read yet.
type expression struct {
	args []string
	deep int // of parentheses
}

func isNull(v string) bool {
	return v == "" || strings.Trim(strings.TrimPrefix(v, "-"), "0") == "" && v != "-"
}

func (e *expression) take(operators ...string) (string, bool) {
	if len(e.args) > 0 {
		for _, op := range operators {
			if e.args[0] == op {
				e.args = e.args[1:]
				return op, true
			}
		}
	}
	return "", false
}

func (e *expression) or() (string, error) {
	left, err := e.and()
	for err == nil {
		if _, ok := e.take("|"); !ok {
			break
		}
		var right string
		if right, err = e.and(); isNull(left) {
			if left = right; isNull(left) {
				left = "0"
			}
		}
	}
	return left, err
}

func (e *expression) and() (string, error) {
	left, err := e.comparison()
	for err == nil {
		if _, ok := e.take("&"); !ok {
			break
		}
		var right string
		if right, err = e.comparison(); isNull(left) || isNull(right) {
			left = "0"
		}
	}
	return left, err
}

func (e *expression) comparison() (string, error) {
	left, err := e.sum()
	for err == nil {
		op, ok := e.take("<", "<=", "=", "==", "!=", ">=", ">")
		if !ok {
			break
		}
		var right string
		if right, err = e.sum(); err != nil {
			break
		}
		order := strings.Compare(left, right)
		a, errA := strconv.ParseInt(left, 10, 64)
		b, errB := strconv.ParseInt(right, 10, 64)
		if errA == nil && errB == nil {
			order = 0
			if a < b {
				order = -1
			} else if a > b {
				order = 1
			}
		}
		result := map[string]bool{
			"<": order < 0, "<=": order <= 0, "=": order == 0, "==": order == 0,
			"!=": order != 0, ">=": order >= 0, ">": order > 0,
		}[op]
		if left = "0"; result {
			left = "1"
		}
	}
	return left, err
}

// arithmetic reads operands of the given precedence, apart by operators.
func (e *expression) arithmetic(operand func() (string, error), operators ...string) (string, error) {
	left, err := operand()
	for err == nil {
		op, ok := e.take(operators...)
		if !ok {
			break
		}
		var right string
		if right, err = operand(); err != nil {
			break
		}
		a, errA := strconv.ParseInt(left, 10, 64)
		b, errB := strconv.ParseInt(right, 10, 64)
		if errA != nil || errB != nil {
			return "", errNonNumeric
		}
		switch op {
		case "+":
			a += b
		case "-":
			a -= b
		case "*":
			a *= b
		default:
			if b == 0 {
				return "", errors.New("division by zero")
			}
			if op == "/" {
				a /= b
			} else {
				a %= b
			}
		}
		left = strconv.FormatInt(a, 10)
	}
	return left, err
}

func (e *expression) sum() (string, error) { return e.arithmetic(e.product, "+", "-") }

func (e *expression) product() (string, error) { return e.arithmetic(e.match, "*", "/", "%") }

func (e *expression) match() (string, error) {
	left, err := e.primary()
	for err == nil {
		if _, ok := e.take(":"); !ok {
			break
		}
		var pattern string
		if pattern, err = e.primary(); err != nil {
			break
		}
		left, err = matchPrefix(left, pattern)
	}
	return left, err
}

// matchPrefix is STRING : REGEXP: what the group matched, or else the length of the match.
func matchPrefix(s, pattern string) (string, error) {
	re, err := regex.Compile("^"+strings.TrimPrefix(pattern, "^"), regex.Basic, regex.Options{})
	if err != nil {
		return "", err
	}
	m := re.Find(s)
	switch {
	case re.Groups() > 0 && (m == nil || m[2] < 0):
		return "", nil
	case re.Groups() > 0:
		return s[m[2]:m[3]], nil
	case m == nil:
		return "0", nil
	}
	return strconv.Itoa(utf8.RuneCountInString(s[:m[1]])), nil
}

func (e *expression) primary() (string, error) {
	if len(e.args) == 0 {
		return "", errSyntax
	}
	word := e.args[0]
	e.args = e.args[1:]
	operands := func(n int) ([]string, bool) {
		if len(e.args) < n {
			return nil, false
		}
		taken := e.args[:n]
		e.args = e.args[n:]
		return taken, true
	}
	switch word {
	case "(":
		if e.deep++; e.deep > maxNested {
			return "", errNested
		}
		value, err := e.or()
		e.deep--
		if _, ok := e.take(")"); err == nil && !ok {
			return "", errSyntax
		}
		return value, err
	case "+":
		if a, ok := operands(1); ok {
			return a[0], nil
		}
	case "length":
		if a, ok := operands(1); ok {
			return strconv.Itoa(utf8.RuneCountInString(a[0])), nil
		}
	case "match":
		if a, ok := operands(2); ok {
			return matchPrefix(a[0], a[1])
		}
	case "index":
		if a, ok := operands(2); ok {
			at := strings.IndexAny(a[0], a[1])
			if at < 0 {
				return "0", nil
			}
			return strconv.Itoa(utf8.RuneCountInString(a[0][:at]) + 1), nil
		}
	case "substr":
		if a, ok := operands(3); ok {
			return substring(a[0], a[1], a[2]), nil
		}
	}
	return word, nil
}

func substring(s, from, length string) string {
	start, err1 := strconv.Atoi(from)
	n, err2 := strconv.Atoi(length)
	r := []rune(s)
	if err1 != nil || err2 != nil || start < 1 || n < 1 || start > len(r) {
		return ""
	}
	return string(r[start-1 : min(start-1+n, len(r))])
}
