package redis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// adminCommand is a command that the server itself answers.
type adminCommand struct {
	min, max int  // arguments, the name included; 0 is any number
	queued   bool // in a transaction miniredis answers it
	do       func(c *client, args []string) []byte
}

var admin map[string]adminCommand

func init() {
	admin = map[string]adminCommand{
		"AUTH": {2, 3, false, (*client).auth}, "HELLO": {1, 0, false, (*client).hello},
		"QUIT": {1, 0, false, (*client).quit}, "RESET": {1, 1, false, (*client).reset},
		"SELECT": {2, 2, true, (*client).selectDB}, "TTL": {2, 2, true, (*client).ttl},
		"PTTL": {2, 2, true, (*client).ttl}, "INFO": {1, 2, false, (*client).info},
		"CONFIG": {2, 0, false, (*client).configure}, "CLIENT": {2, 0, false, (*client).clientCommand},
		"MONITOR": {1, 1, false, (*client).monitor}, "SLOWLOG": {2, 3, false, (*client).slowlog},
		"COMMAND": {1, 0, false, (*client).commandCommand}, "SAVE": {1, 1, false, (*client).saveCommand},
		"BGSAVE": {1, 2, false, (*client).saveCommand}, "BGREWRITEAOF": {1, 1, false, (*client).rewrite},
		"LASTSAVE": {1, 1, false, (*client).lastSaveCommand}, "SHUTDOWN": {1, 2, false, (*client).shutdownCommand},
		"DEBUG": {2, 0, false, (*client).debug}, "OBJECT": {2, 3, false, (*client).object},
		"MEMORY": {2, 0, false, (*client).memoryCommand}, "ROLE": {1, 1, false, (*client).roleCommand},
		"ACL": {2, 0, false, (*client).acl}, "MODULE": {2, 0, false, (*client).module},
		"WAIT": {3, 3, false, func(*client, []string) []byte { return number(0) }},
	}
}

func number(n int64) []byte { return fmt.Appendf(nil, ":%d\r\n", n) }

func text(s string) []byte { return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(s), s) }

func texts(list ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(list))
	for _, s := range list {
		b = append(b, text(s)...)
	}
	return b
}

func unknownSubcommand(args []string) []byte {
	return fail("ERR Unknown subcommand or wrong number of arguments for '%s'. Try %s HELP.", args[1], args[0])
}

// login checks a password.
func (c *client) login(user, password string) []byte {
	want := c.config.values["requirepass"]
	if user != "default" || want != "" && password != want {
		return fail("WRONGPASS invalid username-password pair or user is disabled.")
	}
	c.authed = true
	return nil
}

func (c *client) auth(args []string) []byte {
	user := "default"
	if len(args) == 3 {
		user = args[1]
	} else if c.config.values["requirepass"] == "" {
		return fail("ERR AUTH <password> called without any password configured for the default user. Are you sure " +
			"your configuration is correct?")
	}
	if problem := c.login(user, args[len(args)-1]); problem != nil {
		return problem
	}
	return ok
}

func (c *client) hello(args []string) []byte {
	version := 2
	if c.peer.Resp3 {
		version = 3
	}
	if len(args) > 1 {
		n, err := strconv.Atoi(args[1])
		if err != nil || n != 2 && n != 3 {
			return fail("NOPROTO unsupported protocol version")
		}
		version = n
		for rest := args[2:]; len(rest) > 0; {
			switch {
			case strings.EqualFold(rest[0], "AUTH") && len(rest) > 2:
				if problem := c.login(rest[1], rest[2]); problem != nil {
					return problem
				}
				rest = rest[3:]
			case strings.EqualFold(rest[0], "SETNAME") && len(rest) > 1:
				c.name = rest[1]
				rest = rest[2:]
			default:
				return fail("ERR Syntax error in HELLO option '%s'", rest[0])
			}
		}
	}
	if c.config.values["requirepass"] != "" && !c.authed {
		return fail("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH " +
			"<user> <pass> option can be used to authenticate the client and select the RESP protocol version " +
			"at the same time")
	}
	c.peer.Resp3 = version == 3
	b := []byte("*14\r\n")
	if version == 3 {
		b = []byte("%7\r\n")
	}
	for _, pair := range [][2]string{{"server", "redis"}, {"version", Version}} {
		b = append(append(b, text(pair[0])...), text(pair[1])...)
	}
	b = append(append(b, text("proto")...), number(int64(version))...)
	b = append(append(b, text("id")...), number(c.id)...)
	for _, pair := range [][2]string{{"mode", "standalone"}, {"role", "master"}} {
		b = append(append(b, text(pair[0])...), text(pair[1])...)
	}
	return append(append(b, text("modules")...), "*0\r\n"...)
}

func (c *client) quit([]string) []byte {
	c.closing = true
	return ok
}

func (c *client) reset([]string) []byte {
	for _, command := range []string{"DISCARD", "UNSUBSCRIBE", "PUNSUBSCRIBE", "UNWATCH"} {
		c.dispatch([]string{command})
	}
	c.dispatch([]string{"SELECT", "0"})
	c.inTx, c.queued, c.db, c.authed, c.name = false, nil, 0, false, ""
	c.peer.Resp3 = false
	return []byte("+RESET\r\n")
}

