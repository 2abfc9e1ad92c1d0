package memcached

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// meta is the arguments of a meta command: a key, and flags of one letter that may have a value.
type meta struct {
	key    string
	binary bool // the key is in base64
	flags  []string
}

// parseMeta reads a key and flags, of which only the allowed ones may be there.
func parseMeta(key string, flags []string, allowed string) (*meta, string) {
	m := &meta{key: key, flags: flags}
	if len(key) > maxKey {
		return nil, badFormat
	}
	for i, f := range flags {
		if slices.ContainsFunc(flags[:i], func(g string) bool { return f[0] == g[0] }) {
			return nil, "CLIENT_ERROR duplicate flag"
		}
		if !strings.Contains(allowed, f[:1]) {
			return nil, "CLIENT_ERROR invalid flag"
		}
		if f[0] == 'b' {
			m.binary = true
		}
	}
	if m.binary {
		raw, err := base64.StdEncoding.DecodeString(key)
		if err != nil || len(raw) == 0 {
			return nil, "CLIENT_ERROR error decoding key"
		}
		m.key = string(raw)
	}
	return m, ""
}

// value returns the value of a flag.
func (m *meta) value(flag byte) (string, bool) {
	for _, f := range m.flags {
		if f[0] == flag {
			return f[1:], true
		}
	}
	return "", false
}

func (m *meta) has(flag byte) bool {
	_, ok := m.value(flag)
	return ok
}

var errBadToken = errors.New("bad token in command line format")

// numbers reads flags that are numbers. Those that are not there stay as they are.
func (m *meta) numbers(flags string, into ...*int64) error {
	for i, p := range into {
		v, ok := m.value(flags[i])
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return errBadToken
		}
		*p = n
	}
	return nil
}

// echo is the flags that are returned as they were given.
func (m *meta) echo(code string) string {
	var b strings.Builder
	b.WriteString(code)
	for _, f := range m.flags {
		if f[0] == 'k' || f[0] == 'O' {
			b.WriteByte(' ')
			b.WriteString(m.one(f, nil, time.Time{}))
		}
	}
	return b.String()
}

// returned is what is told of an item, in the order of the flags.
func (m *meta) returned(code string, it *item, won bool) string {
	var b strings.Builder
	b.WriteString(code)
	now := time.Now()
	for _, f := range m.flags {
		if strings.IndexByte("cfhklOst", f[0]) >= 0 {
			b.WriteByte(' ')
			b.WriteString(m.one(f, it, now))
		}
	}
	if won {
		b.WriteString(" W")
	} else if it.empty {
		b.WriteString(" Z") // Somebody else is filling it.
	}
	return b.String()
}

func (m *meta) one(flag string, it *item, now time.Time) string {
	switch flag[0] {
	case 'k':
		if m.binary {
			return "k" + base64.StdEncoding.EncodeToString([]byte(m.key)) + " b"
		}
		return "k" + m.key
	case 'c':
		return fmt.Sprint("c", it.cas)
	case 'f':
		return fmt.Sprint("f", it.flags)
	case 'h':
		if it.fetched {
			return "h1"
		}
		return "h0"
	case 'l':
		return fmt.Sprint("l", int64(now.Sub(it.accessed)/time.Second))
	case 's':
		return fmt.Sprint("s", len(it.value))
	case 't':
		if it.expires.IsZero() {
			return "t-1"
		}
		return fmt.Sprint("t", int64((it.expires.Sub(now)+time.Second-1)/time.Second))
	}
	return flag // O
}

func (c *conn) metaNoop([]string) error {
	c.reply("MN")
	return nil
}

func (c *conn) metaGet(args []string) error {
	m, reason := parseMeta(args[1], args[2:], "bcfhklOqstvTNE")
	if reason != "" {
		c.reply(reason)
		return nil
	}
	var exptime *int64
	var ttl, vivify int64
	if err := m.numbers("TN", &ttl, &vivify); err != nil {
		c.reply("CLIENT_ERROR " + err.Error())
		return nil
	}
	if m.has('T') {
		exptime = &ttl
	}
	c.stats.cmdMeta.Add(1)
	it, ok := c.store.get(m.key, exptime)
	won := false
	if !ok && m.has('N') {
		fresh := &item{key: m.key, expires: expiry(vivify, time.Now()), empty: true}
		if r, err := c.store.put("add", fresh, 0); err == nil && r == stored {
			it, ok, won = *fresh, true, true
		}
	}
	if !ok {
		if !m.has('q') {
			c.reply("EN")
		}
		return nil
	}
	if !m.has('v') {
		c.reply(m.returned("HD", &it, won))
		return nil
	}
	c.data(m.returned(fmt.Sprintf("VA %d", len(it.value)), &it, won), it.value)
	return nil
}

// data writes a line and a value.
func (c *conn) data(line string, value []byte) {
	c.reply(line)
	c.out.Write(value)
	c.out.WriteString("\r\n")
}

