package network

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/tool"
)

var ping = tool.Tool{
	Name: "ping", Options: "4 6 c: s: t: i: w: W: I: q n A v p: f D O", Args: "[OPTIONS] HOST",
	Help: "Send ICMP ECHO_REQUESTs to HOST\n" +
		"\n" +
		"\t-c CNT\t\tSend only CNT pings\n" +
		"\t-s SIZE\t\tSend SIZE data bytes in packets (default 56)\n" +
		"\t-i SECS\t\tInterval\n" +
		"\t-W SEC\t\tSeconds to wait for the first response (default 10)\n" +
		"\t-w SEC\t\tSeconds until ping exits (default:infinite)\n" +
		"\t-q\t\tQuiet, only display output at start/finish",
	Run: func(ctx context.Context, c *tool.Call) error {
		if len(c.Args) != 1 {
			return c.Usage()
		}
		pinger, ok := c.Env.Net.(kit.Pinger)
		if !ok {
			return c.Fail(1, "permission denied (are you root?)")
		}
		p := &pings{c: c, pinger: pinger, host: c.Args[0], count: -1, size: 56}
		if err := p.options(); err != nil {
			return c.Fail(1, "%v", err)
		}
		return p.run(ctx)
	},
}

// pings is a ping under way.
type pings struct {
	c        *tool.Call
	pinger   kit.Pinger
	host     string
	ip       net.IP
	count    int
	size     int
	interval time.Duration
	wait     time.Duration
	deadline time.Duration

	sent, received int
	min, max, sum  time.Duration
}

func (p *pings) options() error {
	for name, to := range map[string]*int{"c": &p.count, "s": &p.size} {
		if text := p.c.Opts.Get(name, ""); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return errors.New("invalid number '" + text + "'")
			}
			*to = n
		}
	}
	for name, to := range map[string]struct {
		d         *time.Duration
		otherwise string
	}{"i": {&p.interval, "1"}, "W": {&p.wait, "1"}, "w": {&p.deadline, "0"}} {
		d, err := tool.ParseDuration(p.c.Opts.Get(name, to.otherwise))
		if err != nil {
			return err
		}
		*to.d = d
	}
	return nil
}

func (p *pings) run(ctx context.Context) error {
	c := p.c
	addrs, err := c.Env.Net.LookupHost(ctx, p.host)
	if err != nil || len(addrs) == 0 {
		tool.Stopped(ctx)
		return c.Fail(1, "bad address '%s'", p.host)
	}
	p.ip = net.ParseIP(addrs[0])
	c.Out.Printf("PING %s (%s): %d data bytes\n", p.host, addrs[0], p.size)
	if p.deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.deadline)
		defer cancel()
	}
	for p.count < 0 || p.sent < p.count {
		if p.sent > 0 && !p.pause(ctx) {
			break
		}
		p.echo(ctx)
		if ctx.Err() != nil {
			break
		}
	}
	tool.Stopped(c.Context())
	p.summary()
	if p.received == 0 {
		return kit.Exit(1)
	}
	return nil
}

// pause waits between two packets. It reports false if the time is up.
func (p *pings) pause(ctx context.Context) bool {
	p.c.Out.Flush()
	t := time.NewTimer(p.interval)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (p *pings) echo(ctx context.Context) {
	wait, cancel := context.WithTimeout(ctx, max(p.wait, time.Millisecond))
	defer cancel()
	p.c.Out.Flush()
	p.sent++
	_, took, err := p.pinger.Ping(wait, p.host)
	if err != nil {
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
			p.c.Note("ping: sendto: %s\n", tool.Reason(err))
		}
		return
	}
	p.received++
	if p.received == 1 || took < p.min {
		p.min = took
	}
	p.max, p.sum = max(p.max, took), p.sum+took
	if !p.c.Opts.Has("q") {
		p.c.Out.Printf("%d bytes from %s: seq=%d ttl=64 time=%s ms\n", p.size+8, p.ip, p.sent-1, milliseconds(took))
	}
}

func milliseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 3, 64)
}

func (p *pings) summary() {
	c := p.c
	c.Out.Printf("\n--- %s ping statistics ---\n", p.host)
	lost := (p.sent - p.received) * 100 / max(p.sent, 1)
	c.Out.Printf("%d packets transmitted, %d packets received, %d%% packet loss\n", p.sent, p.received, lost)
	if p.received > 0 {
		average := p.sum / time.Duration(p.received)
		c.Out.Printf("round-trip min/avg/max = %s/%s/%s ms\n", milliseconds(p.min), milliseconds(average),
			milliseconds(p.max))
	}
}

// traceroute shows the one hop that a flat network has.
var traceroute = tool.Tool{
	Name: "traceroute", Options: "4 6 F I l d n v i: s: m: f: p: q: t: w: z: g:",
	Args: "[-46FIlnrv] [-f 1ST_TTL] [-m MAXTTL] [-q PROBES] [-w WAIT_SEC] HOST [BYTES]",
	Help: "Trace the route to HOST",
	Run: func(ctx context.Context, c *tool.Call) error {
		if len(c.Args) == 0 {
			return c.Usage()
		}
		pinger, ok := c.Env.Net.(kit.Pinger)
		if !ok {
			return c.Fail(1, "socket: Operation not permitted")
		}
		name := c.Args[0]
		addrs, err := c.Env.Net.LookupHost(ctx, name)
		if err != nil || len(addrs) == 0 {
			tool.Stopped(ctx)
			return c.Fail(1, "bad address '%s'", name)
		}
		hops, _ := strconv.Atoi(c.Opts.Get("m", "30"))
		wait, err := tool.ParseDuration(c.Opts.Get("w", "3"))
		if err != nil {
			return c.Fail(1, "%v", err)
		}
		c.Out.Printf("traceroute to %s (%s), %d hops max, 46 byte packets\n", name, addrs[0], hops)
		for hop := 1; hop <= hops; hop++ {
			c.Out.Printf("%2d ", hop)
			reached := false
			for range 3 {
				c.Out.Flush()
				waiting, cancel := context.WithTimeout(ctx, wait)
				_, took, err := pinger.Ping(waiting, addrs[0])
				cancel()
				tool.Stopped(ctx)
				if err != nil {
					c.Out.WriteString(" *")
					continue
				}
				if !reached {
					c.Out.Printf(" %s (%s)", name, addrs[0])
				}
				reached = true
				c.Out.Printf("  %s ms", milliseconds(took))
			}
			c.Out.WriteByte('\n')
			if reached {
				break
			}
		}
		return nil
	},
}
