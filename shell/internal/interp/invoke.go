package interp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
	"github.com/aiopslab/aiopslab/shell/internal/tty"
)

// Program returns a shell as a program: sh [options] [-c command | file | -s] [argument...].
func Program(cfg Config) kit.Program {
	return func(ctx context.Context, env *kit.Env) error {
		attached, env, detach := tty.Attach(ctx, env)
		defer detach()
		s := newShell(attached, env, cfg)
		inv, err := s.invocation(env.Args[1:])
		if err != nil {
			fmt.Fprintf(env.Stderr, "%s: %v\n", env.Args[0], err)
			return kit.Exit(2)
		}
		if inv.version {
			s.printf("GNU bash, version %s (x86_64-pc-linux-gnu)\n", s.get("BASH_VERSION"))
			return nil
		}
		// A shell that reads commands from a terminal handles Ctrl-C itself.
		if t := tty.Of(env); t != nil && inv.fromInput() {
			s.interactive, s.opts.interactive = true, true
			restore := t.OnInterrupt(func() {})
			defer restore()
			return s.asProcess(ctx, func(ctx context.Context) { s.converse(ctx, t, inv) })
		}
		return s.asProcess(attached, func(ctx context.Context) { s.main(ctx, inv) })
	}
}

// invocation is how a shell was called.
type invocation struct {
	command, stdin, login, version bool
	interactive                    bool
	operands                       []string
}

// fromInput reports whether commands come from standard input.
func (inv *invocation) fromInput() bool {
	return !inv.command && (inv.stdin || len(inv.operands) == 0)
}

// invocation reads the arguments, of which the options take effect at once.
func (s *Shell) invocation(args []string) (*invocation, error) {
	inv := &invocation{login: strings.HasPrefix(s.env.Args[0], "-")}
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		arg := args[0]
		args = args[1:]
		switch arg {
		case "--":
			inv.operands = args
			return inv, inv.check()
		case "--login":
			inv.login = true
			continue
		case "--version":
			inv.version = true
			continue
		case "--norc", "--noprofile", "--posix", "--noediting", "--verbose":
			continue
		case "-O", "+O":
			if len(args) > 0 {
				builtinShopt(s, s.life, []string{map[string]string{"-O": "-s", "+O": "-u"}[arg], args[0]})
				args = args[1:]
			}
			continue
		}
		rest := ""
		for _, letter := range []byte(arg[1:]) {
			switch letter {
			case 'c':
				inv.command = true
			case 's':
				inv.stdin = true
			case 'i':
				inv.interactive = true
			case 'l':
				inv.login = true
			case 'r', 'D':
			default:
				rest += string(letter)
			}
		}
		if rest != "" {
			used, err := s.setOptions(arg[:1]+rest, args)
			if err != nil {
				return nil, err
			}
			args = args[used:]
		}
	}
	if len(args) > 0 && args[0] == "-" {
		args = args[1:]
	}
	inv.operands = args
	return inv, inv.check()
}

func (inv *invocation) check() error {
	if inv.command && len(inv.operands) == 0 {
		return errors.New("-c requires an argument")
	}
	return nil
}

// main runs what the shell was called for.
func (s *Shell) main(ctx context.Context, inv *invocation) {
	s.startup(ctx, inv)
	switch {
	case inv.command:
		s.opts.command = true
		if s.params = inv.operands[1:]; len(s.params) > 0 {
			s.name, s.params = s.params[0], s.params[1:]
		}
		s.evalReader(ctx, strings.NewReader(inv.operands[0]))
	case inv.fromInput():
		s.interactive, s.opts.readStdin = inv.interactive, true
		s.params = inv.operands
		s.evalInput(ctx)
	default:
		s.evalScript(ctx, inv.operands[0], inv.operands[1:])
	}
}

func (s *Shell) evalScript(ctx context.Context, file string, params []string) {
	data, err := s.env.ReadFile(file)
	if err != nil {
		if s.bash {
			fmt.Fprintf(s.fd(2), "%s: %s: %s\n", s.env.Args[0], file, tool.Reason(err))
			s.status = 127
		} else {
			fmt.Fprintf(s.fd(2), "%s: can't open '%s': %s\n", s.env.Args[0], file, tool.Reason(err))
			s.status = 2
		}
		return
	}
	s.name, s.params = file, params
	s.evalReader(ctx, bytes.NewReader(data))
}

// startup reads the files that set a login shell or an interactive one up.
func (s *Shell) startup(ctx context.Context, inv *invocation) {
	var files []string
	home := s.get("HOME")
	if inv.login {
		files = append(files, "/etc/profile", home+"/.profile")
	}
	if s.interactive && s.bash && !inv.login {
		files = append(files, home+"/.bashrc")
	}
	if rc := s.get("ENV"); s.interactive && !s.bash && rc != "" {
		files = append(files, rc)
	}
	for _, file := range files {
		if data, err := s.env.ReadFile(file); err == nil {
			s.evalFile(ctx, bytes.NewReader(data))
		}
	}
	s.status = 0
}

// evalInput runs the commands of standard input line by line, and leaves what follows a command for
// the command to read.
func (s *Shell) evalInput(ctx context.Context) {
	parser := newParser()
	parser.InteractiveSeq(guarded(&lineByLine{ctx: ctx, s: s}))(untilFalse(func(stmts []*syntax.Stmt, err error) bool {
		for i := 0; i < len(stmts) && err == nil; i++ {
			_, err = survey(stmts[i])
		}
		if err != nil {
			s.syntaxError(err)
			return false
		}
		return parser.Incomplete() || s.stmts(ctx, stmts) != flowExit
	}))
}

// lineByLine is standard input as the parser sees it. It keeps the context because an io.Reader is
// given none.
type lineByLine struct {
	ctx  context.Context
	s    *Shell
	open bool // in the middle of a line
}

func (l *lineByLine) Read(p []byte) (int, error) {
	for n := range p {
		b, err := l.s.readByte(l.ctx, 0)
		if err != nil {
			if n > 0 {
				return n, nil
			}
			if l.open { // The parser waits for the end of a line, and a last one may have none.
				l.open, p[0] = false, '\n'
				return 1, nil
			}
			return 0, io.EOF
		}
		p[n] = b
		if l.open = b != '\n'; !l.open {
			return n + 1, nil
		}
	}
	return len(p), nil
}
