package files

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var tarTool = tool.Tool{
	Name: "tar", Raw: true,
	Args: "c|x|t [-ZzJjahmvokO] [-f TARFILE] [-C DIR] [-T FILE] [-X FILE] [LONGOPT]... [FILE]...",
	Help: "Create, extract, or list files from a tar file\n" +
		"\n" +
		"\tc\tCreate\n" +
		"\tx\tExtract\n" +
		"\tt\tList\n" +
		"\t-f FILE\tName of TARFILE ('-' for stdin/out)\n" +
		"\t-C DIR\tChange to DIR before operation\n" +
		"\t-v\tVerbose\n" +
		"\t-O\tExtract to stdout\n" +
		"\t-m\tDon't restore mtime\n" +
		"\t-z\t(De)compress using gzip\n" +
		"\t-h\tFollow symlinks\n" +
		"\t-T FILE\tFile with names to include\n" +
		"\t-X FILE\tFile with glob patterns to exclude",
	Run: func(_ context.Context, c *tool.Call) error {
		t := &archiver{c: c, dir: c.Env.Dir, file: "-"}
		if err := t.options(c.Args); err != nil {
			c.Warn("%v", err)
			return c.Usage()
		}
		switch t.mode {
		case 'c':
			return t.create()
		case 'x', 't':
			return t.read()
		}
		return c.Usage()
	},
}

// archiver is a tar under way.
type archiver struct {
	c       *tool.Call
	mode    byte
	file    string
	dir     string // what -C has changed to
	names   []member
	exclude []string
	strip   int

	gzip, verbose, toStdout, noTime, keep, follow, sameOwner, absolute bool
}

// member is a file to archive, or a name to extract, with the directory it is relative to.
type member struct{ name, dir string }

// options reads the arguments. Those of the first word need no dash, and order matters to -C.
func (t *archiver) options(args []string) error {
	if len(args) == 0 {
		return errors.New("must specify one of 'c', 'x', 't'")
	}
	if !strings.HasPrefix(args[0], "-") {
		args = append([]string{"-" + args[0]}, args[1:]...)
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			for _, name := range args[i+1:] {
				t.names = append(t.names, member{name, t.dir})
			}
			return nil
		case strings.HasPrefix(arg, "--"):
			used, err := t.long(arg[2:], args[i+1:])
			if err != nil {
				return err
			}
			i += used
		case len(arg) > 1 && arg[0] == '-':
			used, err := t.short(arg[1:], args[i+1:], i == 0)
			if err != nil {
				return err
			}
			i += used
		default:
			t.names = append(t.names, member{arg, t.dir})
		}
	}
	return nil
}

// short reads a cluster such as xzf. A value may be attached to its letter, except in the first word,
// where kubectl and everybody else writes xmf - or cvfz name.
func (t *archiver) short(cluster string, rest []string, first bool) (used int, err error) {
	for i := 0; i < len(cluster); i++ {
		letter := cluster[i]
		if strings.IndexByte("fCTXb", letter) >= 0 {
			value := cluster[i+1:]
			attached := value != "" && !(first && strings.Trim(value, "cxtzvpmkOhoajJZfCTX") == "")
			if attached {
				i = len(cluster)
			} else {
				if used >= len(rest) {
					return used, fmt.Errorf("option requires an argument: %c", letter)
				}
				value = rest[used]
				used++
			}
			if err := t.value(letter, value); err != nil {
				return used, err
			}
			continue
		}
		switch letter {
		case 'c', 'x', 't', 'r':
			t.mode = letter
		case 'z':
			t.gzip = true
		case 'v':
			t.verbose = true
		case 'O':
			t.toStdout = true
		case 'm':
			t.noTime = true
		case 'k':
			t.keep = true
		case 'h', 'L':
			t.follow = true
		case 'P':
			t.absolute = true
		case 'p', 'o', 'a', 'w', 'B', 'S', 'l', 'U', 'n', 'W':
		case 'j', 'J', 'Z':
			return used, fmt.Errorf("unrecognized option: %c", letter)
		default:
			return used, fmt.Errorf("unrecognized option: %c", letter)
		}
	}
	return used, nil
}