func (c *client) selectDB(args []string) []byte {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return fail("ERR invalid DB index")
	}
	if n < 0 || int64(n) >= c.config.int("databases") {
		return fail("ERR DB index is out of range")
	}
	c.db = n
	return c.dispatch(args)
}

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

func (c *client) configure(args []string) []byte {
	switch sub := strings.ToUpper(args[1]); {
	case sub == "GET" && len(args) == 3:
		var list []string
		for _, n := range c.config.match(args[2]) {
			list = append(list, n, c.config.values[n])
		}
		return texts(list...)
	case sub == "SET" && len(args) == 4:
		return c.configSet(strings.ToLower(args[2]), args[3])
	case sub == "RESETSTAT" && len(args) == 2:
		c.stats.reset()
		return ok
	case sub == "REWRITE" && len(args) == 2:
		if c.config.file == "" {
			return fail("ERR The server is running without a config file")
		}
		if err := c.env.WriteFile(c.config.file, []byte(c.config.text()), 0o644); err != nil {
			return fail("ERR Rewriting config file: %s", errnoText(err))
		}
		return ok
	}
	return unknownSubcommand(args)
}

func (c *client) configSet(parameter, value string) []byte {
	if _, known := defaults[parameter]; !known || slices.Contains(fixed, parameter) {
		return fail("ERR Unsupported CONFIG parameter: %s", parameter)
	}
	old := c.config.values[parameter]
	if parameter == "dir" {
		value = c.env.Path(value)
		if fi, err := c.env.FS.Stat(value); err != nil || !fi.IsDir() {
			return fail("ERR Changing directory: No such file or directory")
		}
	}
	if err := c.config.set(parameter, value); err != nil {
		return fail("ERR Invalid argument '%s' for CONFIG SET '%s' - %v", value, parameter, err)
	}
	switch {
	case parameter == "appendonly" && old == "no" && c.config.bool(parameter):
		if c.openAOF() != nil || c.rewriteAOF() != nil {
			c.config.values[parameter] = old
			return fail("ERR Invalid argument '%s' for CONFIG SET '%s' - Unable to turn on AOF. Check server logs.",
				value, parameter)
		}
	case parameter == "appendonly" && old == "yes" && !c.config.bool(parameter) && c.aof.file != nil:
		c.aof.file.Close()
		c.aof = aof{}
	case parameter == "maxmemory":
		c.evict()
	}
	return ok
}

// text is the configuration as a file.
func (c *config) text() string {
	var b strings.Builder
	for _, n := range c.match("*") {
		if v := c.values[n]; v != defaults[n] || n == "save" {
			if strings.ContainsAny(v, " \"") && n != "save" || v == "" {
				v = quote(v)
			}
			fmt.Fprintf(&b, "%s %s\n", n, v)
		}
	}
	return b.String()
}

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
		c.id, c.net.RemoteAddr(), c.net.LocalAddr(), 7+c.id, c.name, int64(now.Sub(c.since)/time.Second),
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

func (c *client) commandCommand(args []string) []byte {
	if len(args) == 1 {
		return c.dispatch(args)
	}
	if strings.EqualFold(args[1], "COUNT") {
		return number(int64(strings.Count(string(c.dispatch([]string{"COMMAND"})), "*6\r\n")))
	}
	return unknownSubcommand(args)
}

func (c *client) saveCommand(args []string) []byte {
	if err := c.save(args[0] == "BGSAVE"); err != nil && args[0] == "SAVE" {
		return fail("ERR")
	}
	if args[0] == "SAVE" {
		return ok
	}
	return []byte("+Background saving started\r\n")
}

func (c *client) rewrite([]string) []byte {
	c.rewriteAOF()
	return []byte("+Background append only file rewriting started\r\n")
}

func (c *client) lastSaveCommand([]string) []byte { return number(c.lastSave.Unix()) }

func (c *client) shutdownCommand(args []string) []byte {
	if len(args) == 2 {
		switch strings.ToUpper(args[1]) {
		case "NOSAVE":
			c.noSave = true
		case "SAVE":
		default:
			return fail("ERR syntax error")
		}
	}
	c.closing = true
	c.stop()
	return nil
}

// debug is what people try out: a server that is stuck.
func (c *client) debug(args []string) []byte {
	if strings.EqualFold(args[1], "SLEEP") && len(args) == 3 {
		s, err := strconv.ParseFloat(args[2], 64)
		if err != nil {
			return fail("ERR value is not a valid float")
		}
		t := time.NewTimer(time.Duration(s * float64(time.Second)))
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.done:
		}
		return ok
	}
	return unknownSubcommand(args)
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

func (c *client) roleCommand([]string) []byte { return []byte("*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n") }

func (c *client) acl(args []string) []byte {
	switch strings.ToUpper(args[1]) {
	case "WHOAMI":
		return text("default")
	case "USERS":
		return texts("default")
	case "LIST":
		pass := "nopass"
		if c.config.values["requirepass"] != "" {
			pass = "#" + sha256Hex(c.config.values["requirepass"])
		}
		return texts("user default on " + pass + " ~* &* +@all")
	}
	return unknownSubcommand(args)
}

func (c *client) module(args []string) []byte {
	if strings.EqualFold(args[1], "LIST") {
		return []byte("*0\r\n")
	}
	return unknownSubcommand(args)
}
