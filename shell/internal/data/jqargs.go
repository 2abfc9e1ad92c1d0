package data

import (
	"fmt"
	"strconv"
	"strings"
)

// parse reads the arguments, of which some take two values and some all that follow.
func (q *jqCall) parse(args []string) error {
	rest := (func(any) any)(nil) // what positional arguments are, once --args was given
	var parseErr error
	for len(args) > 0 && parseErr == nil {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			for _, a := range args {
				parseErr = q.operand(a, rest)
			}
			break
		}
		if arg == "-" || !strings.HasPrefix(arg, "-") {
			parseErr = q.operand(arg, rest)
			continue
		}
		if !strings.HasPrefix(arg, "--") {
			for i, letter := range arg[1:] {
				if letter == 'f' && i == len(arg)-2 {
					args, parseErr = q.fromFile(args)
				} else if parseErr = q.flag(string(letter)); parseErr != nil {
					return fmt.Errorf("unknown arguments: %s", arg)
				}
			}
			continue
		}
		switch name := arg[2:]; name {
		case "arg", "argjson", "slurpfile", "rawfile":
			if len(args) < 2 {
				return fmt.Errorf("%s takes two parameters (e.g. %s name value)", arg, arg)
			}
			parseErr = q.variable(name, args[0], args[1])
			args = args[2:]
		case "args":
			rest = func(v any) any { return v }
		case "jsonargs":
			rest = func(v any) any { return jsonArgument{v.(string)} }
		case "from-file":
			args, parseErr = q.fromFile(args)
		case "indent":
			n := 0
			if len(args) > 0 {
				n, parseErr = strconv.Atoi(args[0])
			}
			if len(args) == 0 || parseErr != nil || n < 0 || n > 7 {
				return fmt.Errorf("--indent takes a number from 0 to 7")
			}
			q.indent = strings.Repeat(" ", n)
			args = args[1:]
		default:
			if parseErr = q.flag(name); parseErr != nil {
				return fmt.Errorf("unknown arguments: %s", arg)
			}
		}
	}
	return parseErr
}

// jsonArgument marks an argument that is JSON.
type jsonArgument struct{ text string }

// operand is the filter, a file, or a positional argument.
func (q *jqCall) operand(arg string, rest func(any) any) error {
	switch {
	case !q.hasFilter:
		q.filter, q.hasFilter = arg, true
	case rest == nil:
		q.files = append(q.files, arg)
	default:
		v := rest(arg)
		if j, ok := v.(jsonArgument); ok {
			parsed, err := parseJSON(j.text)
			if err != nil {
				return fmt.Errorf("invalid JSON text passed to --jsonargs: %s", j.text)
			}
			v = parsed
		}
		q.positional = append(q.positional, v)
	}
	return nil
}

// fromFile takes the filter from a file. An operand that was taken for the filter is a file then.
func (q *jqCall) fromFile(args []string) ([]string, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("-f takes the name of a file")
	}
	text, err := q.c.ReadAll(args[0])
	if err != nil {
		return nil, err
	}
	if q.hasFilter {
		q.files = append(q.files, q.filter)
	}
	q.filter, q.hasFilter = string(text), true
	return args[1:], nil
}

// flag sets an option without a value, by its letter or its name.
func (q *jqCall) flag(name string) error {
	switch name {
	case "r", "raw-output":
		q.raw = true
	case "j", "join-output":
		q.raw, q.join = true, true
	case "a", "ascii-output":
		q.ascii = true
	case "c", "compact-output":
		q.indent = ""
	case "n", "null-input":
		q.null = true
	case "s", "slurp":
		q.slurp = true
	case "R", "raw-input":
		q.rawText = true
	case "e", "exit-status":
		q.exitStatus = true
	case "tab":
		q.indent = "\t"
	case "S", "sort-keys", "C", "color-output", "M", "monochrome-output", "unbuffered":
	default:
		return fmt.Errorf("unknown option %s", name)
	}
	return nil
}

// variable defines $name.
func (q *jqCall) variable(kind, name, value string) error {
	var v any = value
	var err error
	switch kind {
	case "argjson":
		if v, err = parseJSON(value); err != nil {
			return fmt.Errorf("invalid JSON text passed to --argjson: %s", value)
		}
	case "rawfile", "slurpfile":
		text, err := q.c.ReadAll(value)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", value, err)
		}
		if v = string(text); kind == "slurpfile" {
			list, err := parseAll(string(text))
			if err != nil {
				return fmt.Errorf("%s: %w", value, err)
			}
			v = list
		}
	}
	q.names, q.values = append(q.names, "$"+name), append(q.values, v)
	q.named[name] = v
	return nil
}
