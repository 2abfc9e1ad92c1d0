package redis

import (
	"fmt"
	"slices"
	"strings"
)

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
