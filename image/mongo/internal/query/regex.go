package query

import (
	"regexp"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/aiopslab/aiopslab/image/mongo/internal/code"
	"github.com/aiopslab/aiopslab/image/mongo/internal/value"
)

func pattern(v value.Value) bool { return v.Type == bsoncore.TypeRegex }

// regex is $regex. A text matches it; so does the same pattern as a value.
type regex struct {
	anyValue
	match           func(string) bool
	source, options string
}

func parseRegex(v, options value.Value) (test, error) {
	var t regex
	if s, ok := value.Str(v); ok {
		t.source = s
	} else if pattern(v) {
		t.source, t.options = v.Regex()
	} else {
		return nil, code.Errorf(code.BadValue, "$regex has to be a string")
	}
	if value.Exists(options) {
		s, ok := value.Str(options)
		if !ok {
			return nil, code.Errorf(code.BadValue, "$options has to be a string")
		}
		if t.options != "" {
			return nil, code.Errorf(51075, "options set in both $regex and $options")
		}
		t.options = s
	}
	var err error
	t.match, err = compile(t.source, t.options)
	return t, err
}

// compile translates a Perl pattern. Go's engine is tried first, for it is linear; what it does not
// know, such as a look-ahead, is left to a backtracking one.
func compile(source, options string) (func(string) bool, error) {
	flags, other := "", regexp2.None
	for _, o := range options {
		switch o {
		case 'i':
			flags += "i"
			other |= regexp2.IgnoreCase
		case 'm':
			flags += "m"
			other |= regexp2.Multiline
		case 's':
			flags += "s"
			other |= regexp2.Singleline
		case 'x':
			flags += "x"
			other |= regexp2.IgnorePatternWhitespace
		case 'u':
		default:
			return nil, code.Errorf(51108, "invalid flag in regex options: %c", o)
		}
	}
	if !strings.Contains(flags, "x") {
		prefix := ""
		if flags != "" {
			prefix = "(?" + flags + ")"
		}
		if re, err := regexp.Compile(prefix + source); err == nil {
			return re.MatchString, nil
		}
	}
	re, err := regexp2.Compile(source, other)
	if err != nil {
		return nil, code.Errorf(51091, "Regular expression is invalid: %v", err)
	}
	re.MatchTimeout = time.Second
	return func(s string) bool {
		ok, err := re.MatchString(s)
		return ok && err == nil
	}, nil
}

func (t regex) holds(v value.Value) (int, bool) {
	if s, ok := value.Str(v); ok {
		return -1, t.match(s)
	}
	if pattern(v) {
		source, options := v.Regex()
		return -1, source == t.source && options == t.options
	}
	return -1, false
}
