package system

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var ps = tool.Tool{
	Name: "ps", Raw: true, Args: "[-o COL1,COL2=HEADER] [-T]",
	Help: "Show list of processes\n" +
		"\n" +
		"\t-o COL1,COL2=HEADER\tSelect columns for display\n" +
		"\t-T\t\t\tShow threads",
	Run: func(_ context.Context, c *tool.Call) error {
		v := &psView{c: c, accounts: tool.ReadAccounts(c.Env), now: time.Now()}
		if err := v.options(c.Args); err != nil {
			c.Warn("%v", err)
			return c.Usage()
		}
		v.show()
		return nil
	},
}

// psView is how processes are shown. BusyBox knows one way; what people know from procps, ps aux and
// ps -ef, looks as it does there.
type psView struct {
	c        *tool.Call
	accounts *tool.Accounts
	now      time.Time
	columns  []psColumn
	pids     []string
	user     string
	name     string
	noHeader bool
}

type psColumn struct {
	name, title string
	width       int // negative: to the left
}

// psColumns are the columns ps -o knows, with their widths.
var psColumns = map[string]psColumn{
	"pid": {"pid", "PID", 5}, "ppid": {"ppid", "PPID", 5}, "pgid": {"pgid", "PGID", 5}, "sid": {"sid", "SID", 5},
	"user": {"user", "USER", -8}, "ruser": {"user", "RUSER", -8}, "euser": {"user", "EUSER", -8},
	"uid": {"uid", "UID", 5}, "gid": {"gid", "GID", 5}, "group": {"group", "GROUP", -8},
	"comm": {"comm", "COMMAND", -16}, "ucmd": {"comm", "CMD", -16},
	"args": {"args", "COMMAND", -1}, "cmd": {"args", "CMD", -1}, "command": {"args", "COMMAND", -1},
	"time": {"time", "TIME", 5}, "cputime": {"time", "TIME", 5},
	"etime": {"etime", "ELAPSED", 7}, "etimes": {"etimes", "ELAPSED", 7},
	"stat": {"stat", "STAT", -4}, "state": {"stat", "S", -1}, "s": {"stat", "S", -1},
	"vsz": {"vsz", "VSZ", 6}, "rss": {"rss", "RSS", 6},
	"tty": {"tty", "TT", -6}, "tt": {"tty", "TT", -6}, "nice": {"nice", "NI", 3}, "ni": {"nice", "NI", 3},
	"pcpu": {"pcpu", "%CPU", 4}, "%cpu": {"pcpu", "%CPU", 4}, "pmem": {"pmem", "%MEM", 4}, "%mem": {"pmem", "%MEM", 4},
	"lstart": {"lstart", "STARTED", -24}, "start": {"start", "STARTED", 8},
	"stime": {"start", "STIME", 5}, "start_time": {"start", "START", 5},
}

var (
	busyboxColumns = []psColumn{{"pid", "PID", 5}, {"user", "USER", -8}, {"time", "TIME", 5}, {"args", "COMMAND", -1}}
	auxColumns     = []psColumn{
		{"user", "USER", -8},
		{"pid", "PID", 7},
		{"pcpu", "%CPU", 4},
		{"pmem", "%MEM", 4},
		{"vsz", "VSZ", 6},
		{"rss", "RSS", 5},
		{"tty", "TTY", -8},
		{"stat", "STAT", -4},
		{"start", "START", 5},
		{"time", "TIME", 6},
		{"args", "COMMAND", -1},
	}
	fullColumns = []psColumn{
		{"user", "UID", -8},
		{"pid", "PID", 7},
		{"ppid", "PPID", 7},
		{"c", "C", 2},
		{"start", "STIME", 5},
		{"tty", "TTY", -8},
		{"cputime", "TIME", 8},
		{"args", "CMD", -1},
	}
)

func (v *psView) options(args []string) error {
	v.columns = busyboxColumns
	var custom []psColumn
	for i := 0; i < len(args); i++ {
		arg := args[i]
		value := func(attached string) (string, error) {
			if attached != "" {
				return attached, nil
			}
			if i++; i >= len(args) {
				return "", fmt.Errorf("option requires an argument: %s", strings.TrimLeft(arg, "-"))
			}
			return args[i], nil
		}
		switch {
		case strings.HasPrefix(arg, "-o") || arg == "o" || strings.HasPrefix(arg, "--format"):
			text, err := value(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(arg, "--format"), "-o"), "="))
			if arg == "o" {
				text, err = value("")
			}
			if err != nil {
				return err
			}
			columns, err := parseColumns(text)
			if err != nil {
				return err
			}
			custom = append(custom, columns...)
		case strings.HasPrefix(arg, "-p") || arg == "p" || strings.HasPrefix(arg, "--pid"):
			text, err := value(strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(arg, "--pid"), "-p"), "="))
			if err != nil {
				return err
			}
			v.pids = append(v.pids, strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })...)
		case arg == "-C" || arg == "-u" || arg == "-U":
			text, err := value("")
			if err != nil {
				return err
			}
			if arg == "-C" {
				v.name = text
			} else {
				v.user = text
			}
		case strings.HasPrefix(arg, "--sort"), arg == "--forest", arg == "-T":
		case arg == "--no-headers" || arg == "--no-heading":
			v.noHeader = true
		case strings.Contains(arg, "f") && strings.HasPrefix(arg, "-"):
			v.columns = fullColumns
		case strings.Contains(arg, "u") && !strings.HasPrefix(arg, "--"):
			v.columns = auxColumns
		case strings.Trim(strings.TrimPrefix(arg, "-"), "aAxewljhHTNLFyY0123456789") == "":
		default:
			return fmt.Errorf("unrecognized option: %s", strings.TrimLeft(arg, "-"))
		}
	}
	if custom != nil {
		v.columns = custom
	}
	return nil
}

