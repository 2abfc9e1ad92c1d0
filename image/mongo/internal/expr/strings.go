package expr

import (
	"strings"
	"unicode/utf8"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

var texts = map[string]operator{
	"$concat": {0, many, func(name string, args []value.Value) (value.Value, error) {
		var b strings.Builder
		for _, v := range args {
			if nothing(v) {
				return value.Null(), nil
			}
			s, ok := value.Str(v)
			if !ok {
				return v, code.Errorf(16702, "$concat only supports strings, not %s", value.TypeName(v))
			}
			b.WriteString(s)
		}
		return value.String(b.String()), nil
	}},
	"$toLower": {1, 1, onText(strings.ToLower)},
	"$toUpper": {1, 1, onText(strings.ToUpper)},
	"$strLenBytes": {1, 1, func(name string, args []value.Value) (value.Value, error) {
		s, err := needString(name, args[0])
		return value.Int32(int32(len(s))), err
	}},
	"$strLenCP": {1, 1, func(name string, args []value.Value) (value.Value, error) {
		s, err := needString(name, args[0])
		return value.Int32(int32(utf8.RuneCountInString(s))), err
	}},
	"$strcasecmp": {2, 2, func(_ string, args []value.Value) (value.Value, error) {
		c := strings.Compare(strings.ToUpper(loose(args[0])), strings.ToUpper(loose(args[1])))
		return value.Int32(int32(c)), nil
	}},
	"$split": {2, 2, func(name string, args []value.Value) (value.Value, error) {
		if anyNothing(args) {
			return value.Null(), nil
		}
		s, err := needString(name, args[0])
		if err != nil {
			return value.Value{}, err
		}
		sep, err := needString(name, args[1])
		if err == nil && sep == "" {
			err = code.Errorf(40087, "$split requires a non-empty separator")
		}
		return value.Of(strings.Split(s, sep)), err
	}},
	"$indexOfCP": {2, 4, func(name string, args []value.Value) (value.Value, error) {
		if nothing(args[0]) {
			return value.Null(), nil
		}
		s, err := needString(name, args[0])
		if err != nil {
			return value.Value{}, err
		}
		part, err := needString(name, args[1])
		i := strings.Index(s, part)
		if i > 0 {
			i = utf8.RuneCountInString(s[:i])
		}
		return value.Int32(int32(i)), err
	}},
	"$substr":      {3, 3, substring},
	"$substrBytes": {3, 3, substring},
	"$substrCP":    {3, 3, substring},
}

func needString(name string, v value.Value) (string, error) {
	s, ok := value.Str(v)
	if !ok {
		return "", code.Errorf(34471, "%s requires a string argument, found: %s", name, value.TypeName(v))
	}
	return s, nil
}

// loose is the text of a value; nothing is "".
func loose(v value.Value) string {
	if nothing(v) {
		return ""
	}
	if s, ok := value.Str(v); ok {
		return s
	}
	return value.ValueText(v)
}

func onText(f func(string) string) func(string, []value.Value) (value.Value, error) {
	return func(_ string, args []value.Value) (value.Value, error) {
		return value.String(f(loose(args[0]))), nil
	}
}

// substring counts bytes, or code points for $substrCP. A negative length is the rest.
func substring(name string, args []value.Value) (value.Value, error) {
	s := loose(args[0])
	from, ok := value.Int(args[1])
	n, ok2 := value.Int(args[2])
	if !ok || !ok2 {
		return value.Value{}, code.Errorf(16034, "%s: starting index must be a numeric type", name)
	}
	if name == "$substrCP" {
		r := []rune(s)
		from, end := span(from, n, len(r))
		return value.String(string(r[from:end])), nil
	}
	from, end := span(from, n, len(s))
	return value.String(strings.ToValidUTF8(s[from:end], "")), nil
}

func span(from, n int64, size int) (int64, int64) {
	from = min(max(from, 0), int64(size))
	if n < 0 || n > int64(size)-from {
		return from, int64(size)
	}
	return from, from + n
}

func trim(left, right bool) func(map[string]value.Value) (value.Value, error) {
	return func(args map[string]value.Value) (value.Value, error) {
		if nothing(args["input"]) {
			return value.Null(), nil
		}
		s, err := needString("$trim", args["input"])
		if err != nil {
			return value.Value{}, err
		}
		chars := "\x00 \t\n\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
		if c, ok := args["chars"]; ok {
			if chars, err = needString("$trim", c); err != nil {
				return value.Value{}, err
			}
		}
		if left {
			s = strings.TrimLeft(s, chars)
		}
		if right {
			s = strings.TrimRight(s, chars)
		}
		return value.String(s), nil
	}
}
