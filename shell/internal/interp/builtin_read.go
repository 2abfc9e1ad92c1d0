package interp

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// readByte takes one byte, so that what follows is left to other commands. A trap runs while it
// waits.
func (s *Shell) readByte(ctx context.Context, fd int) (byte, error) {
	for {
		waiting, cancel := s.untilTrap(ctx)
		var b [1]byte
		n, err := s.fd(fd).ReadContext(waiting, b[:])
		trapped := errors.Is(context.Cause(waiting), errTrapped)
		cancel()
		switch {
		case n == 1:
			return b[0], nil
		case trapped:
			if s.runTraps(ctx) == flowExit {
				return 0, errExit
			}
		case err != nil:
			return 0, err
		}
	}
}

// errExit says that a trap ended the shell.
var errExit = errors.New("exit")

// readLine reads a line without its newline.
func (s *Shell) readLine(ctx context.Context, fd int) (string, error) {
	var line []byte
	for {
		b, err := s.readByte(ctx, fd)
		if err != nil {
			return string(line), err
		}
		if b == '\n' {
			return string(line), nil
		}
		line = append(line, b)
	}
}

// reading is how read was called.
type reading struct {
	raw, silent, exact bool
	array, prompt      string
	delimiter          byte
	limit              int // characters; 0 is none
	timeout            time.Duration
	fd                 int
	names              []string
}

func (s *Shell) readOptions(args []string) (*reading, error) {
	r := &reading{delimiter: '\n', timeout: -1}
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		cluster := args[0][1:]
		args = args[1:]
		if cluster == "-" {
			break
		}
		for i := 0; i < len(cluster); i++ {
			switch cluster[i] {
			case 'r':
				r.raw = true
				continue
			case 's':
				r.silent = true
				continue
			case 'e':
				continue
			}
			if strings.IndexByte("padnNut", cluster[i]) < 0 {
				return nil, errors.New("illegal option -" + cluster[i:i+1])
			}
			value := cluster[i+1:]
			if value == "" {
				if len(args) == 0 {
					return nil, errors.New("option requires an argument: " + cluster[i:i+1])
				}
				value, args = args[0], args[1:]
			}
			if err := r.option(cluster[i], value); err != nil {
				return nil, err
			}
			break
		}
	}
	for _, name := range args {
		if !syntax.ValidName(name) {
			return nil, errors.New(s.pick(name+": bad variable name", "`"+name+"': not a valid identifier"))
		}
	}
	r.names = args
	return r, nil
}

func (r *reading) option(letter byte, value string) (err error) {
	switch letter {
	case 'p':
		r.prompt = value
	case 'a':
		r.array = value
	case 'd':
		r.delimiter = 0
		if value != "" {
			r.delimiter = value[0]
		}
	case 'n', 'N':
		r.exact = letter == 'N'
		r.limit, err = strconv.Atoi(value)
	case 'u':
		r.fd, err = strconv.Atoi(value)
	case 't':
		r.timeout, err = tool.ParseDuration(value)
	}
	if err != nil {
		return errors.New("bad number: " + value)
	}
	return nil
}

func builtinRead(s *Shell, ctx context.Context, args []string) flow {
	r, err := s.readOptions(args)
	if err != nil {
		return s.fail(2, "read: %v", err)
	}
	if r.prompt != "" && s.fd(r.fd).Terminal() != nil {
		s.note("%s", r.prompt)
	}
	if t := s.fd(r.fd).Terminal(); t != nil && r.silent {
		t.SetEcho(false)
		defer t.SetEcho(true)
	}
	waiting, cancel := ctx, func() {}
	if r.timeout >= 0 {
		waiting, cancel = context.WithTimeout(ctx, r.timeout)
	}
	line, taken, err := s.readInput(waiting, r)
	timedOut := waiting.Err() != nil && ctx.Err() == nil
	cancel()
	if err == errExit {
		return flowExit
	}
	s.storeInput(r, line, taken)
	switch {
	case ctx.Err() != nil:
		s.status = killedStatus(ctx)
		return flowExit
	case timedOut && s.bash:
		s.status = kit.ExitSignal + 14
	case err != nil:
		s.status = 1
	}
	return flowNext
}

// readInput reads up to the delimiter. taken marks the characters that a backslash protects from
// being a separator; the backslash itself is gone.
func (s *Shell) readInput(ctx context.Context, r *reading) (line []rune, taken []bool, err error) {
	escaped := false
	var partial []byte
	for r.limit == 0 || len(line) < r.limit {
		b, err := s.readByte(ctx, r.fd)
		if err != nil {
			return line, taken, err
		}
		if partial = append(partial, b); !utf8.FullRune(partial) {
			continue
		}
		char, _ := utf8.DecodeRune(partial)
		partial = nil
		switch {
		case escaped:
			escaped = false
			if char != '\n' { // A backslash before a newline continues the line.
				line, taken = append(line, char), append(taken, true)
			}
		case char == '\\' && !r.raw:
			escaped = true
		case b == r.delimiter && !r.exact:
			return line, taken, nil
		default:
			line, taken = append(line, char), append(taken, false)
		}
	}
	return line, taken, nil
}

// storeInput puts what was read into variables.
func (s *Shell) storeInput(r *reading, line []rune, taken []bool) {
	ifs := s.get("IFS")
	if !s.vars["IFS"].Set {
		ifs = " \t\n"
	}
	switch {
	case r.array != "":
		s.setVar(r.array, list(splitFields(line, taken, ifs, -1)))
	case len(r.names) == 0:
		s.set("REPLY", string(line))
	case r.exact:
		s.set(r.names[0], string(line))
	default:
		fields := splitFields(line, taken, ifs, len(r.names))
		for i, name := range r.names {
			value := ""
			if i < len(fields) {
				value = fields[i]
			}
			s.set(name, value)
		}
	}
}

func builtinMapfile(s *Shell, ctx context.Context, args []string) flow {
	trim, name, fd, skip, limit := false, "MAPFILE", 0, 0, -1
	delimiter := byte('\n')
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		flag := args[0]
		if args = args[1:]; flag == "-t" {
			trim = true
			continue
		}
		if len(args) == 0 {
			return s.fail(2, "mapfile: %s: option requires an argument", flag)
		}
		n, err := strconv.Atoi(args[0])
		switch flag {
		case "-d":
			delimiter, err = 0, nil
			if args[0] != "" {
				delimiter = args[0][0]
			}
		case "-u":
			fd = n
		case "-n":
			limit = n
		case "-s":
			skip = n
		default:
			return s.fail(2, "mapfile: %s: invalid option", flag)
		}
		if err != nil {
			return s.fail(1, "mapfile: %s: invalid number", args[0])
		}
		args = args[1:]
	}
	if len(args) > 0 {
		name = args[0]
	}
	lines := []string{}
	for limit != 0 {
		line, err := s.readInputUntil(ctx, fd, delimiter)
		if line != "" || err == nil {
			if err == nil && !trim {
				line += string(delimiter)
			}
			if skip--; skip < 0 {
				lines = append(lines, line)
				limit--
			}
		}
		if err != nil {
			if err != io.EOF && ctx.Err() != nil {
				return flowExit
			}
			break
		}
	}
	if err := s.setVar(name, list(lines)); err != nil {
		return s.fail(1, "mapfile: %v", err)
	}
	return flowNext
}

func (s *Shell) readInputUntil(ctx context.Context, fd int, delimiter byte) (string, error) {
	var line []byte
	for {
		b, err := s.readByte(ctx, fd)
		if err != nil || b == delimiter {
			return string(line), err
		}
		line = append(line, b)
	}
}
