package interp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// builtinSet changes options and positional parameters.
func builtinSet(s *Shell, _ context.Context, args []string) flow {
	if len(args) == 0 {
		return s.listVars()
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return s.setParams(args[i+1:])
		case arg == "-":
			s.opts.xTrace, s.opts.verbose = false, false
			if i+1 < len(args) {
				return s.setParams(args[i+1:])
			}
			return flowNext
		case len(arg) > 1 && (arg[0] == '-' || arg[0] == '+'):
			used, err := s.setOptions(arg, args[i+1:])
			if err != nil {
				return s.fail(2, "set: %v", err)
			}
			i += used
		default:
			return s.setParams(args[i:])
		}
	}
	return flowNext
}

// setParams sets the positional parameters.
func (s *Shell) setParams(params []string) flow {
	size := sizeOfList(params)
	if err := s.holder.Add(size - s.paramsSize); err != nil {
		return s.badExpansion(err)
	}
	s.params, s.paramsSize = params, size
	return flowNext
}

// setOptions handles one argument such as -eu or +o. It returns how many of the following it used.
func (s *Shell) setOptions(arg string, rest []string) (used int, err error) {
	on := arg[0] == '-'
	for _, letter := range []byte(arg[1:]) {
		if letter != 'o' {
			opt := s.opts.byLetter(letter)
			if opt == nil {
				name := arg[:1] + string(letter)
				return 0, errors.New(s.pick("illegal option "+name, name+": invalid option"))
			}
			*opt = on
			continue
		}
		if used >= len(rest) {
			s.listOptions(on)
			continue
		}
		opt := s.opts.byName(rest[used])
		if opt == nil {
			return 0, errors.New(s.pick("illegal option -o "+rest[used], rest[used]+": invalid option name"))
		}
		*opt = on
		used++
	}
	return used, nil
}

func (s *Shell) listOptions(states bool) {
	for _, o := range optionTable {
		value := *o.field(&s.opts)
		switch {
		case !states && value:
			s.printf("set -o %s\n", o.name)
		case !states:
			s.printf("set +o %s\n", o.name)
		default:
			s.printf("%-15s\t%s\n", o.name, onOff(value))
		}
	}
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func (s *Shell) listVars() flow {
	for _, name := range slices.Sorted(maps.Keys(s.vars)) {
		if v := s.vars[name]; v.Set {
			if fl := s.printf("%s=%s\n", name, s.quoted(v)); fl != flowNext {
				return fl
			}
		}
	}
	return flowNext
}

// quoted is a value as set and export -p write it, so that it can be read again.
func (s *Shell) quoted(v expand.Variable) string {
	switch v.Kind {
	case expand.Indexed:
		var parts []string
		for i, e := range v.List {
			index := i
			if v.Indexes != nil {
				index = v.Indexes[i]
			}
			parts = append(parts, fmt.Sprintf("[%d]=%s", index, doubleQuoted(e)))
		}
		return "(" + strings.Join(parts, " ") + ")"
	case expand.Associative:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v.Map)) {
			parts = append(parts, fmt.Sprintf("[%s]=%s", k, doubleQuoted(v.Map[k])))
		}
		return "(" + strings.Join(parts, " ") + " )"
	}
	return "'" + strings.ReplaceAll(v.Str, "'", `'"'"'`) + "'"
}

func doubleQuoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`").Replace(s) + `"`
}

func builtinShift(s *Shell, _ context.Context, args []string) flow {
	n, ok := s.number("shift", args, 1)
	switch {
	case !ok:
		return flowNext
	case n < 0 || n > len(s.params):
		if s.bash {
			s.status = 1
			return flowNext
		}
		return s.fail(2, "shift: can't shift that many")
	}
	s.params = s.params[n:]
	return flowNext
}

func builtinUnset(s *Shell, ctx context.Context, args []string) flow {
	functions, variables := true, true
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		functions, variables = args[0] == "-f", args[0] != "-f"
		args = args[1:]
	}
	for _, name := range args {
		array, index, isElement := strings.Cut(name, "[")
		switch {
		case isElement && strings.HasSuffix(index, "]"):
			if err := s.unsetElement(ctx, array, index[:len(index)-1]); err != nil {
				s.fail(1, "unset: %v", err)
			}
		case variables && (s.vars[name].Declared() || !functions || s.funcs[name] == nil):
			if err := s.unset(name); err != nil {
				s.fail(s.usageStatus(), "unset: %v", err)
			}
		default:
			delete(s.funcs, name)
		}
	}
	return flowNext
}

