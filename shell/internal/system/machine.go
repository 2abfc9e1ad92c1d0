package system

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
	"github.com/aiopslab/aiopslab/shell/internal/tty"
)

var top = tool.Tool{
	Name: "top", Options: "b n: d: H m p: c i s S o: u: w::", Args: "[-b] [-n COUNT] [-d SECONDS]",
	Help: "Show a view of process activity in real time.\n" +
		"\n" +
		"\t-b\tBatch mode: no screen\n" +
		"\t-n N\tExit after N iterations\n" +
		"\t-d SEC\tDelay between updates",
	Run: func(ctx context.Context, c *tool.Call) error {
		if tty.IsTerminal(c.Env.Stdout) && !c.Opts.Has("b") {
			return c.Fail(1, "no screen to draw on; use 'top -b -n1'")
		}
		rounds := -1
		if text := c.Opts.Get("n", ""); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				return c.Fail(1, "invalid number '%s'", text)
			}
			rounds = n
		}
		delay, err := tool.ParseDuration(c.Opts.Get("d", "5"))
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		for i := 0; rounds < 0 || i < rounds; i++ {
			if i > 0 {
				c.Sleep(ctx, max(delay, 100*time.Millisecond))
			}
			topRound(ctx, c)
		}
		return nil
	},
}

// topSample is how long top looks at the processor to tell how busy it is.
const topSample = 100 * time.Millisecond

func topRound(ctx context.Context, c *tool.Call) {
	before, start := map[int]time.Duration{}, time.Now()
	for _, p := range c.Env.Procs.List() {
		before[p.PID] = p.CPU
	}
	c.Sleep(ctx, topSample)
	list := c.Env.Procs.List()
	period, cores := max(time.Since(start).Seconds(), 1e-3), float64(max(c.Env.CPU.Info().Cores, 1))
	busyWith := func(p kit.ProcessInfo) float64 { return max(0, (p.CPU-before[p.PID]).Seconds()) / period }
	busy := 0.0
	for _, p := range list {
		busy += busyWith(p)
	}
	share := 100 * busy / cores
	memory := c.Env.Memory.Info()
	left := max(0, memory.Total-memory.Used)
	c.Out.Printf("Mem: %dK used, %dK free, 0K shrd, 0K buff, 0K cached\n", memory.Used/1024, left/1024)
	c.Out.Printf("CPU: %3.0f%% usr   0%% sys   0%% nic %3.0f%% idle   0%% io   0%% irq   0%% sirq\n",
		share, max(0, 100-share))
	c.Out.Printf("Load average: %.2f %.2f %.2f 1/%d %d\n", busy, busy, busy, len(list), c.Env.PID)
	c.Out.Line("  PID  PPID USER     STAT   VSZ %VSZ CPU %CPU COMMAND")
	v := &psView{c: c, accounts: tool.ReadAccounts(c.Env), now: time.Now()}
	for _, p := range list {
		percent := 0.0
		if memory.Total > 0 {
			percent = 100 * float64(p.Memory) / float64(memory.Total)
		}
		c.Out.Printf("%5d %5d %-8s %-4s %5s %3.0f%% %3d %3.0f%% %s\n",
			p.PID, p.Parent, v.cell("user", p), v.cell("stat", p), v.cell("vsz", p), percent, 0, 100*busyWith(p)/cores,
			arguments(p))
	}
}

var free = tool.Tool{
	Name: "free", Options: "b,bytes k,kibi m,mebi g,gibi h,human t s: c: w", Args: "[-bkmgh]",
	Help: "Display free and used memory",
	Run: func(_ context.Context, c *tool.Call) error {
		info := c.Env.Memory.Info()
		unit := map[string]int64{"b": 1, "m": 1 << 20, "g": 1 << 30}[c.Opts.Last("b", "k", "m", "g")]
		if unit == 0 {
			unit = 1024
		}
		show := func(n int64) string {
			if c.Opts.Has("h") {
				return tool.HumanSize(n)
			}
			return strconv.FormatInt(n/unit, 10)
		}
		left := max(0, info.Total-info.Used)
		const row = "%-5s%13s%12s%12s%12s%12s%12s\n"
		c.Out.Printf(row, "", "total", "used", "free", "shared", "buff/cache", "available")
		c.Out.Printf(row, "Mem:", show(info.Total), show(info.Used), show(left), show(0), show(0), show(left))
		c.Out.Printf("%-5s%13s%12s%12s\n", "Swap:", show(0), show(0), show(0))
		return nil
	},
}

var uptime = tool.Tool{
	Name: "uptime", Options: "p,pretty s,since", Args: "", Help: "Display the time since the last boot",
	Run: func(_ context.Context, c *tool.Call) error {
		now := time.Now()
		boot := now
		for _, p := range c.Env.Procs.List() {
			if p.Started.Before(boot) && !p.Started.IsZero() {
				boot = p.Started
			}
		}
		location := tool.Location(c.Env)
		if c.Opts.Has("s") {
			c.Out.Line(boot.In(location).Format("2006-01-02 15:04:05"))
			return nil
		}
		up := now.Sub(boot)
		minutes := int(up.Minutes())
		var parts []string
		if days := minutes / 1440; days > 0 {
			parts = append(parts, fmt.Sprintf("%d day%s", days, map[bool]string{true: "s"}[days > 1]))
		}
		if minutes%1440 >= 60 {
			parts = append(parts, fmt.Sprintf("%2d:%02d", minutes%1440/60, minutes%60))
		} else {
			parts = append(parts, fmt.Sprintf("%d min", minutes%60))
		}
		c.Out.Printf(" %s up %s,  0 users,  load average: 0.00, 0.00, 0.00\n",
			now.In(location).Format("15:04:05"), strings.Join(parts, ", "))
		return nil
	},
}

