package redis

import (
	"fmt"
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
	for _, pair := range [][2]string{{"server", c.brand.name}, {"version", c.brand.version}} {
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
