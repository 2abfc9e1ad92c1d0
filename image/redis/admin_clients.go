package redis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (c *client) clientCommand(args []string) []byte {
	switch sub := strings.ToUpper(args[1]); {
	case sub == "LIST":
		var b strings.Builder
		for _, x := range c.sorted() {
			b.WriteString(x.describe() + "\n")
		}
		return text(b.String())
	case sub == "INFO" && len(args) == 2:
		return text(c.describe() + "\n")
	case sub == "ID" && len(args) == 2:
		return number(c.id)
	case sub == "GETNAME" && len(args) == 2:
		if c.name == "" {
			return []byte("$-1\r\n")
		}
		return text(c.name)
	case sub == "SETNAME" && len(args) == 3:
		if strings.ContainsFunc(args[2], func(r rune) bool { return r < '!' || r > '~' }) {
			return fail("ERR Client names cannot contain spaces, newlines or special characters.")
		}
		c.name = args[2]
		return ok
	case sub == "NO-EVICT" && len(args) == 3:
		return ok
	case sub == "KILL" && len(args) >= 3:
		return c.kill(args[2:])
	}
	return unknownSubcommand(args)
}

func (c *client) sorted() (list []*client) {
	for x := range c.clients {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b *client) int { return int(a.id - b.id) })
	return list
}

func (c *client) describe() string {
	now := time.Now()
	flags, multi := "N", -1
	switch {
	case c.outbox != nil:
		flags = "O"
	case c.subs:
		flags = "P"
	case c.inTx:
		flags, multi = "x", len(c.queued)
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=%d name=%s age=%d idle=%d flags=%s db=%d sub=0 psub=0 multi=%d "+
		"qbuf=0 qbuf-free=40928 argv-mem=10 obl=0 oll=0 omem=0 tot-mem=%d events=r cmd=%s user=default redir=-1",
		c.id, c.net.RemoteAddr(), c.net.LocalAddr(), 8+c.id%64, c.name, int64(now.Sub(c.since)/time.Second),
		int64(now.Sub(c.last)/time.Second), flags, c.db, multi, clientMemory, c.command)
}

// kill is both forms: an address, or filters.
func (c *client) kill(filters []string) []byte {
	match := func(x *client) bool { return x.net.RemoteAddr().String() == filters[0] }
	if len(filters)%2 == 0 {
		match = func(x *client) bool {
			for i := 0; i < len(filters); i += 2 {
				value := filters[i+1]
				switch strings.ToUpper(filters[i]) {
				case "ID":
					if strconv.FormatInt(x.id, 10) != value {
						return false
					}
				case "ADDR":
					if x.net.RemoteAddr().String() != value {
						return false
					}
				case "SKIPME":
					if strings.EqualFold(value, "yes") && x == c {
						return false
					}
				case "TYPE":
					if (x.subs && !strings.EqualFold(value, "pubsub")) ||
						(!x.subs && !strings.EqualFold(value, "normal")) || x == c {
						return false
					}
				default:
					return false
				}
			}
			return true
		}
	}
	killed := int64(0)
	for x := range c.clients {
		if match(x) {
			killed++
			if x == c {
				c.closing = true
			} else {
				x.net.Close()
			}
		}
	}
	switch {
	case len(filters)%2 == 0:
		return number(killed)
	case killed == 0:
		return fail("ERR No such client")
	}
	return ok
}

func (c *client) monitor([]string) []byte {
	if c.outbox != nil {
		return ok
	}
	c.outMu.Lock()
	c.send(ok) // Before anything that is shown.
	c.outMu.Unlock()
	outbox := make(chan []byte, maxOutbox)
	c.outbox = outbox
	c.monitors[c] = struct{}{}
	c.helpers.Go(func() {
		for line := range outbox {
			c.outMu.Lock()
			c.send(line)
			c.outMu.Unlock()
		}
	})
	return nil
}

// slowEntry is a command that took long.
type slowEntry struct {
	id     int64
	at     time.Time
	took   time.Duration
	args   []string
	client string
	name   string
}

func (c *client) slowlog(args []string) []byte {
	switch strings.ToUpper(args[1]) {
	case "LEN":
		return number(int64(len(c.slow)))
	case "RESET":
		c.slow = nil
		return ok
	case "GET":
		n := 10
		if len(args) == 3 {
			var err error
			if n, err = strconv.Atoi(args[2]); err != nil {
				return fail("ERR value is not an integer or out of range")
			}
		}
		if n < 0 {
			n = len(c.slow)
		}
		list := c.slow[:min(n, len(c.slow))]
		b := fmt.Appendf(nil, "*%d\r\n", len(list))
		for _, e := range list {
			b = append(b, "*6\r\n"...)
			b = append(b, number(e.id)...)
			b = append(b, number(e.at.Unix())...)
			b = append(b, number(e.took.Microseconds())...)
			b = append(b, texts(e.args...)...)
			b = append(b, text(e.client)...)
			b = append(b, text(e.name)...)
		}
		return b
	}
	return unknownSubcommand(args)
}
