package memcached

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// command is what a name stands for: how many arguments it takes and what it does.
type command struct {
	min, max int
	do       func(c *conn, args []string) error
}

var commands map[string]command

func init() {
	const any = 1 << 30
	commands = map[string]command{
		"get": {1, any, (*conn).get}, "gets": {1, any, (*conn).get},
		"gat": {1, any, (*conn).get}, "gats": {1, any, (*conn).get},
		"set": {4, 5, (*conn).put}, "add": {4, 5, (*conn).put}, "replace": {4, 5, (*conn).put},
		"append": {4, 5, (*conn).put}, "prepend": {4, 5, (*conn).put}, "cas": {5, 6, (*conn).put},
		"delete": {1, 3, (*conn).delete}, "incr": {2, 3, (*conn).incr}, "decr": {2, 3, (*conn).incr},
		"touch": {2, 3, (*conn).touch}, "flush_all": {0, 2, (*conn).flushAll},
		"stats": {0, any, (*conn).showStats}, "version": {0, any, (*conn).version},
		"verbosity": {1, any, (*conn).verbosity}, "quit": {0, any, (*conn).quit},
		"cache_memlimit": {1, 2, (*conn).memlimit}, "shutdown": {0, any, (*conn).shutdown},
		"lru_crawler": {1, any, (*conn).crawler},
		"mn":          {0, any, (*conn).metaNoop}, "mg": {1, any, (*conn).metaGet}, "ms": {1, any, (*conn).metaSet},
		"md": {1, any, (*conn).metaDelete}, "ma": {1, any, (*conn).metaAdd}, "me": {1, any, (*conn).metaDebug},
	}
}

// execute runs one command. The arguments are with the command's name. An error ends the connection.
func (c *conn) execute(args []string) error {
	if len(args) == 0 {
		c.reply("ERROR")
		return nil
	}
	cmd, ok := commands[args[0]]
	if n := len(args) - 1; !ok || n < cmd.min || n > cmd.max {
		c.reply("ERROR")
		return nil
	}
	return cmd.do(c, args)
}

// noreply tells whether the last argument says so.
func noreply(args []string) bool { return args[len(args)-1] == "noreply" }

// get is get, gets, gat and gats.
func (c *conn) get(args []string) error {
	var exptime *int64
	keys := args[1:]
	if strings.HasPrefix(args[0], "gat") {
		t, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			c.reply(badTime)
			return nil
		}
		if exptime, keys = &t, args[2:]; len(keys) == 0 {
			c.reply("ERROR")
			return nil
		}
	}
	for _, key := range keys {
		if len(key) > maxKey {
			c.reply(badFormat)
			return nil
		}
	}
	for _, key := range keys {
		it, ok := c.store.get(key, exptime)
		if !ok {
			continue
		}
		c.logf(2, ">%d sending key %s", c.id, key)
		fmt.Fprintf(c.out, "VALUE %s %d %d", key, it.flags, len(it.value))
		if strings.HasSuffix(args[0], "s") {
			fmt.Fprintf(c.out, " %d", it.cas)
		}
		c.out.WriteString("\r\n")
		c.out.Write(it.value)
		c.out.WriteString("\r\n")
	}
	c.reply("END")
	return nil
}

// put is the storage commands.
func (c *conn) put(args []string) error {
	c.quiet = noreply(args)
	key := args[1]
	flags, err1 := strconv.ParseUint(args[2], 10, 64)
	exptime, err2 := strconv.ParseInt(args[3], 10, 64)
	length, err3 := strconv.ParseInt(args[4], 10, 64)
	if len(key) > maxKey || err1 != nil || err2 != nil || err3 != nil || length < 0 || length > 1<<31-3 {
		c.reply(badFormat)
		return nil
	}
	var unique uint64
	if args[0] == "cas" {
		var err error
		if unique, err = strconv.ParseUint(args[5], 10, 64); err != nil {
			c.reply(badFormat)
			return nil
		}
	}
	it := &item{key: key, flags: uint32(flags), expires: expiry(exptime, time.Now())}
	value, reason, err := c.value(it, int(length))
	if err != nil {
		return err
	}
	if reason != "" {
		c.reply(reason)
		return nil
	}
	it.value = value
	r, err := c.store.put(args[0], it, unique)
	if err != nil {
		c.reply("SERVER_ERROR " + err.Error())
		return nil
	}
	c.reply(string(r))
	return nil
}

