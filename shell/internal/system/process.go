package system

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/regex"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

// command is the name of a process's program.
func command(p kit.ProcessInfo) string {
	if len(p.Args) == 0 {
		return "?"
	}
	return strings.TrimPrefix(tool.Base(p.Args[0]), "-")
}

func arguments(p kit.ProcessInfo) string { return strings.Join(p.Args, " ") }

var kill = tool.Tool{
	Name: "kill", Raw: true, Args: "[-l] [-SIG] PID...",
	Help: "Send a signal (default: TERM) to given PIDs\n" +
		"\n" +
		"\t-l\tList all signal names and numbers",
	Run: func(_ context.Context, c *tool.Call) error {
		sig, targets, err := signalAndTargets(c.Args)
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		if len(c.Args) > 0 && (c.Args[0] == "-l" || c.Args[0] == "-L") {
			for _, name := range tool.SignalNames() {
				s, _ := tool.ParseSignal(name)
				c.Out.Printf("%2d) %s\n", int(s), name)
			}
			return nil
		}
		if len(targets) == 0 {
			return c.Fail(1, "you need to specify whom to kill")
		}
		for _, target := range targets {
			pid, err := strconv.Atoi(target)
			if err != nil {
				c.Warn("bad pid '%s'", target)
				continue
			}
			if err := c.Env.Procs.Signal(pid, sig); err != nil {
				c.Warn("can't kill pid %d: %s", pid, tool.Reason(err))
			}
		}
		return nil
	},
}

