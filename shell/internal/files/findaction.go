package files

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/shell/internal/stream"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

func (f *finder) print(end string) predicate {
	return func(e *found) (bool, error) {
		f.c.Out.WriteString(e.path + end)
		return true, nil
	}
}

// list is -ls.
func (f *finder) list(e *found) (bool, error) {
	l := &lister{c: f.c, accounts: f.accounts, now: f.now, location: tool.Location(f.c.Env), long: true}
	f.c.Out.Printf("%9d %6d %s\n", tool.Owner(e.info).Inode, blocks(e.info), l.line(listed{e.path, e.path, e.info}))
	return true, nil
}

func (f *finder) remove(e *found) (bool, error) {
	if e.path == "." || e.path == "/" {
		return true, nil
	}
	if err := f.c.Env.FS.Remove(f.c.Env.Path(e.path)); err != nil {
		f.fail("%s: %s", e.path, tool.Reason(err))
		return false, nil
	}
	return true, nil
}

func (f *finder) empty(e *found) (bool, error) {
	if e.info.IsDir() {
		entries, err := f.c.Env.FS.ReadDir(f.c.Env.Path(e.path))
		return err == nil && len(entries) == 0, nil
	}
	return e.info.Mode().IsRegular() && e.info.Size() == 0, nil
}

// maxBatch is how many files one command of -exec + gets.
const maxBatch = 1000

// exec reads -exec COMMAND ; and -exec COMMAND {} +.
func (p *findParser) exec(word string) (predicate, error) {
	p.action = true
	end := slices.IndexFunc(p.args, func(a string) bool { return a == ";" || a == "+" })
	for end > 0 && p.args[end] == "+" && p.args[end-1] != "{}" {
		next := slices.IndexFunc(p.args[end+1:], func(a string) bool { return a == ";" || a == "+" })
		if next < 0 {
			end = -1
			break
		}
		end += 1 + next
	}
	if end < 0 {
		return nil, errors.New(word + " requires an argument")
	}
	command, batch := p.args[:end], p.args[end] == "+"
	p.args = p.args[end+1:]
	if len(command) == 0 {
		return nil, errors.New(word + " requires an argument")
	}
	f := p.f
	run := func(dir string, args []string) bool {
		child := f.c.Env.Child(args...)
		if dir != "" {
			child.Dir = f.c.Env.Path(dir)
		}
		process, err := f.c.Start(p.ctx, child)
		if err != nil {
			f.code = 1
			return false
		}
		return process.Wait() == 0
	}
	if batch {
		var files []string
		flush := func() {
			if len(files) > 0 && !run("", append(slices.Clone(command[:len(command)-1]), files...)) {
				f.code = 1
			}
			files = nil
		}
		f.batches = append(f.batches, flush)
		return func(e *found) (bool, error) {
			if files = append(files, e.path); len(files) >= maxBatch {
				flush()
			}
			return true, nil
		}, nil
	}
	ask := stream.NewLines(f.c.Stdin)
	return func(e *found) (bool, error) {
		name, dir := e.path, ""
		if word == "-execdir" {
			name, dir = "./"+tool.Base(e.path), path.Dir(e.path)
		}
		args := make([]string, len(command))
		for i, a := range command {
			args[i] = strings.ReplaceAll(a, "{}", name)
		}
		if word == "-ok" {
			f.c.Note("%s ?...", strings.Join(args, " "))
			answer, _, _ := ask.Next()
			if !strings.HasPrefix(string(answer), "y") {
				return false, nil
			}
		}
		return run(dir, args), nil
	}, nil
}

// printfAction is GNU's -printf.
func printfAction(p *findParser, _, format string) (predicate, error) {
	p.action = true
	format = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\0`, "\x00", `\\`, `\`).Replace(format)
	return func(e *found) (bool, error) {
		p.f.c.Out.WriteString(p.f.format(e, format))
		return true, nil
	}, nil
}

// maxWidth is the widest that a field of find and stat can be.
const maxWidth = 4096

func (f *finder) format(e *found, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		width, left := 0, false
		for i++; i+1 < len(format) && strings.IndexByte("-0123456789", format[i]) >= 0; i++ {
			if format[i] == '-' {
				left = true
			} else {
				width = min(width*10+int(format[i]-'0'), maxWidth)
			}
		}
		text := f.directive(e, format[i])
		if format[i] == 'T' && i+1 < len(format) {
			i++
			text = f.timeDirective(e, format[i])
		}
		b.WriteString(pad(text, width, !left))
	}
	return b.String()
}

func (f *finder) directive(e *found, d byte) string {
	owner := tool.Owner(e.info)
	switch d {
	case '%':
		return "%"
	case 'p':
		return e.path
	case 'f':
		return tool.Base(e.path)
	case 'h':
		return path.Dir(e.path)
	case 'P':
		return strings.TrimPrefix(strings.TrimPrefix(e.path, e.start), "/")
	case 'H':
		return e.start
	case 's':
		return strconv.FormatInt(sizeOf(e.info), 10)
	case 'k':
		return strconv.FormatInt(blocks(e.info), 10)
	case 'b':
		return strconv.FormatInt(2*blocks(e.info), 10)
	case 'm':
		return strconv.FormatUint(uint64(octalMode(e.info.Mode())), 8)
	case 'M':
		return modeString(e.info.Mode())
	case 'u':
		return f.accounts.UserName(owner.UID)
	case 'g':
		return f.accounts.GroupName(owner.GID)
	case 'U':
		return strconv.Itoa(owner.UID)
	case 'G':
		return strconv.Itoa(owner.GID)
	case 'i':
		return strconv.FormatUint(owner.Inode, 10)
	case 'n':
		return strconv.Itoa(owner.Links)
	case 'd':
		return strconv.Itoa(e.depth)
	case 'y':
		if kind := modeString(e.info.Mode())[:1]; kind != "-" {
			return kind
		}
		return "f"
	case 'l':
		if e.info.Mode()&fs.ModeSymlink != 0 {
			target, _ := f.c.Env.FS.Readlink(f.c.Env.Path(e.path))
			return target
		}
		return ""
	case 't':
		return f.timeDirective(e, 't')
	}
	return ""
}

// timeDirective is what follows %T.
func (f *finder) timeDirective(e *found, d byte) string {
	t := e.info.ModTime().In(tool.Location(f.c.Env))
	switch d {
	case '@':
		return strconv.FormatFloat(float64(t.UnixNano())/1e9, 'f', 10, 64)
	case 't':
		return t.Format("Mon Jan _2 15:04:05.0000000000 2006")
	case '+':
		return t.Format("2006-01-02+15:04:05.0000000000")
	case 'T':
		return t.Format("15:04:05.0000000000")
	case 'S':
		return t.Format("05.0000000000")
	}
	return tool.Strftime(t, "%"+string(d))
}
