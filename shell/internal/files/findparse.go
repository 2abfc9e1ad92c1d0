package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/aiopslab/aiopslab/shell/internal/regex"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// findParser reads the expression of find. It keeps the context for the actions it makes, which are
// called back without one.
type findParser struct {
	f      *finder
	ctx    context.Context
	args   []string
	action bool // the expression does something by itself
	syntax regex.Syntax
	deep   int // of ! and (
}

const (
	maxFindDepth = 1000  // of parentheses and negations
	maxFindTests = 20000 // each of which calls the one before
)

func (p *findParser) parse() (predicate, error) {
	if len(p.args) == 0 {
		return p.f.print("\n"), nil
	}
	if len(p.args) > maxFindTests {
		return nil, errors.New("the expression is too long")
	}
	test, err := p.or()
	if err != nil {
		return nil, err
	}
	if len(p.args) > 0 {
		return nil, fmt.Errorf("unrecognized: %s", p.args[0])
	}
	if p.action {
		return test, nil
	}
	print := p.f.print("\n")
	return func(e *found) (bool, error) {
		ok, err := test(e)
		if !ok || err != nil {
			return ok, err
		}
		return print(e)
	}, nil
}

func (p *findParser) take(words ...string) bool {
	if len(p.args) > 0 {
		for _, w := range words {
			if p.args[0] == w {
				p.args = p.args[1:]
				return true
			}
		}
	}
	return false
}

func (p *findParser) or() (predicate, error) {
	left, err := p.and()
	for err == nil && p.take("-o", "-or") {
		var right predicate
		if right, err = p.and(); err != nil {
			break
		}
		first := left
		left = func(e *found) (bool, error) {
			if ok, err := first(e); ok || err != nil {
				return ok, err
			}
			return right(e)
		}
	}
	for err == nil && p.take(",") {
		var right predicate
		if right, err = p.or(); err != nil {
			break
		}
		first := left
		left = func(e *found) (bool, error) {
			if _, err := first(e); err != nil {
				return false, err
			}
			return right(e)
		}
	}
	return left, err
}

func (p *findParser) and() (predicate, error) {
	left, err := p.primary()
	for err == nil && len(p.args) > 0 && !slices.Contains([]string{"-o", "-or", ")", ","}, p.args[0]) {
		p.take("-a", "-and")
		var right predicate
		if right, err = p.primary(); err != nil {
			break
		}
		first := left
		left = func(e *found) (bool, error) {
			if ok, err := first(e); !ok || err != nil {
				return false, err
			}
			return right(e)
		}
	}
	return left, err
}

func (p *findParser) primary() (predicate, error) {
	if len(p.args) == 0 {
		return nil, errors.New("missing expression")
	}
	if p.deep++; p.deep > maxFindDepth {
		return nil, errors.New("the expression is nested too deep")
	}
	defer func() { p.deep-- }()
	word := p.args[0]
	p.args = p.args[1:]
	switch word {
	case "!", "-not":
		test, err := p.primary()
		return func(e *found) (bool, error) {
			ok, err := test(e)
			return !ok, err
		}, err
	case "(":
		test, err := p.or()
		if err == nil && !p.take(")") {
			err = errors.New("missing ')'")
		}
		return test, err
	}
	if test := p.simple(word); test != nil {
		return test, nil
	}
	if word == "-exec" || word == "-execdir" || word == "-ok" {
		return p.exec(word)
	}
	if len(p.args) == 0 {
		if _, known := findTests[word]; known {
			return nil, fmt.Errorf("%s requires an argument", word)
		}
		return nil, fmt.Errorf("unrecognized: %s", word)
	}
	make, known := findTests[word]
	if !known {
		return nil, fmt.Errorf("unrecognized: %s", word)
	}
	arg := p.args[0]
	p.args = p.args[1:]
	return make(p, word, arg)
}

func always(ok bool) predicate { return func(*found) (bool, error) { return ok, nil } }

// simple are the predicates without an argument.
func (p *findParser) simple(word string) predicate {
	f := p.f
	permitted := func(bit fs.FileMode) predicate {
		return func(e *found) (bool, error) { return tool.Permitted(e.info, f.c.Env.User, bit), nil }
	}
	switch word {
	case "-true", "-daystart", "-noleaf", "-ignore_readdir_race":
		return always(true)
	case "-false":
		return always(false)
	case "-depth", "-d":
		f.depth = true
		return always(true)
	case "-xdev", "-mount":
		f.xdev = true
		return always(true)
	case "-follow":
		f.follow = true
		return always(true)
	case "-print":
		p.action = true
		return f.print("\n")
	case "-print0":
		p.action = true
		return f.print("\x00")
	case "-ls":
		p.action = true
		return f.list
	case "-prune":
		return func(e *found) (bool, error) {
			e.prune = true
			return true, nil
		}
	case "-quit":
		p.action = true
		return func(*found) (bool, error) { return false, errQuitFind }
	case "-delete":
		p.action, f.depth = true, true
		return f.remove
	case "-empty":
		return f.empty
	case "-readable":
		return permitted(4)
	case "-writable":
		return permitted(2)
	case "-executable":
		return permitted(1)
	case "-nouser":
		return func(e *found) (bool, error) {
			_, known := f.accounts.ByUID(tool.Owner(e.info).UID)
			return !known, nil
		}
	}
	return nil
}

// findTests are the predicates with an argument.
var findTests map[string]func(p *findParser, word, arg string) (predicate, error)

