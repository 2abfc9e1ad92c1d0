package script

import (
	"context"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var sleep = tool.Tool{
	Name: "sleep", Args: "[N]...",
	Help: "Pause for a time equal to the total of the args given, where each arg can\n" +
		"have an optional suffix of (s)econds, (m)inutes, (h)ours, or (d)ays",
	Run: func(ctx context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			return c.Usage()
		}
		var total time.Duration
		for _, a := range c.Args {
			d, err := tool.ParseDuration(a)
			if err != nil {
				return c.Fail(1, "%v", err)
			}
			if total += d; total < 0 {
				total = 1<<63 - 1
			}
		}
		c.Sleep(ctx, total)
		return nil
	},
}

var usleep = tool.Tool{
	Name: "usleep", Args: "N", Help: "Pause for N microseconds",
	Run: func(ctx context.Context, c *tool.Call) error {
		if len(c.Args) != 1 {
			return c.Usage()
		}
		n, err := strconv.ParseUint(c.Args[0], 10, 31)
		if err != nil {
			return c.Fail(1, "invalid number '%s'", c.Args[0])
		}
		c.Sleep(ctx, time.Duration(n)*time.Microsecond)
		return nil
	},
}

// exitTimedOut is what timeout returns for a program it had to stop.
const exitTimedOut = 124

var timeout = tool.Tool{
	Name: "timeout", Options: "s:,signal k:,kill-after f,foreground p,preserve-status v,verbose", InOrder: true,
	Args: "[-s SIG] [-k KILL_SECS] SECS PROG ARGS", UsageCode: 125,
	Help: "Run PROG. Send SIG to it if it is not gone in SECS seconds.\n" +
		"Default SIG: TERM.\n" +
		"If it still exists in KILL_SECS seconds, send KILL.",
	Run: func(ctx context.Context, c *tool.Call) error {
		if len(c.Args) < 2 {
			return c.Usage()
		}
		limit, err := tool.ParseDuration(c.Args[0])
		if err != nil {
			return c.Fail(125, "%v", err)
		}
		sig, err := tool.ParseSignal(c.Opts.Get("s", "TERM"))
		if err != nil {
			return c.Fail(125, "%v", err)
		}
		grace, err := tool.ParseDuration(c.Opts.Get("k", "0"))
		if err != nil {
			return c.Fail(125, "%v", err)
		}
		return limited(ctx, c, limit, grace, sig)
	},
}

// limited runs the command of timeout.
func limited(ctx context.Context, c *tool.Call, limit, grace time.Duration, sig syscall.Signal) error {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	p, err := c.Start(running, c.Env.Child(c.Args[1:]...))
	if err != nil {
		return err
	}
	// A process table that knows no signals has the context to end a program by.
	send := func(sig syscall.Signal) {
		if c.Env.Procs.Signal(p.PID(), sig) != nil {
			cancel(kit.Killed{Signal: sig})
		}
	}
	done := make(chan int, 1)
	go func() { done <- p.Wait() }()
	var expired, killed <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		expired = t.C
	}
	timedOut := false
	for {
		select {
		case code := <-done:
			if timedOut && !c.Opts.Has("p") {
				if code == kit.ExitSignal+int(syscall.SIGKILL) {
					return kit.Exit(code)
				}
				return kit.Exit(exitTimedOut)
			}
			return kit.Exit(code)
		case <-expired:
			timedOut = true
			send(sig)
			if grace > 0 {
				t := time.NewTimer(grace)
				defer t.Stop()
				killed = t.C
			}
		case <-killed:
			send(syscall.SIGKILL)
		case <-ctx.Done():
			return tool.Killed(ctx)
		}
	}
}

var watch = tool.Tool{
	Name: "watch", Options: "n:,interval t,no-title d,differences x,exec", InOrder: true,
	Args: "[-n SEC] [-t] PROG ARGS",
	Help: "Run PROG periodically\n\n\t-n SEC\tPeriod (default 2)\n\t-t\tDon't print header",
	Run: func(ctx context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			return c.Usage()
		}
		period, err := tool.ParseDuration(c.Opts.Get("n", "2"))
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		command := strings.Join(c.Args, " ")
		for {
			c.Out.WriteString("\x1b[H\x1b[J")
			if !c.Opts.Has("t") {
				now := time.Now().In(tool.Location(c.Env)).Format("2006-01-02 15:04:05")
				head := "Every " + strconv.FormatFloat(period.Seconds(), 'f', 1, 64) + "s: " + command
				c.Out.Printf("%-*s%s\n\n", max(80-len(now), len(head)+1), head, now)
			}
			if _, err := c.Command(ctx, "sh", "-c", command); err != nil {
				return err
			}
			c.Sleep(ctx, max(period, 100*time.Millisecond))
		}
	},
}
