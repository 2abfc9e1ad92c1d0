package interp

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/kit"
)

// config is what package expand needs to know of the shell.
func (s *Shell) config(ctx context.Context) *expand.Config {
	cfg := &expand.Config{
		Env:        environ{s},
		CmdSubst:   s.commandSubstitution(ctx),
		ProcSubst:  s.processSubstitution(ctx),
		NoUnset:    s.opts.noUnset,
		GlobStar:   s.opts.shopted("globstar"),
		DotGlob:    s.opts.shopted("dotglob"),
		NoCaseGlob: s.opts.shopted("nocaseglob"),
		NullGlob:   s.opts.shopted("nullglob"),
		ExtGlob:    s.opts.shopted("extglob"),
	}
	if !s.opts.noGlob {
		cfg.ReadDir2 = func(dir string) ([]fs.DirEntry, error) { return s.env.FS.ReadDir(dir) }
	}
	return cfg
}

// fields expands words to the arguments of a command. Each word is prepared when the ones before it
// have had their effects.
func (s *Shell) fields(ctx context.Context, words ...*syntax.Word) (all []string, err error) {
	defer s.expand(&err)()
	for _, w := range words {
		split, err := s.splitWord(ctx, s.prepare(w))
		if err != nil {
			return nil, err
		}
		fields, err := expand.Fields(s.config(ctx), split...)
		if err != nil {
			return nil, err
		}
		all = append(all, fields...)
	}
	return all, nil
}

// literal expands a word to one text.
func (s *Shell) literal(ctx context.Context, w *syntax.Word) (_ string, err error) {
	if w == nil {
		return "", nil
	}
	defer s.expand(&err)()
	return expand.Literal(s.config(ctx), s.prepare(w))
}

// pattern expands a word to a pattern, in which what was quoted stands for itself.
func (s *Shell) pattern(ctx context.Context, w *syntax.Word) (_ string, err error) {
	defer s.expand(&err)()
	return expand.Pattern(s.config(ctx), s.prepare(w))
}

// document expands the body of a here-document.
func (s *Shell) document(ctx context.Context, w *syntax.Word) (_ string, err error) {
	if w == nil {
		return "", nil
	}
	defer s.expand(&err)()
	return expand.Document(s.config(ctx), s.prepare(w))
}

// badExpansion reports an expansion that failed. The shell that POSIX describes ends by that.
func (s *Shell) badExpansion(err error) flow {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return flowExit
	}
	if kit.IsOutOfMemory(err) {
		s.status = kit.ExitSignal + int(syscall.SIGKILL)
		return flowExit
	}
	text := err.Error()
	fatal := !s.interactive
	status := 2
	if s.bash {
		status = 1
	}
	if unset, ok := errors.AsType[expand.UnsetParameterError](err); ok {
		if s.bash {
			status = 127
		}
		switch unset.Message {
		case "unbound variable":
			text = unset.Node.Param.Value + ": " + s.pick("parameter not set", "unbound variable")
		case "":
			text = unset.Node.Param.Value + ": " + s.pick("parameter not set or null", "parameter null or not set")
		}
	} else if _, ok := errors.AsType[readOnlyError](err); s.bash && !ok {
		fatal = false // Bash only gives up the command at hand.
	}
	if text == "division by zero" {
		text = s.pick("divide by zero", "division by 0")
	}
	s.complain("%s", text)
	if s.status = status; fatal {
		return flowExit
	}
	return flowNext
}

// prepare returns a word with what package expand would do too much of taken out: it evaluates the
// b of ${a:-b} even if a is set, and it expands braces, which ash does not.
func (s *Shell) prepare(w *syntax.Word) *syntax.Word {
	parts, changed := s.prepareParts(w.Parts, false)
	if !changed {
		return w
	}
	c := *w
	c.Parts = parts
	return &c
}

