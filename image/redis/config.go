package redis

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aiopslab/aiopslab/kit"
)

// defaults are the parameters there are, with the values they have if nothing is said.
var defaults = map[string]string{
	"port": "6379", "bind": "* -::*", "protected-mode": "no", "requirepass": "", "timeout": "0", "tcp-keepalive": "300",
	"tcp-backlog": "511", "maxclients": "10000", "databases": "16", "daemonize": "no", "supervised": "no",
	"pidfile": "", "loglevel": "notice", "logfile": "", "always-show-logo": "no", "dir": "", "dbfilename": "dump.rdb",
	"save": "3600 1 300 100 60 10000", "stop-writes-on-bgsave-error": "yes", "rdbcompression": "yes",
	"rdbchecksum": "yes", "appendonly": "no", "appendfilename": "appendonly.aof", "appendfsync": "everysec",
	"no-appendfsync-on-rewrite": "no", "auto-aof-rewrite-percentage": "100", "auto-aof-rewrite-min-size": "67108864",
	"aof-load-truncated": "yes", "aof-use-rdb-preamble": "no", "maxmemory": "0", "maxmemory-policy": "noeviction",
	"maxmemory-samples": "5", "lazyfree-lazy-eviction": "no", "lazyfree-lazy-expire": "no",
	"slowlog-log-slower-than": "10000", "slowlog-max-len": "128", "latency-monitor-threshold": "0",
	"notify-keyspace-events": "", "hz": "10", "dynamic-hz": "yes", "masterauth": "", "replica-read-only": "yes",
	"io-threads": "1", "lua-time-limit": "5000", "proto-max-bulk-len": "536870912", "activedefrag": "no",
	"client-output-buffer-limit": "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
}

// fixed are those that cannot be changed while the server runs.
var fixed = []string{
	"port", "bind", "databases", "daemonize", "supervised", "pidfile", "logfile", "tcp-backlog",
	"io-threads", "appendfilename",
}

// sizes are those that are bytes and may be written with a unit.
var sizes = []string{"maxmemory", "auto-aof-rewrite-min-size", "proto-max-bulk-len"}

// bools and integers are those of these forms.
var (
	bools = []string{
		"protected-mode", "daemonize", "always-show-logo", "stop-writes-on-bgsave-error", "rdbcompression",
		"rdbchecksum", "appendonly", "no-appendfsync-on-rewrite", "aof-load-truncated", "aof-use-rdb-preamble",
		"lazyfree-lazy-eviction", "lazyfree-lazy-expire", "dynamic-hz", "replica-read-only", "activedefrag",
	}
	integers = []string{
		"port", "timeout", "tcp-keepalive", "tcp-backlog", "maxclients", "databases", "auto-aof-rewrite-percentage",
		"maxmemory-samples", "slowlog-log-slower-than", "slowlog-max-len", "latency-monitor-threshold", "hz",
		"io-threads", "lua-time-limit",
	}
	policies = []string{
		"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru", "allkeys-lfu",
		"allkeys-random", "noeviction",
	}
)

// config is the server's parameters.
type config struct {
	file   string // where it was read from, or ""
	values map[string]string
}

func newConfig() *config {
	c := &config{values: map[string]string{}}
	for k, v := range defaults {
		c.values[k] = v
	}
	return c
}

// errDirective is what redis says of anything it cannot use.
var errDirective error = said("Bad directive or wrong number of arguments")

// set checks and sets a parameter.
func (c *config) set(name, value string) error {
	name = strings.ToLower(name)
	if _, ok := defaults[name]; !ok {
		return errDirective
	}
	switch {
	case slices.Contains(bools, name):
		value = strings.ToLower(value)
		if value != "yes" && value != "no" {
			return errors.New("argument must be 'yes' or 'no'")
		}
	case slices.Contains(integers, name):
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return errors.New("argument couldn't be parsed into an integer")
		}
	case slices.Contains(sizes, name):
		n, err := parseSize(value)
		if err != nil {
			return errors.New("argument must be a memory value")
		}
		value = strconv.FormatInt(n, 10)
	case name == "maxmemory-policy":
		value = strings.ToLower(value)
		if !slices.Contains(policies, value) {
			return fmt.Errorf("argument(s) must be one of the following: %s", strings.Join(policies, ", "))
		}
	case name == "appendfsync":
		value = strings.ToLower(value)
		if !slices.Contains([]string{"everysec", "always", "no"}, value) {
			return errors.New("argument(s) must be one of the following: everysec, always, no")
		}
	case name == "save":
		if f := strings.Fields(value); len(f)%2 != 0 || slices.ContainsFunc(f, func(s string) bool {
			_, err := strconv.ParseUint(s, 10, 32)
			return err != nil
		}) {
			return said("Invalid save parameters")
		}
	}
	c.values[name] = value
	return nil
}

func (c *config) int(name string) int64 {
	n, _ := strconv.ParseInt(c.values[name], 10, 64)
	return n
}

func (c *config) bool(name string) bool { return c.values[name] == "yes" }

// savePoint is how soon to save after how many changes.
type savePoint struct {
	after   time.Duration
	changes int64
}