func init() {
	name := func(ignoreCase, whole bool) func(*findParser, string, string) (predicate, error) {
		return func(_ *findParser, _, arg string) (predicate, error) {
			return func(e *found) (bool, error) {
				text := e.path
				if !whole {
					text = tool.Base(e.path)
				}
				return tool.Glob(arg, text, ignoreCase), nil
			}, nil
		}
	}
	pattern := func(ignoreCase bool) func(*findParser, string, string) (predicate, error) {
		return func(p *findParser, _, arg string) (predicate, error) {
			re, err := regex.Compile(arg, p.syntax, regex.Options{IgnoreCase: ignoreCase})
			if err != nil {
				return nil, err
			}
			return func(e *found) (bool, error) {
				m := re.Find(e.path)
				return m != nil && m[0] == 0 && m[1] == len(e.path), nil
			}, nil
		}
	}
	limit := func(set func(f *finder, n int)) func(*findParser, string, string) (predicate, error) {
		return func(p *findParser, word, arg string) (predicate, error) {
			n, err := strconv.Atoi(arg)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("invalid number '%s'", arg)
			}
			set(p.f, n)
			return always(true), nil
		}
	}
	age := func(unit time.Duration) func(*findParser, string, string) (predicate, error) {
		return func(p *findParser, _, arg string) (predicate, error) { return p.f.ageTest(arg, unit) }
	}
	count := func(value func(e *found) int64) func(*findParser, string, string) (predicate, error) {
		return func(_ *findParser, _, arg string) (predicate, error) {
			compare, err := numeric(arg)
			return func(e *found) (bool, error) { return compare(value(e)), nil }, err
		}
	}
	findTests = map[string]func(p *findParser, word, arg string) (predicate, error){
		"-name": name(false, false), "-iname": name(true, false),
		"-path": name(false, true), "-ipath": name(true, true),
		"-wholename": name(false, true), "-iwholename": name(true, true),
		"-regex": pattern(false), "-iregex": pattern(true),
		"-maxdepth": limit(func(f *finder, n int) { f.max = n }),
		"-mindepth": limit(func(f *finder, n int) { f.min = n }),
		"-mtime":    age(24 * time.Hour), "-atime": age(24 * time.Hour), "-ctime": age(24 * time.Hour),
		"-mmin": age(time.Minute), "-amin": age(time.Minute), "-cmin": age(time.Minute),
		"-links": count(func(e *found) int64 { return int64(tool.Owner(e.info).Links) }),
		"-inum":  count(func(e *found) int64 { return int64(tool.Owner(e.info).Inode) }),
		"-uid":   count(func(e *found) int64 { return int64(tool.Owner(e.info).UID) }),
		"-gid":   count(func(e *found) int64 { return int64(tool.Owner(e.info).GID) }),
		"-type":  func(_ *findParser, _, arg string) (predicate, error) { return typeTest(arg) },
		"-xtype": func(_ *findParser, _, arg string) (predicate, error) { return typeTest(arg) },
		"-size":  func(_ *findParser, _, arg string) (predicate, error) { return sizeTest(arg) },
		"-perm":  func(_ *findParser, _, arg string) (predicate, error) { return permTest(arg) },
		"-newer": newer, "-cnewer": newer, "-newermt": newerThan, "-samefile": sameFile,
		"-user": ownedBy, "-group": ownedByGroup, "-fstype": onType, "-regextype": regexType,
		"-printf": printfAction, "-lname": linksTo,
	}
}

func newer(p *findParser, _, arg string) (predicate, error) {
	fi, err := p.f.c.Env.FS.Stat(p.f.c.Env.Path(arg))
	if err != nil {
		return nil, fmt.Errorf("%s: %s", arg, tool.Reason(err))
	}
	return func(e *found) (bool, error) { return e.info.ModTime().After(fi.ModTime()), nil }, nil
}

func newerThan(p *findParser, _, arg string) (predicate, error) {
	t, err := tool.ParseTime(arg, p.f.now.In(tool.Location(p.f.c.Env)))
	return func(e *found) (bool, error) { return e.info.ModTime().After(t), nil }, err
}

func sameFile(p *findParser, _, arg string) (predicate, error) {
	fi, err := p.f.c.Env.FS.Stat(p.f.c.Env.Path(arg))
	if err != nil {
		return nil, fmt.Errorf("%s: %s", arg, tool.Reason(err))
	}
	return func(e *found) (bool, error) { return tool.SameFile(fi, e.info), nil }, nil
}

func ownedBy(p *findParser, _, arg string) (predicate, error) {
	uid, ok := p.f.accounts.UserByName(arg)
	if !ok {
		return nil, fmt.Errorf("unknown user %s", arg)
	}
	return func(e *found) (bool, error) { return tool.Owner(e.info).UID == uid, nil }, nil
}

func ownedByGroup(p *findParser, _, arg string) (predicate, error) {
	gid, ok := p.f.accounts.GroupByName(arg)
	if !ok {
		return nil, fmt.Errorf("unknown group %s", arg)
	}
	return func(e *found) (bool, error) { return tool.Owner(e.info).GID == gid, nil }, nil
}

func onType(p *findParser, _, arg string) (predicate, error) {
	return func(e *found) (bool, error) {
		info, err := p.f.c.Env.FS.StatFS(p.f.c.Env.Path(e.path))
		return err == nil && info.Type == arg, nil
	}, nil
}

func linksTo(p *findParser, _, arg string) (predicate, error) {
	return func(e *found) (bool, error) {
		target, err := p.f.c.Env.FS.Readlink(p.f.c.Env.Path(e.path))
		return err == nil && tool.Glob(arg, target, false), nil
	}, nil
}

func regexType(p *findParser, _, arg string) (predicate, error) {
	if p.syntax = regex.Basic; arg == "posix-extended" || arg == "egrep" || arg == "posix-egrep" {
		p.syntax = regex.Extended
	}
	return always(true), nil
}