// signalAndTargets reads [-SIG | -s SIG] TARGET...
func signalAndTargets(args []string) (syscall.Signal, []string, error) {
	sig := syscall.SIGTERM
	if len(args) == 0 || args[0] == "-l" || args[0] == "-L" {
		return sig, nil, nil
	}
	var err error
	switch first := args[0]; {
	case first == "-s" && len(args) > 1:
		sig, err = tool.ParseSignal(args[1])
		args = args[2:]
	case first == "--":
		args = args[1:]
	case len(first) > 1 && first[0] == '-':
		sig, err = tool.ParseSignal(strings.TrimPrefix(first[1:], "-signal="))
		args = args[1:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	return sig, args, err
}

var killall = tool.Tool{
	Name: "killall", Raw: true, Args: "[-lq] [-SIG] PROCESS_NAME...",
	Help: "Send a signal (default: TERM) to given processes",
	Run: func(_ context.Context, c *tool.Call) error {
		args, quiet := c.Args, false
		if len(args) > 0 && args[0] == "-q" {
			args, quiet = args[1:], true
		}
		sig, names, err := signalAndTargets(args)
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		if len(names) == 0 {
			return c.Usage()
		}
		for _, name := range names {
			killed := false
			for _, p := range c.Env.Procs.List() {
				if command(p) == name && p.PID != c.Env.PID {
					killed = c.Env.Procs.Signal(p.PID, sig) == nil || killed
				}
			}
			if !killed {
				c.SetStatus(1)
				if !quiet {
					c.Warn("%s: no process killed", name)
				}
			}
		}
		return nil
	},
}

const grepOptions = "f,full x,exact n,newest o,oldest v,inverse l,list-name a,list-full c,count i,ignore-case " +
	"u:,euid U:,uid P:,parent s: e,echo q d:,delimiter signal:"

var pgrep = tool.Tool{
	Name: "pgrep", Options: grepOptions, Args: "[-flanovx] [-P PPID] PATTERN",
	Help: "Display process(es) selected by regex PATTERN\n" +
		"\n" +
		"\t-l\tShow command name too\n" +
		"\t-a\tShow command line too\n" +
		"\t-f\tMatch against entire command line\n" +
		"\t-n\tShow the newest process only\n" +
		"\t-o\tShow the oldest process only\n" +
		"\t-v\tNegate the match\n" +
		"\t-x\tMatch whole name (not substring)\n" +
		"\t-P\tMatch parent process ID",
	UsageCode: 2,
	Run: func(_ context.Context, c *tool.Call) error {
		list, err := selectProcesses(c)
		if err != nil {
			return err
		}
		if c.Opts.Has("c") {
			c.Out.Line(strconv.Itoa(len(list)))
		} else {
			for _, p := range list {
				switch {
				case c.Opts.Has("a") || c.Opts.Has("l") && c.Opts.Has("f"):
					c.Out.Printf("%d %s\n", p.PID, arguments(p))
				case c.Opts.Has("l"):
					c.Out.Printf("%d %s\n", p.PID, command(p))
				default:
					c.Out.Line(strconv.Itoa(p.PID))
				}
			}
		}
		if len(list) == 0 {
			return kit.Exit(1)
		}
		return nil
	},
}

var pkill = tool.Tool{
	Name: "pkill", Raw: true, Args: "[-l|-SIGNAL] [-xfvnoe] [-P PPID] [PATTERN]",
	Help: "Send signal to processes selected by regex PATTERN", UsageCode: 2,
	Run: func(_ context.Context, c *tool.Call) error {
		sig, args := syscall.SIGTERM, []string{}
		for _, a := range c.Args {
			// A signal looks like a cluster of options.
			if s, err := tool.ParseSignal(strings.TrimPrefix(a, "-")); err == nil && len(a) > 1 && a[0] == '-' &&
				a != "-P" {
				sig = s
				continue
			}
			args = append(args, a)
		}
		if err := c.Reparse(grepOptions, args); err != nil {
			return err
		}
		if name := c.Opts.Get("signal", ""); name != "" {
			s, err := tool.ParseSignal(name)
			if err != nil {
				return c.Fail(2, "%v", err)
			}
			sig = s
		}
		list, err := selectProcesses(c)
		if err != nil {
			return err
		}
		for _, p := range list {
			if err := c.Env.Procs.Signal(p.PID, sig); err != nil {
				c.Warn("can't kill pid %d: %s", p.PID, tool.Reason(err))
			} else if c.Opts.Has("e") {
				c.Out.Printf("%s killed (pid %d)\n", command(p), p.PID)
			}
		}
		if len(list) == 0 {
			return kit.Exit(1)
		}
		return nil
	},
}

// selectProcesses finds the processes that pgrep and pkill are about. They never find themselves.
func selectProcesses(c *tool.Call) ([]kit.ProcessInfo, error) {
	if len(c.Args) == 0 && !c.Opts.Has("P") && !c.Opts.Has("u") && !c.Opts.Has("U") {
		return nil, c.Usage()
	}
	expr := ""
	if len(c.Args) > 0 {
		expr = c.Args[0]
	}
	re, err := regex.Compile(expr, regex.Extended, regex.Options{IgnoreCase: c.Opts.Has("i")})
	if err != nil {
		return nil, c.Fail(2, "bad regex '%s': %v", expr, err)
	}
	accounts := tool.ReadAccounts(c.Env)
	var list []kit.ProcessInfo
	for _, p := range c.Env.Procs.List() {
		if p.PID == c.Env.PID {
			continue
		}
		text := command(p)
		if c.Opts.Has("f") {
			text = arguments(p)
		}
		m := re.Find(text)
		ok := m != nil && (!c.Opts.Has("x") || m[0] == 0 && m[1] == len(text))
		for _, name := range append(c.Opts.All("u"), c.Opts.All("U")...) {
			uid, known := accounts.UserByName(name)
			ok = ok && known && uid == p.User.UID
		}
		if parent := c.Opts.Get("P", ""); parent != "" {
			ok = ok && strconv.Itoa(p.Parent) == parent
		}
		if ok != c.Opts.Has("v") {
			list = append(list, p)
		}
	}
	switch {
	case len(list) > 0 && c.Opts.Has("n"):
		list = list[len(list)-1:]
	case len(list) > 0 && c.Opts.Has("o"):
		list = list[:1]
	}
	return list, nil
}

var pidof = tool.Tool{
	Name: "pidof", Options: "s,single-shot o:", Args: "[-s] [-o PID] [NAME]...",
	Help: "List PIDs of all processes with names that match NAMEs",
	Run: func(_ context.Context, c *tool.Call) error {
		var pids []string
		for _, name := range c.Args {
			for _, p := range c.Env.Procs.List() {
				if command(p) == tool.Base(name) && strconv.Itoa(p.PID) != c.Opts.Get("o", "") {
					pids = append(pids, strconv.Itoa(p.PID))
				}
			}
		}
		if len(pids) == 0 {
			return kit.Exit(1)
		}
		if c.Opts.Has("s") {
			pids = pids[:1]
		}
		c.Out.Line(strings.Join(pids, " "))
		return nil
	},
}

// elapsed writes how long a process runs, as ps has it: [[dd-]hh:]mm:ss.
func elapsed(d time.Duration) string {
	s := int(d.Seconds())
	days, h, m := s/86400, s/3600%24, s/60%60
	switch {
	case days > 0:
		return fmt.Sprintf("%d-%02d:%02d:%02d", days, h, m, s%60)
	case h > 0:
		return fmt.Sprintf("%02d:%02d:%02d", h, m, s%60)
	}
	return fmt.Sprintf("%02d:%02d", m, s%60)
}
