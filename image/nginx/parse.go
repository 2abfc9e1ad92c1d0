package nginx

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/kit"
)

// confDir is what relative names in a configuration are relative to.
const confDir = "/etc/nginx"

// directive is a statement of a configuration: a name, arguments, and perhaps a block.
type directive struct {
	name     string
	args     []string
	block    []*directive
	hasBlock bool
	file     string
	line     int
}

// errorf returns a mistake at the directive's place.
func (d *directive) errorf(format string, args ...any) error {
	return &confError{fmt.Sprintf(format, args...), d.file, d.line}
}

// parser reads configuration files into directives, following includes.
type parser struct {
	env   *kit.Env
	end   int // the last line of the file being read
	files int // that are open, one inside the other
	depth int // of blocks
}

// How deep files and blocks may lie inside each other. The original runs out of open files where one
// includes itself.
const (
	maxFiles = 64
	maxDepth = 256
)

func confPath(name string) string {
	if path.IsAbs(name) {
		return name
	}
	return path.Join(confDir, name)
}

func (p *parser) file(name string) ([]*directive, error) {
	p.files++
	defer func() { p.files-- }()
	data, err := p.env.ReadFile(name)
	if p.files > maxFiles {
		err = syscall.EMFILE
	}
	if err != nil {
		return nil, &confError{msg: fmt.Sprintf("open() %q failed (%s)", name, errnoText(err))}
	}
	tokens, err := lex(name, string(data))
	if err != nil {
		return nil, err
	}
	defer func(end int) { p.end = end }(p.end) // It may be an included file.
	p.end = lastLine(string(data))
	list, rest, err := p.directives(name, tokens, false)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 { // Only a brace too many ends the outermost level early.
		return nil, &confError{`unexpected "}"`, name, rest[0].line}
	}
	return list, nil
}

// directives reads up to the end of a block, or of the file.
func (p *parser) directives(file string, tokens []token, inBlock bool) (list []*directive, rest []token, err error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, nil, &confError{"too many nested blocks", file, p.end}
	}
	for len(tokens) > 0 {
		t := tokens[0]
		if t.is("}") {
			if inBlock {
				return list, tokens[1:], nil
			}
			return list, tokens, nil
		}
		if t.is(";") || t.is("{") {
			return nil, nil, &confError{fmt.Sprintf("unexpected %q", t.text), file, t.line}
		}
		d := &directive{name: t.text, file: file, line: t.line}
		tokens = tokens[1:]
		if tokens, err = p.rest(d, tokens, file); err != nil {
			return nil, nil, err
		}
		if d.name == "include" && !d.hasBlock {
			included, err := p.include(d)
			if err != nil {
				return nil, nil, err
			}
			list = append(list, included...)
			continue
		}
		list = append(list, d)
	}
	if inBlock {
		return nil, nil, &confError{`unexpected end of file, expecting "}"`, file, p.end}
	}
	return list, nil, nil
}

// rest reads a directive's arguments and what ends it.
func (p *parser) rest(d *directive, tokens []token, file string) ([]token, error) {
	for len(tokens) > 0 {
		t := tokens[0]
		tokens = tokens[1:]
		switch {
		case t.is(";"):
			return tokens, nil
		case t.is("}"):
			return nil, &confError{`unexpected "}"`, file, t.line}
		case t.is("{"):
			d.hasBlock = true
			block, after, err := p.directives(file, tokens, true)
			if err != nil {
				return nil, err
			}
			d.block = block
			return after, nil
		}
		d.line = t.line // The original reports the line a directive ends on.
		d.args = append(d.args, t.text)
	}
	return nil, &confError{`unexpected end of file, expecting ";" or "}"`, file, p.end}
}

// include reads the files a pattern names. A name without wildcards must exist.
func (p *parser) include(d *directive) ([]*directive, error) {
	if len(d.args) != 1 {
		return nil, d.errorf(`invalid number of arguments in "include" directive`)
	}
	pattern := confPath(d.args[0])
	if !strings.ContainsAny(pattern, "*?[") {
		list, err := p.file(pattern)
		if e, ok := err.(*confError); ok && e.line == 0 {
			return nil, d.errorf("%s", e.msg)
		}
		return list, err
	}
	names, err := p.glob(pattern)
	if err != nil {
		return nil, d.errorf("glob() %q failed", pattern)
	}
	var all []*directive
	for _, name := range names {
		list, err := p.file(name)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// glob returns the files whose last element matches a pattern, sorted. A directory that does not
// exist holds none.
func (p *parser) glob(pattern string) ([]string, error) {
	entries, err := p.env.FS.ReadDir(path.Dir(pattern))
	if err != nil {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue // A pattern does not match what is hidden.
		}
		matched, err := path.Match(path.Base(pattern), e.Name())
		if err != nil {
			return nil, err
		}
		// A volume's files are links, so the type of the entry itself does not tell.
		name := path.Join(path.Dir(pattern), e.Name())
		if fi, err := p.env.FS.Stat(name); matched && err == nil && fi.Mode()&fs.ModeType == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