// value reads the data of a storage command, or swallows it and gives a reason.
func (c *conn) value(it *item, length int) (value []byte, reason string, err error) {
	if c.store.tooLarge(it.key, it.flags, length) {
		_, err := io.CopyN(io.Discard, c.in, int64(length)+2)
		return nil, "SERVER_ERROR object too large for cache", err
	}
	data := make([]byte, length+2)
	if _, err := io.ReadFull(c.in, data); err != nil {
		return nil, "", err
	}
	if !bytes.HasSuffix(data, []byte("\r\n")) {
		return nil, badChunk, nil
	}
	return data[:length:length], "", nil
}

func (c *conn) delete(args []string) error {
	if len(args) > 2 {
		zero := args[2] == "0"
		c.quiet = noreply(args)
		if !(len(args) == 3 && (zero || c.quiet) || len(args) == 4 && zero && c.quiet) {
			c.reply(badFormat + ".  Usage: delete <key> [noreply]")
			return nil
		}
	}
	if len(args[1]) > maxKey {
		c.reply(badFormat)
		return nil
	}
	c.reply(string(c.store.remove(args[1], 0)))
	return nil
}

func (c *conn) incr(args []string) error {
	c.quiet = noreply(args)
	if len(args[1]) > maxKey {
		c.reply(badFormat)
		return nil
	}
	delta, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		c.reply("CLIENT_ERROR invalid numeric delta argument")
		return nil
	}
	_, n, r, err := c.store.add(args[1], args[0] == "decr", delta)
	switch {
	case errors.Is(err, errNotNumeric):
		c.reply("CLIENT_ERROR " + err.Error())
	case err != nil:
		c.reply("SERVER_ERROR out of memory in incr")
	case r == notFound:
		c.reply(string(r))
	default:
		c.reply(strconv.FormatUint(n, 10))
	}
	return nil
}

func (c *conn) touch(args []string) error {
	c.quiet = noreply(args)
	if len(args[1]) > maxKey {
		c.reply(badFormat)
		return nil
	}
	exptime, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		c.reply(badTime)
		return nil
	}
	if c.store.setExpiry(args[1], exptime) {
		c.reply("TOUCHED")
	} else {
		c.reply("NOT_FOUND")
	}
	return nil
}

func (c *conn) flushAll(args []string) error {
	c.quiet = noreply(args)
	var exptime int64
	if rest := args[1:]; len(rest) > 0 && !(len(rest) == 1 && c.quiet) {
		var err error
		if exptime, err = strconv.ParseInt(rest[0], 10, 64); err != nil {
			c.reply(badTime)
			return nil
		}
	}
	c.store.flush(exptime)
	c.reply("OK")
	return nil
}

func (c *conn) version([]string) error {
	c.reply("VERSION " + Version)
	return nil
}

func (c *conn) verbosity(args []string) error {
	c.quiet = noreply(args)
	level, err := strconv.ParseUint(args[1], 10, 32)
	if err != nil {
		c.reply(badFormat)
		return nil
	}
	c.verbose.Store(int64(min(level, 2)))
	c.reply("OK")
	return nil
}

func (c *conn) quit([]string) error {
	c.closing = true
	return nil
}

func (c *conn) memlimit(args []string) error {
	c.quiet = noreply(args)
	mb, err := strconv.ParseUint(args[1], 10, 32)
	if err != nil {
		c.reply("ERROR")
		return nil
	}
	if mb < 8 {
		c.reply("MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m")
		return nil
	}
	c.store.setLimit(int64(mb) << 20)
	c.reply("OK")
	return nil
}

func (c *conn) shutdown([]string) error {
	c.reply("ERROR: shutdown not enabled")
	return nil
}

// crawler is the dump of all keys; the rest of lru_crawler is accepted, since it is always on.
func (c *conn) crawler(args []string) error {
	switch {
	case args[1] == "metadump" && len(args) == 3:
		for _, it := range c.store.all() {
			fmt.Fprintf(c.out, "key=%s %s\r\n", it.key, describe(&it, false))
		}
		c.reply("END")
	case args[1] == "enable" || args[1] == "disable" || args[1] == "crawl" && len(args) == 3:
		if args[1] == "crawl" {
			c.store.crawl()
		}
		c.reply("OK")
	default:
		c.reply("ERROR")
	}
	return nil
}

// describe is an item in the words of metadump, or of me, which tells when it was last used as an
// age.
func describe(it *item, age bool) string {
	expires, accessed, fetched := int64(-1), it.accessed.Unix(), "no"
	if !it.expires.IsZero() {
		expires = it.expires.Unix()
		if age {
			expires = int64(time.Until(it.expires) / time.Second)
		}
	}
	if age {
		accessed = int64(time.Since(it.accessed) / time.Second)
	}
	if it.fetched {
		fetched = "yes"
	}
	return fmt.Sprintf("exp=%d la=%d cas=%d fetch=%s cls=%d size=%d", expires, accessed, it.cas, fetched, it.class,
		it.size())
}
