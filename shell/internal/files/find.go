package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var find = tool.Tool{
	Name: "find", Raw: true, Args: "[-HL] [PATH]... [OPTIONS] [ACTIONS]",
	Help: "Search for files and perform actions on them.\n" +
		"First failed action stops processing of current file.\n" +
		"Defaults: PATH is current directory, action is '-print'",
	Run: func(ctx context.Context, c *tool.Call) error {
		f := &finder{c: c, max: -1, now: time.Now(), accounts: tool.ReadAccounts(c.Env)}
		args := c.Args
		for len(args) > 0 && (args[0] == "-L" || args[0] == "-H" || args[0] == "-P") {
			f.follow = args[0] == "-L"
			args = args[1:]
		}
		var paths []string
		for len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "(" && args[0] != "!" {
			paths = append(paths, args[0])
			args = args[1:]
		}
		if len(paths) == 0 {
			paths = []string{"."}
		}
		p := &findParser{f: f, ctx: ctx, args: args}
		test, err := p.parse()
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		f.test = test
		for _, path := range paths {
			if err := f.visit(path, path, 0); err == errQuitFind {
				break
			}
		}
		for _, flush := range f.batches {
			flush()
		}
		return kit.Exit(f.code)
	},
}

// finder is a find under way.
type finder struct {
	c        *tool.Call
	test     predicate
	min, max int
	depth    bool // contents come before their directory
	xdev     bool
	follow   bool
	now      time.Time
	accounts *tool.Accounts
	batches  []func() // what -exec + has still to run
	code     int
}

// found is a file that is looked at.
type found struct {
	path  string // as it is shown
	start string // the path it was found under
	info  fs.FileInfo
	depth int
	prune bool
}

// predicate tests a file, or does something with it.
type predicate func(e *found) (bool, error)

var errQuitFind = errors.New("quit")

func (f *finder) fail(format string, args ...any) {
	f.c.Warn(format, args...)
	f.code = 1
}

func (f *finder) visit(path, start string, depth int) error {
	tool.Stopped(f.c.Context())
	env := f.c.Env
	fi, err := env.FS.Lstat(env.Path(path))
	if f.follow && err == nil {
		if target, err := env.FS.Stat(env.Path(path)); err == nil {
			fi = target
		}
	}
	if err != nil {
		f.fail("%s: %s", path, tool.Reason(err))
		return nil
	}
	e := &found{path: path, start: start, info: fi, depth: depth}
	if !f.depth {
		if err := f.check(e); err != nil {
			return err
		}
	}
	if fi.IsDir() && !e.prune && (f.max < 0 || depth < f.max) && !(f.xdev && f.elsewhere(path, start)) {
		entries, err := env.FS.ReadDir(env.Path(path))
		if err != nil {
			f.fail("%s: %s", path, tool.Reason(err))
		}
		for _, entry := range entries {
			if err := f.visit(tool.Join(path, entry.Name()), start, depth+1); err != nil {
				return err
			}
		}
	}
	if f.depth {
		return f.check(e)
	}
	return nil
}

func (f *finder) check(e *found) error {
	if e.depth < f.min {
		return nil
	}
	_, err := f.test(e)
	return err
}

// elsewhere reports whether a directory is on another file system than where the search began.
func (f *finder) elsewhere(path, start string) bool {
	a, errA := f.c.Env.FS.StatFS(f.c.Env.Path(path))
	b, errB := f.c.Env.FS.StatFS(f.c.Env.Path(start))
	return errA == nil && errB == nil && a.Mount != b.Mount
}

// numeric reads +N, -N and N, and returns a test for it.
func numeric(text string) (func(n int64) bool, error) {
	digits := strings.TrimLeft(text, "+-")
	want, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("invalid number '%s'", text)
	}
	switch text[0] {
	case '+':
		return func(n int64) bool { return n > want }, nil
	case '-':
		return func(n int64) bool { return n < want }, nil
	}
	return func(n int64) bool { return n == want }, nil
}

// sizeTest reads +10k and the like; the unit is rounded up, as everywhere.
func sizeTest(text string) (predicate, error) {
	unit := int64(512)
	if text == "" {
		return nil, errors.New("invalid number ''")
	}
	switch text[len(text)-1] {
	case 'c':
		unit = 1
	case 'w':
		unit = 2
	case 'k':
		unit = 1 << 10
	case 'M':
		unit = 1 << 20
	case 'G':
		unit = 1 << 30
	}
	compare, err := numeric(strings.TrimRight(text, "bcwkMG"))
	if err != nil {
		return nil, err
	}
	return func(e *found) (bool, error) { return compare((e.info.Size() + unit - 1) / unit), nil }, nil
}

// permTest reads 644, -644 and /222.
func permTest(text string) (predicate, error) {
	rest := strings.TrimLeft(text, "-/+")
	want, err := parseMode(rest, 0)
	if err != nil {
		return nil, err
	}
	bits := octalMode(want)
	return func(e *found) (bool, error) {
		has := octalMode(e.info.Mode())
		switch text[0] {
		case '-':
			return has&bits == bits, nil
		case '/', '+':
			return has&bits != 0 || bits == 0, nil
		}
		return has == bits, nil
	}, nil
}

// ageTest compares the age of a file in units of time.
func (f *finder) ageTest(text string, unit time.Duration) (predicate, error) {
	compare, err := numeric(text)
	if err != nil {
		return nil, err
	}
	return func(e *found) (bool, error) { return compare(int64(f.now.Sub(e.info.ModTime()) / unit)), nil }, nil
}

func typeTest(letters string) (predicate, error) {
	for _, l := range strings.Split(letters, ",") {
		if len(l) != 1 || !strings.Contains("bcdflps", l) {
			return nil, fmt.Errorf("bad arg '%s' to -type", letters)
		}
	}
	return func(e *found) (bool, error) {
		kind := modeString(e.info.Mode())[:1]
		if kind == "-" {
			kind = "f"
		}
		return strings.Contains(letters, kind), nil
	}, nil
}
