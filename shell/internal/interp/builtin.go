package interp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// builtin is a command that is part of the shell. It finds the status at 0, and sets another one if
// it fails.
type builtin func(s *Shell, ctx context.Context, args []string) flow

// builtins is filled by init, because some of them run commands.
var builtins map[string]builtin

func init() {
	builtins = map[string]builtin{
		":": builtinTrue, "true": builtinTrue, "false": builtinFalse,
		".": builtinSource, "source": builtinSource,
		"alias": builtinAlias, "unalias": builtinUnalias,
		"bg": builtinNoJobControl, "fg": builtinForeground, "jobs": builtinJobs, "wait": builtinWait,
		"kill": builtinKill, "trap": builtinTrap, "disown": builtinDisown,
		"break": builtinBreak, "continue": builtinContinue,
		"return": builtinReturn, "exit": builtinExit, "logout": builtinExit,
		"builtin": builtinBuiltin, "command": builtinCommand, "type": builtinType, "hash": builtinTrue,
		"cd": builtinCd, "pwd": builtinPwd, "pushd": builtinPushd, "popd": builtinPopd, "dirs": builtinDirs,
		"eval": builtinEval, "exec": builtinExec,
		"getopts": builtinGetopts, "read": builtinRead, "mapfile": builtinMapfile, "readarray": builtinMapfile,
		"printf": builtinPrintf,
		"set":    builtinSet, "shift": builtinShift, "unset": builtinUnset, "shopt": builtinShopt,
		"export": declare("export"), "readonly": declare("readonly"), "local": declare("local"),
		"declare": declare("declare"), "typeset": declare("declare"),
		"times": builtinTimes, "ulimit": builtinUlimit, "umask": builtinUmask,
		"help": builtinHelp, "history": builtinTrue, "fc": builtinTrue, "caller": builtinFalse,
		"bind": builtinTrue, "complete": builtinTrue, "compgen": builtinTrue, "enable": builtinTrue,
	}
}

func builtinTrue(*Shell, context.Context, []string) flow { return flowNext }

func builtinFalse(s *Shell, _ context.Context, _ []string) flow {
	s.status = 1
	return flowNext
}

func builtinNoJobControl(s *Shell, _ context.Context, _ []string) flow {
	return s.fail(1, "%s", s.pick("job control not enabled", "no job control"))
}

// number reads the argument of exit, return, break and the like.
func (s *Shell) number(command string, args []string, otherwise int) (int, bool) {
	if len(args) == 0 {
		return otherwise, true
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		s.fail(2, "%s: %s", command, s.pick("Illegal number: "+args[0], args[0]+": numeric argument required"))
		return 0, false
	}
	return n, true
}

func builtinBreak(s *Shell, _ context.Context, args []string) flow {
	return s.leaveLoop("break", args, flowBreak)
}

func builtinContinue(s *Shell, _ context.Context, args []string) flow {
	return s.leaveLoop("continue", args, flowContinue)
}

func (s *Shell) leaveLoop(command string, args []string, fl flow) flow {
	n, ok := s.number(command, args, 1)
	if !ok || n < 1 || s.loops == 0 {
		return flowNext
	}
	s.levels = min(n, s.loops)
	return fl
}

func builtinReturn(s *Shell, _ context.Context, args []string) flow {
	n, ok := s.number("return", args, s.lastStatus)
	if !ok {
		return flowNext
	}
	s.status = n & 0xff
	switch {
	case len(s.calls) > 0 || s.sourcing > 0:
		return flowReturn
	case s.bash:
		return s.fail(2, "return: can only `return' from a function or sourced script")
	}
	return flowExit
}

func builtinExit(s *Shell, _ context.Context, args []string) flow {
	n, ok := s.number("exit", args, s.lastStatus)
	if ok {
		s.status = n & 0xff
	}
	return flowExit
}

func builtinEval(s *Shell, ctx context.Context, args []string) flow {
	s.status = s.lastStatus
	return s.eval(ctx, strings.Join(args, " "))
}

func builtinBuiltin(s *Shell, ctx context.Context, args []string) flow {
	if len(args) == 0 {
		return flowNext
	}
	if builtins[args[0]] == nil && s.programs[args[0]] == nil {
		return s.fail(1, "builtin: %s: not a shell builtin", args[0])
	}
	return s.callCommand(ctx, args)
}

func builtinCommand(s *Shell, ctx context.Context, args []string) flow {
	show := ""
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		switch args[0] {
		case "-v", "-V":
			show = args[0]
		case "-p":
		case "--":
			args = args[1:]
			goto options
		default:
			return s.fail(2, "command: %s", s.pick("Illegal option "+args[0], args[0]+": invalid option"))
		}
		args = args[1:]
	}
options:
	if len(args) == 0 {
		return flowNext
	}
	if show == "" {
		return s.callCommand(ctx, args)
	}
	for _, name := range args {
		what, text := s.whatIs(name)
		switch {
		case what == "":
			s.status = s.notFoundStatus()
			if show == "-V" {
				s.complain("%s: not found", name)
			}
		case show == "-V":
			s.printf("%s is %s\n", name, text)
		case what == "file":
			s.printf("%s\n", text)
		case what == "alias":
			s.printf("alias %s='%s'\n", name, s.aliases[name])
		default:
			s.printf("%s\n", name)
		}
	}
	return flowNext
}

func (s *Shell) notFoundStatus() int {
	if s.bash {
		return 1
	}
	return 127
}

