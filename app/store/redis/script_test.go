package redis

import (
	"strings"
	"testing"
)

// TestScriptsThatAreRefused reach for files of the machine, or nest deeper than the engine has stack.
func TestScriptsThatAreRefused(t *testing.T) {
	for _, script := range []string{
		"return dofile('/etc/passwd')", "return loadfile('/etc/passwd')", "package.path='/etc/?' return require('passwd')",
		"return _G['do' .. 'file']('/etc/passwd')", "return getfenv(1)['do' .. 'file']('/etc/passwd')",
		"return loadstring('return do' .. 'file(1)')()", strings.Repeat("(", 1_000_000), "return " + strings.Repeat("-", 1_000_000) + "1",
	} {
		for _, args := range [][]string{{"EVAL", script, "0"}, {"EVAL_RO", script, "0"}, {"SCRIPT", "load", script}} {
			if refuse(args) == nil {
				t.Errorf("%s %.40q is not refused", args[0], script)
			}
		}
	}
	for _, args := range [][]string{{"EVAL", "return redis.call('GET', KEYS[1])", "1", "a"}, {"GET", "package"}, {"SET", "a", "dofile"}} {
		if reply := refuse(args); reply != nil {
			t.Errorf("%q is refused: %s", args, reply)
		}
	}
}