func (s *Shell) unsetElement(ctx context.Context, name, index string) error {
	v := s.vars[name]
	if v.Kind == expand.Associative {
		v.Map = maps.Clone(v.Map)
		delete(v.Map, strings.Trim(index, `"'`))
		return s.setVar(name, v)
	}
	if v.Kind != expand.Indexed {
		return fmt.Errorf("%s: not an array variable", name)
	}
	if index == "@" || index == "*" {
		return s.unset(name)
	}
	i, err := s.integer(ctx, index)
	if err != nil {
		return err
	}
	if i < 0 {
		i += lastIndex(v) + 1
	}
	return s.setVar(name, removeElement(v, i))
}

func builtinShopt(s *Shell, _ context.Context, args []string) flow {
	mode, quiet := "", false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "-q":
			quiet = true
		case "-s", "-u":
			mode = args[0]
		case "-p", "-o":
		default:
			return s.fail(2, "shopt: %s: invalid option", args[0])
		}
		args = args[1:]
	}
	names := args
	if len(names) == 0 {
		names = shoptNames
	}
	for _, name := range names {
		if !slices.Contains(shoptNames, name) {
			s.fail(1, "shopt: %s: invalid shell option name", name)
			continue
		}
		switch {
		case mode != "" && len(args) > 0:
			s.opts.shopt = maps.Clone(s.opts.shopt) // A copy of the shell may share it.
			if s.opts.shopt == nil {
				s.opts.shopt = map[string]bool{}
			}
			s.opts.shopt[name] = mode == "-s"
		case quiet || len(args) > 0 && !s.opts.shopted(name):
			if !s.opts.shopted(name) {
				s.status = 1
			}
			fallthrough
		default:
			if !quiet {
				s.printf("%-15s\t%s\n", name, onOff(s.opts.shopted(name)))
			}
		}
	}
	return flowNext
}

// getoptsState is where getopts is in a cluster such as -abc.
type getoptsState struct{ in int }

func builtinGetopts(s *Shell, _ context.Context, args []string) flow {
	if len(args) < 2 {
		return s.fail(2, "getopts: usage: getopts optstring name [arg ...]")
	}
	spec, name := args[0], args[1]
	if !syntax.ValidName(name) {
		return s.fail(2, "getopts: %s: bad variable name", name)
	}
	params := s.params
	if len(args) > 2 {
		params = args[2:]
	}
	optind, _ := strconv.Atoi(s.get("OPTIND"))
	optind = max(optind, 1)
	state := s.getopts
	finish := func(value string, status int) flow {
		s.set("OPTIND", strconv.Itoa(optind))
		s.getopts = state
		s.set(name, value)
		s.status = status
		return flowNext
	}
	if optind > len(params) || state.in == 0 && (len(params[optind-1]) < 2 || params[optind-1][0] != '-') {
		return finish("?", 1)
	}
	word := params[optind-1]
	if word == "--" && state.in == 0 {
		optind++
		return finish("?", 1)
	}
	state.in = max(state.in, 1)
	letter := word[state.in]
	state.in++
	next := func() {
		optind++
		state.in = 0
	}
	quiet := strings.HasPrefix(spec, ":")
	delete(s.vars, "OPTARG")
	at := strings.IndexByte(spec, letter)
	switch {
	case at < 0 || letter == ':':
		if state.in >= len(word) {
			next()
		}
		if quiet {
			s.set("OPTARG", string(letter))
		} else {
			s.note("%sgetopts: %s%c\n", s.prefix(), s.pick("Illegal option -", "illegal option -- "), letter)
		}
		return finish("?", 0)
	case at+1 >= len(spec) || spec[at+1] != ':':
		if state.in >= len(word) {
			next()
		}
		return finish(string(letter), 0)
	case state.in < len(word):
		s.set("OPTARG", word[state.in:])
		next()
		return finish(string(letter), 0)
	}
	next()
	if optind > len(params) {
		if quiet {
			s.set("OPTARG", string(letter))
			return finish(":", 0)
		}
		text := s.pick("No arg for -%c option", "option requires an argument -- %c")
		s.note("%sgetopts: "+text+"\n", s.prefix(), letter)
		return finish("?", 0)
	}
	s.set("OPTARG", params[optind-1])
	optind++
	return finish(string(letter), 0)
}