var nproc = tool.Tool{
	Name: "nproc", Options: "all ignore:", Args: "[--all] [--ignore=N]", Help: "Print number of available CPUs",
	Run: func(_ context.Context, c *tool.Call) error {
		ignore, _ := strconv.Atoi(c.Opts.Get("ignore", "0"))
		c.Out.Line(strconv.Itoa(max(1, c.Env.CPU.Info().Cores-ignore)))
		return nil
	},
}

// What the kernel of every container calls itself.
const (
	kernelRelease = "6.8.0-generic"
	kernelVersion = "#1 SMP PREEMPT_DYNAMIC"
	machine       = "x86_64"
)

var uname = tool.Tool{
	Name: "uname",
	Options: "a,all s,kernel-name n,nodename r,kernel-release v,kernel-version m,machine p,processor " +
		"i,hardware-platform o,operating-system",
	Args: "[-amnrspvio]", Help: "Print system information",
	Run: func(_ context.Context, c *tool.Call) error {
		var words []string
		for _, part := range []struct{ flag, value string }{
			{"s", "Linux"},
			{"n", c.Env.Hostname},
			{"r", kernelRelease},
			{"v", kernelVersion},
			{"m", machine},
			{"o", "GNU/Linux"},
		} {
			if c.Opts.Has("a") || c.Opts.Has(part.flag) || len(c.Opts.InOrder()) == 0 && part.flag == "s" {
				words = append(words, part.value)
			}
		}
		if (c.Opts.Has("p") || c.Opts.Has("i")) && !c.Opts.Has("a") {
			words = append(words, "unknown")
		}
		c.Out.Line(strings.Join(words, " "))
		return nil
	},
}

var arch = tool.Tool{
	Name: "arch", Args: "", Help: "Print system architecture",
	Run: func(_ context.Context, c *tool.Call) error { c.Out.Line(machine); return nil },
}

var hostname = tool.Tool{
	Name:    "hostname",
	Options: "s,short f,fqdn,long i,ip-address I,all-ip-addresses d,domain F:",
	Args:    "[-sidf] [HOSTNAME | -F FILE]",
	Help: "Show or set hostname or DNS domain name\n" +
		"\n" +
		"\t-s\tShort\n" +
		"\t-i\tAddresses for the hostname\n" +
		"\t-d\tDNS domain name\n" +
		"\t-f\tFully qualified domain name",
	Run: func(_ context.Context, c *tool.Call) error {
		short, domain, _ := strings.Cut(c.Env.Hostname, ".")
		switch {
		case len(c.Args) > 0 || c.Opts.Has("F"):
			return c.Fail(1, "sethostname: Operation not permitted")
		case c.Opts.Has("i") || c.Opts.Has("I"):
			var ips []string
			for _, ip := range c.Env.Net.Addrs() {
				ips = append(ips, ip.String())
			}
			c.Out.Line(strings.Join(ips, " "))
		case c.Opts.Has("s"):
			c.Out.Line(short)
		case c.Opts.Has("d"):
			c.Out.Line(domain)
		default:
			c.Out.Line(c.Env.Hostname)
		}
		return nil
	},
}

var dmesg = tool.Tool{
	Name: "dmesg", Options: "c r n: s: T H w", Args: "[-cr] [-n LEVEL] [-s SIZE]",
	Help: "Print or control the kernel ring buffer",
	Run: func(_ context.Context, c *tool.Call) error {
		return c.Fail(1, "klogctl: Operation not permitted") // As in any container that is not privileged.
	},
}

var clear = tool.Tool{
	Name: "clear", Args: "", Help: "Clear screen",
	Run: func(_ context.Context, c *tool.Call) error { c.Out.WriteString("\x1b[H\x1b[J"); return nil },
}

var vi = tool.Tool{
	Name: "vi", Raw: true, Args: "[FILE]...",
	Run: func(_ context.Context, c *tool.Call) error {
		return c.Fail(1, "there is no full-screen editor here; use sed -i 's/old/new/' FILE, or cat >FILE <<'EOF'")
	},
}

var ttyTool = tool.Tool{
	Name: "tty", Options: "s", Args: "", Help: "Print file name of stdin's terminal",
	Run: func(_ context.Context, c *tool.Call) error {
		if !tty.IsTerminal(c.Env.Stdin) {
			if !c.Opts.Has("s") {
				c.Out.Line("not a tty")
			}
			c.SetStatus(1)
			return nil
		}
		c.Out.Line("/dev/pts/0")
		return nil
	},
}

var stty = tool.Tool{
	Name: "stty", Raw: true, Args: "[-a|g] [-F DEVICE] [SETTING]...", Help: "Print or set terminal line settings",
	Run: func(_ context.Context, c *tool.Call) error {
		t := tty.Of(c.Env)
		if t == nil {
			return c.Fail(1, "standard input: Inappropriate ioctl for device")
		}
		size := t.Size()
		switch {
		case len(c.Args) == 1 && c.Args[0] == "size":
			c.Out.Printf("%d %d\n", size.Height, size.Width)
		case len(c.Args) == 0 || c.Args[0] == "-a":
			c.Out.Printf("speed 38400 baud; rows %d; columns %d;\n", size.Height, size.Width)
		}
		return nil
	},
}
