package interp

import (
	"context"
	"path"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

func builtinCd(s *Shell, _ context.Context, args []string) flow {
	physical := s.opts.physical
	for len(args) > 0 && (args[0] == "-L" || args[0] == "-P" || args[0] == "--") {
		physical = args[0] == "-P" || physical && args[0] == "--"
		args = args[1:]
	}
	target, show := "", false
	switch {
	case len(args) == 0:
		if target = s.get("HOME"); target == "" {
			return s.fail(s.usageStatus(), "cd: HOME not set")
		}
	case len(args) > 1 && s.bash:
		return s.fail(1, "cd: too many arguments")
	case args[0] == "-":
		if target = s.get("OLDPWD"); target == "" {
			return s.fail(s.usageStatus(), "cd: OLDPWD not set")
		}
		show = true
	default:
		target = args[0]
	}
	if err := s.chdir(target, physical); err != nil {
		return s.fail(s.usageStatus(), "cd: %s: %s", s.pick("can't cd to "+target, target), tool.Reason(err))
	}
	if show {
		return s.printf("%s\n", s.dir)
	}
	return flowNext
}

// usageStatus is the status of a builtin that was used wrongly.
func (s *Shell) usageStatus() int {
	if s.bash {
		return 1
	}
	return 2
}

// chdir changes the working directory.
func (s *Shell) chdir(target string, physical bool) error {
	here := s.here()
	dir := here.Path(target)
	if target == "" {
		dir = s.dir
	}
	if physical {
		var err error
		if dir, err = tool.Realpath(here, target, 0); err != nil {
			return err
		}
	}
	fi, err := here.FS.Stat(dir)
	switch {
	case err != nil:
		return err
	case !fi.IsDir():
		return syscall.ENOTDIR
	case !tool.Permitted(fi, here.User, 1):
		return syscall.EACCES
	}
	old := s.dir
	s.dir = dir
	s.set("OLDPWD", old)
	s.set("PWD", dir)
	return nil
}

func builtinPwd(s *Shell, _ context.Context, args []string) flow {
	dir := s.dir
	if len(args) > 0 && args[0] == "-P" {
		if real, err := tool.Realpath(s.here(), dir, 0); err == nil {
			dir = real
		}
	}
	return s.printf("%s\n", dir)
}

func builtinDirs(s *Shell, _ context.Context, args []string) flow {
	if len(args) > 0 && args[0] == "-c" {
		s.dirs = nil
		return flowNext
	}
	list := []string{s.tilde(s.dir)}
	for i := len(s.dirs) - 1; i >= 0; i-- {
		list = append(list, s.tilde(s.dirs[i]))
	}
	return s.printf("%s\n", strings.Join(list, " "))
}

// tilde shortens what is below the home directory.
func (s *Shell) tilde(dir string) string {
	home := s.get("HOME")
	if home == "" || home == "/" {
		return dir
	}
	if dir == home {
		return "~"
	}
	if rest, ok := strings.CutPrefix(dir, path.Clean(home)+"/"); ok {
		return "~/" + rest
	}
	return dir
}

func builtinPushd(s *Shell, ctx context.Context, args []string) flow {
	old := s.dir
	if len(args) == 0 {
		if len(s.dirs) == 0 {
			return s.fail(1, "pushd: no other directory")
		}
		args = []string{s.dirs[len(s.dirs)-1]}
		s.dirs = s.dirs[:len(s.dirs)-1]
	}
	if err := s.chdir(args[0], false); err != nil {
		return s.fail(1, "pushd: %s: %s", args[0], tool.Reason(err))
	}
	s.dirs = append(s.dirs, old)
	return builtinDirs(s, ctx, nil)
}

func builtinPopd(s *Shell, ctx context.Context, _ []string) flow {
	if len(s.dirs) == 0 {
		return s.fail(1, "popd: directory stack empty")
	}
	target := s.dirs[len(s.dirs)-1]
	s.dirs = s.dirs[:len(s.dirs)-1]
	if err := s.chdir(target, false); err != nil {
		return s.fail(1, "popd: %s: %s", target, tool.Reason(err))
	}
	return builtinDirs(s, ctx, nil)
}