// modes are the values of the flag M of ms.
var modes = map[string]string{
	"E": "add", "e": "add", "ADD": "add", "A": "append", "a": "append", "P": "prepend", "p": "prepend",
	"R": "replace", "r": "replace", "S": "set", "s": "set", "": "set",
}

func (c *conn) metaSet(args []string) error {
	if len(args) < 3 {
		c.reply(badFormat)
		return nil
	}
	length, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil || length < 0 || length > 1<<31-3 {
		c.reply(badFormat)
		return nil
	}
	m, reason := parseMeta(args[1], args[3:], "bcCFIkOqTM")
	var flags, exptime, unique int64
	if reason == "" && m.numbers("TC", &exptime, &unique) != nil {
		reason = "CLIENT_ERROR " + errBadToken.Error()
	}
	if reason == "" && m.numbers("F", &flags) != nil {
		reason = badFormat
	}
	mode := ""
	if reason == "" {
		mode, _ = m.value('M')
		if modes[mode] == "" {
			reason = "CLIENT_ERROR invalid mode for ms M token"
		}
	}
	it := &item{flags: uint32(flags), expires: expiry(exptime, time.Now())}
	if m != nil {
		it.key = m.key
	}
	value, chunk, err := c.value(it, int(length)) // It is read in any case.
	if err != nil {
		return err
	}
	if reason == "" {
		reason = chunk
	}
	if reason != "" {
		c.reply(reason)
		return nil
	}
	it.value = value
	command := modes[mode]
	if m.has('C') {
		command = "cas"
	}
	c.stats.cmdMeta.Add(1)
	r, err := c.store.put(command, it, uint64(unique))
	if err != nil {
		c.reply("SERVER_ERROR " + err.Error())
		return nil
	}
	code := map[result]string{stored: "HD", notStored: "NS", exists: "EX", notFound: "NF"}[r]
	if r == stored && m.has('q') {
		return nil
	}
	if r == stored && m.has('c') {
		c.reply(m.returned(code, it, false))
		return nil
	}
	c.reply(m.echo(code))
	return nil
}

// metaError words what is wrong with md and ma, which are less exact about their flags.
func metaError(reason string) string {
	if reason == "" || strings.HasSuffix(reason, " flag") {
		return "CLIENT_ERROR invalid or duplicate flag"
	}
	return reason
}

func (c *conn) metaDelete(args []string) error {
	m, reason := parseMeta(args[1], args[2:], "bCkOq")
	var unique int64
	if reason != "" || m.numbers("C", &unique) != nil {
		c.reply(metaError(reason))
		return nil
	}
	c.stats.cmdMeta.Add(1)
	switch c.store.remove(m.key, uint64(unique)) {
	case notFound:
		c.reply(m.echo("NF"))
	case exists:
		c.reply(m.echo("EX"))
	default:
		if !m.has('q') {
			c.reply(m.echo("HD"))
		}
	}
	return nil
}

func (c *conn) metaAdd(args []string) error {
	m, reason := parseMeta(args[1], args[2:], "bcDJkMNOqtTv")
	delta, initial, vivify, exptime := int64(1), int64(0), int64(0), int64(0)
	if reason != "" || m.numbers("DJNT", &delta, &initial, &vivify, &exptime) != nil || delta < 0 {
		c.reply(metaError(reason))
		return nil
	}
	mode, _ := m.value('M')
	decr := false
	switch mode {
	case "D", "d", "-", "DECR":
		decr = true
	case "", "I", "i", "+", "INCR":
	default:
		c.reply("CLIENT_ERROR invalid mode for ma M token")
		return nil
	}
	c.stats.cmdMeta.Add(1)
	it, n, r, err := c.store.add(m.key, decr, uint64(delta))
	switch {
	case errors.Is(err, errNotNumeric):
		c.reply("CLIENT_ERROR " + err.Error())
		return nil
	case err != nil:
		c.reply("SERVER_ERROR " + err.Error())
		return nil
	case r == notFound && m.has('N'):
		fresh := &item{key: m.key, expires: expiry(vivify, time.Now()), value: strconv.AppendInt(nil, initial, 10)}
		if _, err := c.store.put("add", fresh, 0); err != nil {
			c.reply("SERVER_ERROR " + err.Error())
			return nil
		}
		it, n = *fresh, uint64(max(initial, 0))
	case r == notFound:
		c.reply(m.echo("NF"))
		return nil
	case m.has('T'):
		c.store.setExpiry(m.key, exptime)
		it.expires = expiry(exptime, time.Now())
	}
	it.value = strconv.AppendUint(nil, n, 10)
	switch {
	case m.has('v'):
		c.data(m.returned(fmt.Sprintf("VA %d", len(it.value)), &it, false), it.value)
	case !m.has('q'):
		c.reply(m.returned("HD", &it, false))
	}
	return nil
}

func (c *conn) metaDebug(args []string) error {
	if len(args[1]) > maxKey {
		c.reply(badFormat)
		return nil
	}
	it, ok := c.store.peek(args[1])
	if !ok {
		c.reply("EN")
		return nil
	}
	c.reply("ME " + args[1] + " " + describe(&it, true))
	return nil
}
