package redis

import (
	"strconv"
	"strings"
	"time"
)

// ttl is answered from the ledger, whose clock runs.
func (c *client) ttl(args []string) []byte {
	c.lookup(args, time.Now())
	e := c.data.entries[name{c.db, args[1]}]
	switch {
	case e == nil:
		return number(-2)
	case e.expires.IsZero():
		return number(-1)
	}
	left := max(time.Until(e.expires), 0)
	if args[0] == "TTL" {
		return number(int64((left + time.Second/2) / time.Second))
	}
	return number(int64((left + time.Millisecond - 1) / time.Millisecond))
}

func (c *client) object(args []string) []byte {
	sub := strings.ToUpper(args[1])
	if len(args) != 3 {
		return unknownSubcommand(args)
	}
	e := c.data.entries[name{c.db, args[2]}]
	if e == nil {
		return []byte("$-1\r\n")
	}
	switch sub {
	case "ENCODING":
		value := ""
		if e.kind == "string" {
			value, _ = c.data.DB(c.db).Get(args[2])
		}
		return text(e.encoding(value))
	case "REFCOUNT":
		return number(1)
	case "IDLETIME":
		return number(int64(time.Since(e.used) / time.Second))
	case "FREQ":
		return fail("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that " +
			"when switching between policies at runtime LRU and LFU data will take some time to adjust.")
	}
	return unknownSubcommand(args)
}

// encoding is how a real one would hold the value.
func (e *entry) encoding(value string) string {
	small := e.n <= compact && e.average <= 64
	switch e.kind {
	case "string":
		if _, err := strconv.ParseInt(value, 10, 64); err == nil && len(value) <= 20 {
			return "int"
		}
		if len(value) <= 44 {
			return "embstr"
		}
		return "raw"
	case "list":
		return "quicklist"
	case "hash":
		if small {
			return "ziplist"
		}
		return "hashtable"
	case "zset":
		if small {
			return "ziplist"
		}
		return "skiplist"
	case "set":
		return "hashtable"
	case "stream":
		return "stream"
	}
	return "raw"
}

func (c *client) memoryCommand(args []string) []byte {
	switch sub := strings.ToUpper(args[1]); {
	case sub == "USAGE" && len(args) >= 3:
		e := c.data.entries[name{c.db, args[2]}]
		if e == nil {
			return []byte("$-1\r\n")
		}
		return number(e.bytes)
	case sub == "DOCTOR" && len(args) == 2:
		return text("Sam, I detected no issues in this instance.\n")
	case sub == "PURGE" && len(args) == 2:
		return ok
	case sub == "STATS" && len(args) == 2:
		b := []byte("*10\r\n")
		for _, p := range []struct {
			name string
			n    int64
		}{
			{"peak.allocated", c.stats.peak},
			{"total.allocated", c.memory()},
			{"startup.allocated", baseMemory},
			{"keys.count", int64(len(c.data.entries))},
			{"dataset.bytes", c.data.total},
		} {
			b = append(append(b, text(p.name)...), number(p.n)...)
		}
		return b
	}
	return unknownSubcommand(args)
}
