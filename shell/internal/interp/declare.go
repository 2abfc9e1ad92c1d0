package interp

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// declaration is one of export, readonly, local and declare.
type declaration struct {
	command string
	set     map[byte]bool // flags with -
	unset   map[byte]bool // flags with +
	names   []*syntax.Assign
}

// declClause runs a declaration that the parser knew as such. Its assignments are not split.
func (s *Shell) declClause(ctx context.Context, c *syntax.DeclClause) flow {
	d := newDeclaration(c.Variant.Value)
	s.substStatus = -1
	s.status = 0
	for _, as := range c.Args {
		if as.Name != nil {
			d.names = append(d.names, as)
			continue
		}
		fields, err := s.fields(ctx, as.Value)
		if err != nil {
			return s.badExpansion(err)
		}
		for _, f := range fields {
			if err := d.argument(s, f); err != nil {
				return flowNext
			}
		}
	}
	return s.declare(ctx, d)
}

// declare returns a declaration as a builtin, for when the parser cannot know it: command export.
func declare(command string) builtin {
	return func(s *Shell, ctx context.Context, args []string) flow {
		d := newDeclaration(command)
		for _, a := range args {
			if err := d.argument(s, a); err != nil {
				return flowNext
			}
		}
		return s.declare(ctx, d)
	}
}

func newDeclaration(command string) *declaration {
	d := &declaration{command: command, set: map[byte]bool{}, unset: map[byte]bool{}}
	switch command {
	case "export":
		d.set['x'] = true
	case "readonly":
		d.set['r'] = true
	case "nameref":
		d.set['n'] = true
	}
	return d
}

// argument takes an option, a name, or name=value that came out of an expansion.
func (d *declaration) argument(s *Shell, arg string) error {
	if len(arg) > 1 && (arg[0] == '-' || arg[0] == '+') && len(d.names) == 0 {
		flags := d.set
		if arg[0] == '+' {
			flags = d.unset
		}
		for _, f := range []byte(arg[1:]) {
			switch {
			case f == '-':
			case f == 'n' && d.command == "export":
				delete(d.set, 'x')
				d.unset['x'] = true
			case strings.IndexByte("aAfFgiIlnprtux", f) < 0:
				s.fail(2, "%s: %s", d.command, s.pick("Illegal option -"+string(f), "-"+string(f)+": invalid option"))
				return errReported
			default:
				flags[f] = true
			}
		}
		return nil
	}
	name, value, assigned := strings.Cut(arg, "=")
	appended := strings.HasSuffix(name, "+")
	name = strings.TrimSuffix(name, "+")
	if !syntax.ValidName(name) {
		text := s.pick(name+": bad variable name", "`"+arg+"': not a valid identifier")
		s.fail(s.usageStatus(), "%s: %s", d.command, text)
		return errReported
	}
	as := &syntax.Assign{Name: &syntax.Lit{Value: name}, Naked: !assigned, Append: appended}
	if assigned {
		as.Value = &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: value}}}
	}
	d.names = append(d.names, as)
	return nil
}

func (s *Shell) declare(ctx context.Context, d *declaration) flow {
	local := d.command == "local" || d.command == "declare" && !d.set['g'] || d.command == "typeset" && !d.set['g']
	if d.command == "local" && len(s.calls) == 0 {
		return s.fail(s.usageStatus(), "local: %s", s.pick("not in a function", "can only be used in a function"))
	}
	if d.set['f'] || d.set['F'] {
		return s.showFunctions(d)
	}
	if len(d.names) == 0 || d.set['p'] {
		return s.showVars(d)
	}
	for _, as := range d.names {
		if local && len(s.calls) > 0 {
			s.local(as.Name.Value)
		}
		if fl := s.declareOne(ctx, d, as); fl != flowNext {
			return fl
		}
	}
	return flowNext
}

func (s *Shell) declareOne(ctx context.Context, d *declaration, as *syntax.Assign) flow {
	kind := expand.Unknown
	switch {
	case d.set['a']:
		kind = expand.Indexed
	case d.set['A']:
		kind = expand.Associative
	case d.set['n'] && d.command != "export":
		kind = expand.NameRef
	}
	name := as.Name.Value
	if as.Naked {
		v := s.vars[name]
		if kind != expand.Unknown && v.Kind == expand.Unknown {
			v.Kind = kind
		}
		s.vars[name] = v
	} else {
		var err error
		if name, err = s.assign(ctx, as, kind); err != nil {
			return s.badExpansion(err)
		}
	}
	v := s.vars[name]
	v.Exported = (v.Exported || d.set['x']) && !d.unset['x']
	v.ReadOnly = v.ReadOnly || d.set['r']
	switch {
	case d.set['i'] && v.Kind == expand.String:
		n, err := s.integer(ctx, v.Str)
		if err != nil {
			return s.badExpansion(err)
		}
		v.Str = strconv.Itoa(n)
	case d.set['l']:
		v.Str = strings.ToLower(v.Str)
	case d.set['u'] && d.command != "export":
		v.Str = strings.ToUpper(v.Str)
	}
	s.vars[name] = v
	if s.opts.xTrace && !as.Naked {
		s.traceLine(d.command + " " + name + "=" + quoteTrace(v.String()))
	}
	return flowNext
}

// showVars is export -p and the like.
func (s *Shell) showVars(d *declaration) flow {
	names := slices.Sorted(maps.Keys(s.vars))
	if len(d.names) > 0 {
		names = nil
		for _, as := range d.names {
			names = append(names, as.Name.Value)
		}
	}
	for _, name := range names {
		v, ok := s.vars[name]
		if !ok {
			s.fail(1, "%s: %s: not found", d.command, name)
			continue
		}
		if d.set['x'] && !v.Exported || d.set['r'] && !v.ReadOnly {
			continue
		}
		flags := v.Flags()
		if flags == "" {
			flags = "-"
		}
		line := "declare -" + flags + " " + name
		if v.Set && v.Kind == expand.String {
			line += "=" + doubleQuoted(v.Str)
		} else if v.Set {
			line += "=" + s.quoted(v)
		}
		if !s.bash {
			if line = d.command + " " + name; v.Set {
				line += "=" + s.quoted(v)
			}
		}
		if fl := s.printf("%s\n", line); fl != flowNext {
			return fl
		}
	}
	return flowNext
}

// showFunctions is declare -f.
func (s *Shell) showFunctions(d *declaration) flow {
	names := slices.Sorted(maps.Keys(s.funcs))
	if len(d.names) > 0 {
		names = nil
		for _, as := range d.names {
			names = append(names, as.Name.Value)
		}
	}
	for _, name := range names {
		body := s.funcs[name]
		if body == nil {
			s.status = 1
			continue
		}
		if d.set['F'] {
			s.printf("%s\n", name)
			continue
		}
		var b strings.Builder
		syntax.NewPrinter(syntax.Indent(4)).Print(&b, body)
		s.printf("%s () \n%s\n", name, b.String())
	}
	return flowNext
}