// whatIs says what a name means to the shell: its kind, and what type calls it.
func (s *Shell) whatIs(name string) (kind, text string) {
	switch value, aliased := s.aliases[name]; {
	case aliased:
		return "alias", s.pick("an alias for "+value, fmt.Sprintf("aliased to `%s'", value))
	case syntax.IsKeyword(name):
		return "keyword", "a shell keyword"
	case s.funcs[name] != nil:
		return "function", "a function"
	case builtins[name] != nil, s.programs[name] != nil:
		return "builtin", "a shell builtin"
	}
	if file, ok := tool.LookPath(s.here(), name); ok {
		return "file", file
	}
	return "", ""
}

func builtinType(s *Shell, _ context.Context, args []string) flow {
	mode := ""
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		mode = args[0]
		args = args[1:]
	}
	for _, name := range args {
		kind, text := s.whatIs(name)
		switch {
		case mode == "-p" || mode == "-P":
			if file, ok := tool.LookPath(s.here(), name); ok && (kind == "file" || mode == "-P") {
				s.printf("%s\n", file)
			} else if !ok {
				s.status = 1
			}
		case kind == "":
			s.status = s.notFoundStatus()
			if mode != "-t" {
				if s.bash {
					s.complain("type: %s: not found", name)
				} else {
					s.printf("%s: not found\n", name)
				}
			}
		case mode == "-t":
			s.printf("%s\n", kind)
		default:
			s.printf("%s is %s\n", name, text)
		}
	}
	return flowNext
}

func builtinAlias(s *Shell, _ context.Context, args []string) flow {
	if len(args) == 0 {
		args = slices.Sorted(maps.Keys(s.aliases))
	}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if ok {
			if err := s.holder.Add(entrySize + len(name) + len(value)); err != nil {
				return s.badExpansion(err)
			}
			s.aliases[name] = value
			continue
		}
		value, ok = s.aliases[name]
		if !ok {
			s.fail(1, "alias: %s not found", name)
			continue
		}
		s.printf("%s%s='%s'\n", s.pick("", "alias "), name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return flowNext
}

func builtinUnalias(s *Shell, _ context.Context, args []string) flow {
	for _, name := range args {
		if name == "-a" {
			clear(s.aliases)
		} else if _, ok := s.aliases[name]; !ok {
			s.fail(1, "unalias: %s not found", name)
		} else {
			delete(s.aliases, name)
		}
	}
	return flowNext
}

func builtinTimes(s *Shell, _ context.Context, _ []string) flow {
	used := s.env.CPU.Info().Used
	line := fmt.Sprintf("0m%.3fs 0m0.000s\n", used.Seconds())
	return s.printf("0m0.000s 0m0.000s\n%s", line)
}

func builtinHelp(s *Shell, _ context.Context, _ []string) flow {
	names := slices.Concat(slices.Collect(maps.Keys(builtins)), slices.Collect(maps.Keys(s.programs)))
	slices.Sort(names)
	return s.printf("Built-in commands:\n------------------\n\t%s\n", strings.Join(slices.Compact(names), " "))
}

func builtinUmask(s *Shell, _ context.Context, args []string) flow {
	if len(args) > 0 && args[0] == "-S" {
		perm := 0o777 &^ s.umask
		word := func(bits int) string {
			text := ""
			for i, c := range "rwx" {
				if bits&(4>>i) != 0 {
					text += string(c)
				}
			}
			return text
		}
		return s.printf("u=%s,g=%s,o=%s\n", word(perm>>6), word(perm>>3), word(perm))
	}
	if len(args) == 0 {
		return s.printf("%04o\n", s.umask)
	}
	n, err := strconv.ParseUint(args[0], 8, 9)
	if err != nil {
		return s.fail(1, "umask: %s", s.pick("Illegal mode: "+args[0], args[0]+": octal number out of range"))
	}
	s.umask = int(n)
	return flowNext
}

// limits are what ulimit shows: those of a container that was given none of its own.
var limits = []struct{ flag, name, value string }{
	{"-t", "cpu time (seconds)", "unlimited"},
	{"-f", "file size (blocks)", "unlimited"},
	{"-d", "data seg size (kb)", "unlimited"},
	{"-s", "stack size (kb)", "8192"},
	{"-c", "core file size (blocks)", "unlimited"},
	{"-m", "resident set size (kb)", "unlimited"},
	{"-l", "locked memory (kb)", "8192"},
	{"-p", "processes", "unlimited"},
	{"-n", "file descriptors", "1048576"},
	{"-v", "address space (kb)", "unlimited"},
}

func builtinUlimit(s *Shell, _ context.Context, args []string) flow {
	flag := "-f"
	for _, a := range args {
		switch a {
		case "-H", "-S":
		case "-a":
			for _, l := range limits {
				if fl := s.printf("%s: %-28s %s\n", l.flag, l.name, l.value); fl != flowNext {
					return fl
				}
			}
			return flowNext
		default:
			if !strings.HasPrefix(a, "-") {
				return flowNext // A limit is set. There is nothing to enforce it on.
			}
			flag = "-" + a[len(a)-1:]
		}
	}
	for _, l := range limits {
		if l.flag == flag || flag == "-u" && l.flag == "-p" {
			return s.printf("%s\n", l.value)
		}
	}
	return s.fail(2, "ulimit: Illegal option %s", flag)
}
