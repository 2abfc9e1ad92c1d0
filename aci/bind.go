package aci

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/internal/strict"
)

// bindError says which argument of a call is wrong, and how the call should look.
type bindError struct {
	a       *Action
	problem string
}

func (e *bindError) Error() string {
	return fmt.Sprintf("Error: %s: %s\nThe signature is %s", e.a.Name, e.problem, e.a.Signature())
}

// Check says what is wrong with arguments that are given by name, as clients of function calling send them.
func (a *Action) Check(args map[string]any) error {
	_, _, err := a.bind(&Call{Name: a.Name, Kwargs: args})
	return err
}

// bind puts the arguments of a call into the action's struct, if it has one. note says what was dropped.
func (a *Action) bind(c *Call) (args reflect.Value, note string, err error) {
	if a.args != nil {
		args = reflect.New(a.args)
	}
	wrong := func(format string, v ...any) error { return &bindError{a, fmt.Sprintf(format, v...)} }
	given := map[string]bool{}
	set := func(p *Param, v any) error {
		given[p.Name] = true
		if v == nil && !p.Required {
			v = p.Default // None stands for the default.
		}
		field := p.blank()
		if a.args != nil {
			field = args.Elem().Field(p.field)
		}
		if err := p.set(field, v); err != nil {
			return wrong("%v", err)
		}
		return nil
	}
	positional := c.Args
	if len(positional) > len(a.Params) {
		if !a.loose {
			return args, "", wrong("it takes %s, but %d were given", count(len(a.Params), "argument"), len(positional))
		}
		positional, note = positional[:len(a.Params)],
			fmt.Sprintf("%s takes no argument here; the one given was not heeded.", a.Name)
	}
	for i, v := range positional {
		if err := set(&a.Params[i], v); err != nil {
			return args, "", err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Kwargs)) {
		p := a.param(name)
		switch {
		case p == nil && a.loose:
			note = fmt.Sprintf("%s takes no argument here; the one given was not heeded.", a.Name)
			continue
		case p == nil && len(a.Params) == 0:
			return args, "", wrong("it takes no argument, but %s was given", name)
		case p == nil:
			return args, "", wrong("it has no argument %s.%s", name, didYouMean(name, a.names()))
		case given[name]:
			return args, "", wrong("the argument %s is given twice", name)
		}
		if err := set(p, c.Kwargs[name]); err != nil {
			return args, "", err
		}
	}
	var missing []string
	for i := range a.Params {
		p := &a.Params[i]
		switch {
		case given[p.Name]:
		case p.Required:
			missing = append(missing, p.Name)
		default:
			if err := set(p, p.Default); err != nil {
				return args, "", err
			}
		}
	}
	if len(missing) > 0 {
		return args, "", wrong("%s missing: %s", count(len(missing), "argument"), strings.Join(missing, ", "))
	}
	return args, note, nil
}

// blank is where a value goes of an action that somebody else carries out, and that has no struct for them.
func (p *Param) blank() reflect.Value {
	var v any
	switch p.Type {
	case "str":
		return reflect.New(reflect.TypeFor[string]()).Elem()
	case "int":
		return reflect.New(reflect.TypeFor[int]()).Elem()
	case "bool":
		return reflect.New(reflect.TypeFor[bool]()).Elem()
	}
	return reflect.ValueOf(&v).Elem()
}

// count is a number of things in words.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// set puts a value into a field of the parameter's type. By rule a number may be given as text, and
// true and false too, since models write both.
func (p *Param) set(field reflect.Value, v any) error {
	expected := func() error {
		return fmt.Errorf("%s must be %s, not %s", p.Name, describeType(p.Type), describeValue(v))
	}
	switch field.Kind() {
	case reflect.Interface:
		if v != nil {
			field.Set(reflect.ValueOf(v))
		}
	case reflect.String:
		s, ok := v.(string)
		if !ok {
			return expected()
		}
		if len(p.Enum) > 0 && s != "" {
			match := slices.IndexFunc(p.Enum, func(e string) bool { return strings.EqualFold(e, strings.TrimSpace(s)) })
			if match < 0 {
				return fmt.Errorf("%s must be one of %s, not %q", p.Name, strings.Join(p.Enum, ", "), short(s))
			}
			s = p.Enum[match]
		}
		field.SetString(s)
	case reflect.Int:
		n, ok := integer(v)
		if !ok {
			return expected()
		}
		field.SetInt(n)
	case reflect.Bool:
		b, ok := boolean(v)
		if !ok {
			return expected()
		}
		field.SetBool(b)
	default:
		return expected()
	}
	return nil
}

func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		return n, err == nil
	}
	return 0, false
}

func boolean(v any) (b, ok bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true", "yes", "1":
			return true, true
		case "false", "no", "0", "":
			return false, true
		}
	case int64:
		return v != 0, v == 0 || v == 1
	case float64:
		return v != 0, v == 0 || v == 1
	}
	return false, false
}

// describeType is a type in words.
func describeType(t string) string {
	switch t {
	case "str":
		return "a string"
	case "int":
		return "a whole number"
	case "bool":
		return "True or False"
	}
	return "a " + t
}

// describeValue is a value in words, shortened.
func describeValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case string:
		return strconv.Quote(short(v))
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case []any:
		return "a list"
	case map[string]any:
		return "a dict"
	}
	return short(fmt.Sprint(v))
}

// didYouMean asks after the name that was probably meant; it is empty if none is near.
func didYouMean(name string, names []string) string {
	if near := strict.Nearest(name, names); near != "" {
		return fmt.Sprintf(" Did you mean %s?", near)
	}
	return ""
}