func (t *archiver) value(letter byte, value string) error {
	switch letter {
	case 'f':
		t.file = value
	case 'C':
		env := *t.c.Env
		env.Dir = t.dir
		t.dir = env.Path(value)
	case 'T', 'X':
		data, err := t.c.ReadAll(value)
		if err != nil {
			return fmt.Errorf("can't open '%s': %s", value, tool.Reason(err))
		}
		for _, name := range strings.Fields(string(data)) {
			if letter == 'T' {
				t.names = append(t.names, member{name, t.dir})
			} else {
				t.exclude = append(t.exclude, name)
			}
		}
	}
	return nil
}

func (t *archiver) long(text string, rest []string) (used int, err error) {
	name, value, given := strings.Cut(text, "=")
	letter := map[string]byte{"file": 'f', "directory": 'C', "files-from": 'T', "exclude-from": 'X'}[name]
	if letter != 0 || name == "exclude" || name == "strip-components" || name == "transform" {
		if !given {
			if len(rest) == 0 {
				return 0, fmt.Errorf("option requires an argument: %s", name)
			}
			value, used = rest[0], 1
		}
		switch {
		case letter != 0:
			return used, t.value(letter, value)
		case name == "exclude":
			t.exclude = append(t.exclude, value)
		case name == "strip-components":
			if t.strip, err = strconv.Atoi(value); err != nil {
				return used, fmt.Errorf("invalid number '%s'", value)
			}
		}
		return used, nil
	}
	switch name {
	case "create", "extract", "get", "list":
		t.mode = map[string]byte{"create": 'c', "extract": 'x', "get": 'x', "list": 't'}[name]
	case "gzip", "gunzip":
		t.gzip = true
	case "verbose":
		t.verbose = true
	case "to-stdout":
		t.toStdout = true
	case "touch":
		t.noTime = true
	case "keep-old-files":
		t.keep = true
	case "dereference":
		t.follow = true
	case "absolute-names":
		t.absolute = true
	case "same-owner":
		t.sameOwner = true
	case "no-same-owner", "no-same-permissions", "same-permissions", "preserve-permissions", "overwrite",
		"numeric-owner",
		"no-recursion", "sparse", "warning", "wildcards", "anchored", "no-anchored", "auto-compress", "totals",
		"owner", "group", "sort", "mtime", "no-overwrite-dir":
	default:
		return 0, fmt.Errorf("unrecognized option: %s", name)
	}
	return 0, nil
}

// excluded reports whether a name matches one of the patterns, as a whole or in its last elements.
func (t *archiver) excluded(name string) bool {
	for _, pattern := range t.exclude {
		pattern = strings.TrimSuffix(pattern, "/")
		for rest := strings.TrimSuffix(name, "/"); ; {
			if tool.Glob(pattern, rest, false) {
				return true
			}
			i := strings.IndexByte(rest, '/')
			if i < 0 {
				break
			}
			rest = rest[i+1:]
		}
	}
	return false
}

// output opens the archive for writing. done must be called in the end.
func (t *archiver) output() (w io.Writer, done func() error, err error) {
	w, done = t.c.Out, func() error { return nil }
	if t.file != "-" {
		f, err := t.c.Create(t.file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
		if err != nil {
			return nil, nil, t.c.Fail(1, "can't open '%s': %s", t.file, tool.Reason(err))
		}
		w, done = f, f.Close
	}
	if !t.gzip {
		return w, done, nil
	}
	z, finish := gzip.NewWriter(w), done
	return z, func() error { return errors.Join(z.Close(), finish()) }, nil
}

// input opens the archive for reading. A compressed one is recognised.
func (t *archiver) input() (r *tar.Reader, done func() error, err error) {
	f, err := t.c.Open(t.file)
	if err != nil {
		return nil, nil, t.c.Fail(1, "can't open '%s': %s", t.file, tool.Reason(err))
	}
	head := make([]byte, 2)
	n, err := io.ReadFull(f, head)
	if err != nil && n == 0 {
		return nil, nil, t.c.Fail(1, "short read")
	}
	source := io.MultiReader(strings.NewReader(string(head[:n])), f)
	if t.gzip || n == 2 && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(source)
		if err != nil {
			f.Close()
			return nil, nil, t.c.Fail(1, "invalid magic")
		}
		return tar.NewReader(z), f.Close, nil
	}
	return tar.NewReader(source), f.Close, nil
}
