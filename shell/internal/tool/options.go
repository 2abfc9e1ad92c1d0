package tool

import (
	"fmt"
	"strings"
)

// Options are the options a tool was called with.
type Options struct {
	values map[string][]string
	order  []Option
}

// Option is one use of an option.
type Option struct{ Name, Value string }

// Has reports whether an option was given. An option is known by the first of its names.
func (o *Options) Has(name string) bool { return len(o.values[name]) > 0 }

// Get returns the last value given for an option, or otherwise.
func (o *Options) Get(name, otherwise string) string {
	if v := o.values[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return otherwise
}

// All returns every value given for an option.
func (o *Options) All(name string) []string { return o.values[name] }

// Count returns how often an option was given.
func (o *Options) Count(name string) int { return len(o.values[name]) }

// InOrder returns the options as they were given.
func (o *Options) InOrder() []Option { return o.order }

// Last returns which of several options was given last, or "".
func (o *Options) Last(names ...string) string {
	last := ""
	for _, opt := range o.order {
		for _, n := range names {
			if opt.Name == n {
				last = n
			}
		}
	}
	return last
}

// Set adds an option, for tools that read theirs by hand.
func (o *Options) Set(name, value string) {
	if o.values == nil {
		o.values = map[string][]string{}
	}
	o.values[name] = append(o.values[name], value)
	o.order = append(o.order, Option{name, value})
}

// argument says whether an option takes a value.
type argument int

const (
	none     argument = iota
	required          // -nVALUE or -n VALUE, --name=VALUE or --name VALUE
	optional          // -nVALUE or --name=VALUE only
)

type optionSpec struct {
	name string // the first, by which the tool knows it
	arg  argument
}

// grammar is a tool's set of options by every name they have.
type grammar struct {
	options map[string]optionSpec
	inOrder bool   // options end at the first operand
	digits  string // the option that -5 stands for
}

// parseGrammar reads a tool's declaration: options apart by spaces, names of one apart by commas, and
// a colon after those that take a value, two if they may go without:
//
//	"n:,lines c:,bytes q,quiet,silent i::,in-place"
func parseGrammar(declaration string) grammar {
	g := grammar{options: map[string]optionSpec{}}
	for _, field := range strings.Fields(declaration) {
		names := strings.Split(field, ",")
		spec := optionSpec{name: strings.TrimRight(names[0], ":")}
		for _, n := range names {
			if strings.HasSuffix(n, "::") {
				spec.arg = optional
			} else if strings.HasSuffix(n, ":") {
				spec.arg = required
			}
		}
		for _, n := range names {
			n = strings.TrimRight(n, ":")
			if _, taken := g.options[n]; taken {
				panic(fmt.Sprintf("tool: option %q is declared twice in %q", n, declaration))
			}
			g.options[n] = spec
		}
	}
	return g
}

// optionError is what is wrong with an option, in the words of the C library.
type optionError string

func (e optionError) Error() string { return string(e) }

// parse separates options and operands.
func (g grammar) parse(args []string) (opts Options, operands []string, err error) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return opts, append(operands, args[i+1:]...), nil
		case strings.HasPrefix(arg, "--"):
			used, err := g.long(&opts, arg[2:], args[i+1:])
			if err != nil {
				return opts, nil, err
			}
			i += used
		case len(arg) > 1 && arg[0] == '-' && g.digits != "" && strings.Trim(arg[1:], "0123456789") == "":
			opts.Set(g.digits, arg[1:])
		case len(arg) > 1 && arg[0] == '-':
			used, err := g.short(&opts, arg[1:], args[i+1:])
			if err != nil {
				return opts, nil, err
			}
			i += used
		case g.inOrder:
			return opts, append(operands, args[i:]...), nil
		default:
			operands = append(operands, arg)
		}
	}
	return opts, operands, nil
}

// long reads --name or --name=value; any unambiguous beginning of a name will do. It returns how many
// of the following arguments it used.
func (g grammar) long(opts *Options, text string, rest []string) (int, error) {
	name, value, given := strings.Cut(text, "=")
	spec, ok := g.options[name]
	if !ok || len(name) < 2 {
		var found []optionSpec
		for n, s := range g.options {
			if len(n) > 1 && strings.HasPrefix(n, name) && (len(found) == 0 || found[0].name != s.name) {
				found = append(found, s)
			}
		}
		switch {
		case len(found) == 0 || name == "":
			return 0, optionError("unrecognized option: " + name)
		case len(found) > 1:
			return 0, optionError("option is ambiguous: " + name)
		}
		spec = found[0]
	}
	switch {
	case spec.arg == none && given:
		return 0, optionError("option does not take an argument: " + name)
	case spec.arg != required || given:
		opts.Set(spec.name, value)
		return 0, nil
	case len(rest) == 0:
		return 0, optionError("option requires an argument: " + name)
	}
	opts.Set(spec.name, rest[0])
	return 1, nil
}

// short reads a cluster such as -xzf.
func (g grammar) short(opts *Options, cluster string, rest []string) (int, error) {
	for i, r := range cluster {
		name := string(r)
		spec, ok := g.options[name]
		if !ok {
			return 0, optionError("unrecognized option: " + name)
		}
		value := cluster[i+len(name):]
		switch {
		case spec.arg == none:
			opts.Set(spec.name, "")
			continue
		case value != "" || spec.arg == optional:
			opts.Set(spec.name, value)
			return 0, nil
		case len(rest) == 0:
			return 0, optionError("option requires an argument: " + name)
		}
		opts.Set(spec.name, rest[0])
		return 1, nil
	}
	return 0, nil
}

// ParseOptions reads options by a declaration, for tools with messages of their own. The error names
// the option after a colon.
func ParseOptions(declaration string, args []string) (Options, []string, error) {
	return parseGrammar(declaration).parse(args)
}
