package nginx

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aiopslab/aiopslab/kit"
)

// place is where a directive may stand.
type place int

const (
	inMain place = 1 << iota
	inEvents
	inHTTP
	inServer
	inLocation

	anyHTTP = inHTTP | inServer | inLocation
)

// frame is the block a directive stands in.
type frame struct {
	place    place
	scope    *scope
	server   *server
	location *location
}

// builder makes a config of directives.
type builder struct {
	ctx   context.Context
	env   *kit.Env
	cfg   *config
	set   map[string]bool // variables that "set" directives and named captures make
	later []func() error  // what needs the whole configuration
}

// load reads a configuration. extra are directives of the command line.
func load(ctx context.Context, env *kit.Env, file, extra string) (*config, error) {
	p := &parser{env: env}
	list, err := p.file(file)
	if err != nil {
		return nil, err
	}
	tokens, err := lex("command line", extra)
	if err != nil {
		return nil, err
	}
	first, _, err := p.directives("command line", tokens, false)
	if err != nil {
		return nil, err
	}
	list = append(first, list...)
	b := &builder{ctx: ctx, env: env, set: map[string]bool{}, cfg: &config{
		file: file, pid: "/run/nginx.pid", daemon: true, upstreams: map[string]*upstream{}, formats: map[string]*text{},
		errorLog: errorLog{path: defaultErrorLog, level: levelError},
	}}
	b.collect(list)
	combined, err := compile(combinedFormat, b.known)
	if err != nil {
		return nil, err
	}
	b.cfg.formats["combined"] = combined
	top := defaults()
	top.errorLog = b.cfg.errorLog
	top.accessLogs = []accessLog{{path: defaultAccessLog, format: combined}}
	f := &frame{place: inMain, scope: &top}
	if err := b.block(f, list); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(list, func(d *directive) bool { return d.name == "events" }) {
		return nil, &confError{msg: `no "events" section in configuration`}
	}
	b.cfg.errorLog = top.errorLog
	for _, f := range b.later {
		if err := f(); err != nil {
			return nil, err
		}
	}
	return b.cfg, nil
}

// collect notes the variables a configuration makes itself, which may be used before they are made.
func (b *builder) collect(list []*directive) {
	for _, d := range list {
		if d.name == "set" && len(d.args) > 0 {
			b.set[strings.TrimPrefix(d.args[0], "$")] = true
		}
		for _, a := range d.args {
			for _, group := range strings.Split(a, "(?<")[1:] {
				if name, _, ok := strings.Cut(group, ">"); ok {
					b.set[name] = true
				}
			}
		}
		b.collect(d.block)
	}
}

func (b *builder) known(name string) bool { return b.set[name] }

// text compiles a text of a directive.
func (b *builder) text(d *directive, s string) (*text, error) {
	t, err := compile(s, b.known)
	if err != nil {
		return nil, d.errorf("%v", err)
	}
	return t, nil
}

// block applies the directives of a block: first those that say something about it, then the blocks
// inside, which inherit from it wherever in it they stand.
func (b *builder) block(f *frame, list []*directive) error {
	for _, blocks := range []bool{false, true} {
		for _, d := range list {
			s, err := b.check(f, d)
			if err != nil {
				return err
			}
			if (s.block && s.inherits) != blocks {
				continue
			}
			if err := s.apply(b, f, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// check finds a directive's specification and makes sure that it is used accordingly.
func (b *builder) check(f *frame, d *directive) (*spec, error) {
	s, ok := directives[d.name]
	switch {
	case !ok:
		return nil, d.errorf("unknown directive %q", d.name)
	case s.in&f.place == 0:
		return nil, d.errorf("%q directive is not allowed here", d.name)
	case s.block && !d.hasBlock:
		return nil, d.errorf("directive %q has no opening %q", d.name, "{")
	case !s.block && d.hasBlock:
		return nil, d.errorf("directive %q is not terminated by %q", d.name, ";")
	case len(d.args) < s.min || s.max >= 0 && len(d.args) > s.max:
		return nil, d.errorf("invalid number of arguments in %q directive", d.name)
	}
	return s, nil
}

// unique reports a directive that may stand only once in a block.
func (f *frame) unique(d *directive) error {
	if f.scope.own[d.name] {
		return d.errorf("%q directive is duplicate", d.name)
	}
	f.scope.own[d.name] = true
	return nil
}

// first reports whether a directive that may be repeated stands in its block for the first time;
// what is inherited does not count then.
func (f *frame) first(name string) bool {
	first := !f.scope.own[name]
	f.scope.own[name] = true
	return first
}

// flagArg reads an argument that is "on" or "off".
func flagArg(d *directive) (bool, error) {
	switch d.args[0] {
	case "on":
		return true, nil
	case "off":
		return false, nil
	}
	return false, d.errorf(`invalid value %q in %q directive, it must be "on" or "off"`, d.args[0], d.name)
}

func badValue(d *directive, value string) error {
	return d.errorf("invalid value %q in %q directive", value, d.name)
}

func (b *builder) warn(d *directive, format string, args ...any) {
	b.cfg.warnings = append(b.cfg.warnings, fmt.Sprintf(format, args...)+fmt.Sprintf(" in %s:%d", d.file, d.line))
}