// parseColumns reads pid,user,args=COMMAND.
func parseColumns(text string) (columns []psColumn, err error) {
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		name, title, renamed := strings.Cut(field, "=")
		col, ok := psColumns[strings.ToLower(name)]
		if !ok {
			return nil, fmt.Errorf("bad -o argument '%s'", name)
		}
		if renamed {
			col.title = title
		}
		columns = append(columns, col)
	}
	return columns, nil
}

func (v *psView) show() {
	var titles []string
	blank := true
	for i, col := range v.columns {
		titles = append(titles, fitted(col.title, col.width, i == len(v.columns)-1))
		blank = blank && col.title == ""
	}
	if !blank && !v.noHeader {
		v.c.Out.Line(strings.TrimRight(strings.Join(titles, " "), " "))
	}
	shown := 0
	for _, p := range v.c.Env.Procs.List() {
		if len(v.pids) > 0 && !slices.Contains(v.pids, strconv.Itoa(p.PID)) ||
			v.user != "" && v.accounts.UserName(p.User.UID) != v.user && strconv.Itoa(p.User.UID) != v.user ||
			v.name != "" && command(p) != v.name {
			continue
		}
		shown++
		var cells []string
		for i, col := range v.columns {
			cells = append(cells, fitted(v.cell(col.name, p), col.width, i == len(v.columns)-1))
		}
		v.c.Out.Line(strings.TrimRight(strings.Join(cells, " "), " "))
	}
	if shown == 0 {
		v.c.SetStatus(1)
	}
}

// fitted brings a text to a column's width; the last column takes what it needs.
func fitted(s string, width int, last bool) string {
	if width < 0 {
		if last {
			return s
		}
		return s + strings.Repeat(" ", max(0, -width-len(s)))
	}
	return strings.Repeat(" ", max(0, width-len(s))) + s
}

func (v *psView) cell(name string, p kit.ProcessInfo) string {
	age := v.now.Sub(p.Started)
	started := p.Started.In(tool.Location(v.c.Env))
	switch name {
	case "pid", "pgid", "sid":
		return strconv.Itoa(p.PID)
	case "ppid":
		return strconv.Itoa(p.Parent)
	case "user":
		return v.accounts.UserName(p.User.UID)
	case "uid":
		return strconv.Itoa(p.User.UID)
	case "gid":
		return strconv.Itoa(p.User.GID)
	case "group":
		return v.accounts.GroupName(p.User.GID)
	case "comm":
		return command(p)
	case "args":
		return arguments(p)
	case "time":
		return fmt.Sprintf("%d:%02d", int(p.CPU.Minutes()), int(p.CPU.Seconds())%60)
	case "cputime":
		return fmt.Sprintf("%02d:%02d:%02d", int(p.CPU.Hours()), int(p.CPU.Minutes())%60, int(p.CPU.Seconds())%60)
	case "etime":
		return elapsed(age)
	case "etimes":
		return strconv.Itoa(int(age.Seconds()))
	case "stat":
		if p.PID == v.c.Env.PID {
			return "R"
		}
		if p.PID == 1 {
			return "Ss"
		}
		return "S"
	case "vsz", "rss":
		return strconv.FormatInt(p.Memory/1024, 10)
	case "tty":
		return "?"
	case "nice", "c":
		return "0"
	case "pcpu":
		if age <= 0 {
			return "0.0"
		}
		return fmt.Sprintf("%.1f", 100*p.CPU.Seconds()/age.Seconds())
	case "pmem":
		total := v.c.Env.Memory.Info().Total
		if total == 0 {
			return "0.0"
		}
		return fmt.Sprintf("%.1f", 100*float64(p.Memory)/float64(total))
	case "lstart":
		return started.Format("Mon Jan _2 15:04:05 2006")
	case "start":
		if age > 24*time.Hour {
			return started.Format("Jan02")
		}
		return started.Format("15:04")
	}
	return ""
}
