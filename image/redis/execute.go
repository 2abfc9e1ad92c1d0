package redis

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// dispatch lets miniredis execute a command and returns the reply.
func (c *client) dispatch(args []string) []byte {
	c.outMu.Lock()
	c.busy = true
	c.outMu.Unlock()
	c.data.srv.Dispatch(c.peer, args)
	c.peer.Flush()
	c.outMu.Lock()
	defer c.outMu.Unlock()
	c.busy = false
	result := bytes.Clone(c.reply.Bytes())
	c.reply.Reset()
	return result
}

// execute runs one command and sends the reply.
func (c *client) execute(ctx context.Context, args []string) error {
	args[0] = strings.ToUpper(args[0])
	if reply, taken := c.takeTurn(args); !taken {
		return c.answer(reply)
	}
	c.mu.Lock()
	start := time.Now()
	c.expireDue(start)
	c.last, c.command = start, strings.ToLower(args[0])
	c.stats.processed++
	c.feedMonitors(args, start)
	result := c.decide(ctx, args, start)
	size := len(result)
	for _, a := range args {
		size += len(a)
	}
	err := c.meter.Spend(ctx, commandCost+byteCost*time.Duration(size))
	c.finish(args, result, time.Since(start), start)
	c.mu.Unlock()
	c.turn.Unlock()
	if err != nil {
		return err
	}
	return c.answer(result)
}

// answer sends a reply.
func (c *client) answer(result []byte) error {
	if len(result) == 0 {
		return nil
	}
	c.outMu.Lock()
	defer c.outMu.Unlock()
	_, err := c.send(result)
	return err
}

func fail(format string, args ...any) []byte { return fmt.Appendf(nil, "-"+format+"\r\n", args...) }

var ok = []byte("+OK\r\n")

// decide returns the reply to a command.
func (c *client) decide(ctx context.Context, args []string, now time.Time) []byte {
	command := args[0]
	if c.config.values["requirepass"] != "" && !c.authed && command != "AUTH" && command != "HELLO" &&
		command != "QUIT" && command != "RESET" {
		return fail("NOAUTH Authentication required.")
	}
	if a, found := admin[command]; found && !(c.inTx && a.queued) {
		switch {
		case c.inTx && command != "QUIT" && command != "RESET":
			c.aborted = true
			return fail("ERR Command not allowed inside a transaction")
		case len(args) < a.min || a.max > 0 && len(args) > a.max:
			return wrongArity(command)
		}
		return a.do(c, args)
	}
	if !c.data.srv.IsRegisteredCommand(command) || hidden[command] {
		c.aborted = c.inTx
		return unknownCommand(c.command, args[1:])
	}
	if reply := refuse(args); reply != nil {
		c.aborted = c.inTx
		return reply
	}
	if isScripting(command) {
		return c.scripting(ctx, args)
	}
	return c.onData(ctx, args, now)
}

func wrongArity(command string) []byte {
	return fail("ERR wrong number of arguments for '%s' command", strings.ToLower(command))
}

func unknownCommand(command string, args []string) []byte {
	b := fmt.Appendf(nil, "-ERR unknown command `%s`, with args beginning with: ", command)
	for _, a := range args[:min(len(args), 20)] {
		b = fmt.Appendf(b, "`%s`, ", strings.Map(func(r rune) rune {
			if r == '\r' || r == '\n' {
				return ' '
			}
			return r
		}, a[:min(len(a), 128)]))
	}
	return append(b, "\r\n"...)
}

// onData executes a command on the data.
func (c *client) onData(ctx context.Context, args []string, now time.Time) []byte {
	k, writing := writes[args[0]]
	if writing {
		if why := c.misconf(); why != "" {
			return fail("%s", why)
		}
		if !c.evict() && k.grows {
			return fail(errOOM)
		}
	}
	c.lookup(args, now)
	var was *entry
	if len(args) > 2 && (args[0] == "RENAME" || args[0] == "RENAMENX" || args[0] == "COPY") {
		if e := c.data.entries[name{c.db, args[1]}]; e != nil {
			copied := *e
			was = &copied
		}
	}
	var result []byte
	if args[0] == "EXEC" && c.inTx && c.aborted {
		c.inTx, c.queued = false, nil
		c.dispatch([]string{"DISCARD"})
		return fail("EXECABORT Transaction discarded because of previous errors.")
	}
	if blocking(args) && !c.inTx {
		result = c.wait(ctx, args)
		now = time.Now()
	} else {
		result = reword(args, c.dispatch(args))
	}
	switch args[0] {
	case "MULTI":
		if bytes.Equal(result, ok) {
			c.inTx, c.aborted = true, false
		}
		return result
	case "DISCARD":
		c.inTx, c.queued = false, nil
		return result
	case "EXEC":
		c.exec(result, now)
		return result
	case "SUBSCRIBE", "PSUBSCRIBE":
		c.subs = true
	}
	if c.inTx {
		if bytes.Equal(result, []byte("+QUEUED\r\n")) {
			c.queued = append(c.queued, args)
		}
		return result
	}
	if writing && len(result) > 0 && result[0] != failure {
		c.account(c.db, args, now)
		if was != nil {
			c.data.copied(*was, c.db, args[2])
			c.charge()
		}
		c.propagate(c.db, c.repeatable(args, parseReply(result))...)
	}
	return result
}

// repeatable is durable, with expiry as a date.
func (c *client) repeatable(args []string, r reply) [][]string {
	list := durable(args, r)
	if len(list) > 0 && setsExpiry(args) {
		if e := c.data.entries[name{c.db, args[1]}]; e != nil && !e.expires.IsZero() {
			list = append(list, []string{"PEXPIREAT", args[1], strconv.FormatInt(e.expires.UnixMilli(), 10)})
		}
	}
	return list
}

// lookup notes that keys are used.
func (c *client) lookup(args []string, now time.Time) {
	if !lookups[args[0]] || len(args) < 2 {
		return
	}
	keys := args[1:2]
	if args[0] == "MGET" || args[0] == "EXISTS" {
		keys = args[1:]
	}
	for _, key := range keys {
		if e := c.data.entries[name{c.db, key}]; e != nil {
			e.used = now
			c.stats.hits++
		} else {
			c.stats.misses++
		}
	}
}

// exec notes what a transaction has done.
func (c *client) exec(result []byte, now time.Time) {
	queued := c.queued
	c.inTx, c.queued = false, nil
	r := parseReply(result)
	if r.kind != array || r.null {
		return
	}
	var all [][]string
	for i, args := range queued {
		if i >= len(r.items) || r.items[i].kind == failure {
			continue
		}
		if args[0] == "SELECT" {
			c.db, _ = strconv.Atoi(args[1])
		}
		if _, writing := writes[args[0]]; writing {
			c.account(c.db, args, now)
			all = append(all, c.repeatable(args, r.items[i])...)
		}
	}
	c.propagate(c.db, all...)
}