func (c *config) savePoints() (list []savePoint) {
	f := strings.Fields(c.values["save"])
	for i := 0; i+1 < len(f); i += 2 {
		s, _ := strconv.ParseInt(f[i], 10, 64)
		n, _ := strconv.ParseInt(f[i+1], 10, 64)
		list = append(list, savePoint{time.Duration(s) * time.Second, n})
	}
	return list
}

// parseSize reads a number of bytes such as 100mb.
func parseSize(s string) (int64, error) {
	s = strings.ToLower(s)
	digits := strings.TrimRight(s, "bkmg")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no size", s)
	}
	unit, ok := map[string]int64{
		"": 1, "b": 1, "k": 1000, "kb": 1 << 10, "m": 1e6, "mb": 1 << 20, "g": 1e9,
		"gb": 1 << 30,
	}[s[len(digits):]]
	if !ok || n > (1<<62)/unit {
		return 0, fmt.Errorf("%q is no size", s)
	}
	return n * unit, nil
}

// fatalConfig is the end of a server whose configuration is wrong.
type fatalConfig struct {
	line int
	text string
	err  error
}

func (e *fatalConfig) Error() string {
	return fmt.Sprintf("\n*** FATAL CONFIG FILE ERROR (Redis %s) ***\nReading the configuration file, at line %d\n"+
		">>> '%s'\n%v",
		Version, e.line, e.text, e.err)
}

// loadConfig reads the command line: a file, and parameters as options.
func loadConfig(env *kit.Env) (*config, error) {
	c := newConfig()
	c.values["dir"] = env.Dir
	var text strings.Builder
	args := env.Args[1:]
	if len(args) > 0 && !strings.HasPrefix(args[0], "--") {
		c.file = env.Path(args[0])
		data, err := env.ReadFile(c.file)
		if err != nil {
			return nil, saidf("Fatal error, can't open config file '%s': %s", c.file, errnoText(err))
		}
		text.Write(data)
		args = args[1:]
	}
	for len(args) > 0 {
		name := strings.TrimPrefix(args[0], "--")
		text.WriteString("\n" + name)
		args = args[1:]
		for len(args) > 0 && !strings.HasPrefix(args[0], "--") {
			text.WriteString(" " + quote(args[0]))
			args = args[1:]
		}
	}
	return c, c.parse(text.String(), env)
}

func (c *config) parse(text string, env *kit.Env) error {
	saves := []string(nil) // The first save directive replaces the default.
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		fatal := func(err error) error { return &fatalConfig{number, line, err} }
		args, err := splitArgs(line)
		if err != nil {
			return fatal(said("Unbalanced quotes in configuration line"))
		}
		name := strings.ToLower(args[0])
		value := strings.Join(args[1:], " ")
		switch {
		case name == "save" && len(args) == 2 && value == "":
			saves = []string{}
		case name == "save":
			saves = append(saves, value)
			value = strings.Join(saves, " ")
		case name == "dir":
			value = env.Path(value)
			if fi, err := env.FS.Stat(value); err != nil || !fi.IsDir() {
				return fatal(saidf("Can't chdir to '%s': No such file or directory", value))
			}
		case name == "user" || name == "rename-command" || name == "loadmodule" || name == "include" ||
			strings.HasSuffix(name, "-max-listpack-entries"),
			strings.Contains(name, "ziplist"), strings.HasPrefix(name, "active-defrag"),
			strings.HasPrefix(name, "repl"), strings.HasPrefix(name, "cluster"), strings.HasPrefix(name, "lazyfree"),
			strings.HasPrefix(name, "list-"), strings.HasPrefix(name, "set-"), strings.HasPrefix(name, "stream-"),
			strings.HasPrefix(name, "hll-"), strings.HasPrefix(name, "jemalloc"), strings.HasPrefix(name, "oom-"),
			strings.HasPrefix(name, "lfu-"), name == "activerehashing", name == "rdb-save-incremental-fsync",
			name == "aof-rewrite-incremental-fsync", name == "acllog-max-len", name == "disable-thp",
			name == "set-proc-title", name == "proc-title-template", name == "rdb-del-sync-files":
			if len(args) < 2 {
				return fatal(errDirective)
			}
			continue // Of no effect on what can be seen here.
		case len(args) < 2:
			return fatal(errDirective)
		}
		if err := c.set(name, value); err != nil {
			return fatal(err)
		}
	}
	return nil
}

// match returns the names that match a pattern, sorted.
func (c *config) match(pattern string) (names []string) {
	for name := range c.values {
		if ok, _ := path.Match(strings.ToLower(pattern), name); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// quote writes a text as redis does, readable for splitArgs.
func quote(s string) string {
	b := []byte{'"'}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\' || c == '"':
			b = append(b, '\\', c)
		case strings.IndexByte("\n\r\t\a\b", c) >= 0:
			b = append(b, '\\', "nrtab"[strings.IndexByte("\n\r\t\a\b", c)])
		case c < ' ' || c > '~':
			b = fmt.Appendf(b, "\\x%02x", c)
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}