func (s *Shell) prepareParts(parts []syntax.WordPart, quoted bool) ([]syntax.WordPart, bool) {
	var out []syntax.WordPart
	for i, part := range parts {
		replaced := part
		switch p := part.(type) {
		case *syntax.Lit:
			if !quoted && !s.bash && strings.Contains(p.Value, "{") {
				c := *p
				c.Value = escapeBraces(p.Value)
				replaced = &c
			}
		case *syntax.DblQuoted:
			if inner, changed := s.prepareParts(p.Parts, true); changed {
				c := *p
				c.Parts = inner
				replaced = &c
			}
		case *syntax.ParamExp:
			replaced = s.prepareParam(p)
			if words := s.quotedAlternative(replaced); words != nil && !quoted {
				if out == nil {
					out = append(make([]syntax.WordPart, 0, len(parts)), parts[:i]...)
				}
				out = append(out, words...)
				continue
			}
		}
		if replaced != part && out == nil {
			out = append(make([]syntax.WordPart, 0, len(parts)), parts[:i]...)
		}
		if out != nil {
			out = append(out, replaced)
		}
	}
	if out == nil {
		return parts, false
	}
	return out, true
}

func escapeBraces(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			b.WriteByte(s[i])
			i++
		} else if s[i] == '{' {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (s *Shell) prepareParam(p *syntax.ParamExp) syntax.WordPart {
	if p.Param == nil {
		return p
	}
	s.swellReplaced(p)
	if p.Index != nil {
		return s.prepareArray(p)
	}
	if p.Exp == nil || p.Exp.Word == nil {
		return p
	}
	v := environ{s}.Get(p.Param.Value)
	set := v.IsSet()
	null := !set || v.String() == ""
	needed := true
	switch p.Exp.Op {
	case syntax.AlternateUnset:
		needed = set
	case syntax.AlternateUnsetOrNull:
		needed = !null
	case syntax.DefaultUnset, syntax.ErrorUnset, syntax.AssignUnset:
		needed = !set
	case syntax.DefaultUnsetOrNull, syntax.ErrorUnsetOrNull, syntax.AssignUnsetOrNull:
		needed = null
	}
	word := p.Exp.Word
	if !needed {
		word = nil
	} else if word = s.prepare(word); word == p.Exp.Word {
		return p
	}
	c, exp := *p, *p.Exp
	exp.Word = word
	c.Exp = &exp
	return &c
}

// quotedAlternative returns the b of ${a-b} or ${a+b} if that is what the expansion comes to, and all
// of it is quoted. Package expand would make one field of it; but ${1+"$@"} stands for many.
func (s *Shell) quotedAlternative(part syntax.WordPart) []syntax.WordPart {
	p, ok := part.(*syntax.ParamExp)
	if !ok || p.Exp == nil || p.Exp.Word == nil || p.Index != nil {
		return nil
	}
	switch p.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
	default:
		return nil
	}
	for _, inner := range p.Exp.Word.Parts {
		switch inner.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
		default:
			return nil
		}
	}
	return p.Exp.Word.Parts
}

// prepareArray does what package expand does not with whole arrays: the length of an associative one,
// and a default for an empty one.
func (s *Shell) prepareArray(p *syntax.ParamExp) syntax.WordPart {
	index, ok := p.Index.(*syntax.Word)
	if !ok || index.Lit() != "@" && index.Lit() != "*" {
		return p
	}
	v := s.vars[p.Param.Value]
	if _, target := v.Resolve(environ{s}); v.Kind == expand.NameRef {
		v = target
	}
	size := len(v.List)
	switch v.Kind {
	case expand.Associative:
		size = len(v.Map)
	case expand.String:
		size = 1
	}
	if p.Length && v.Kind == expand.Associative {
		return &syntax.Lit{Value: strconv.Itoa(size)}
	}
	if p.Exp == nil || p.Exp.Op != syntax.DefaultUnset && p.Exp.Op != syntax.DefaultUnsetOrNull {
		return p
	}
	c := *p
	if size > 0 {
		c.Exp = nil
		return &c
	}
	c.Index, c.Param = nil, &syntax.Lit{Value: "__empty"} // A name that nobody sets.
	return &c
}
