package redis

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/aiopslab/aiopslab/kit/kittest"
)

// engines runs a test with scripts at home and in a cell.
func engines(t *testing.T, f func(t *testing.T, m *kittest.Machine)) {
	for name, cells := range map[string]bool{"home": false, "cell": true} {
		t.Run(name, func(t *testing.T) {
			m := machine(t)
			m.Cells = cells
			f(t, m)
		})
	}
}

func TestScripts(t *testing.T) {
	engines(t, func(t *testing.T, m *kittest.Machine) {
		start(t, m)
		for _, tt := range []struct{ say, want string }{
			{`EVAL "return {KEYS[1], ARGV[1], 7}" 1 k v`, "1) \"k\"\n2) \"v\"\n3) (integer) 7"},
			{`EVAL "redis.call('SET', 'undeclared', ARGV[1]) return redis.call('GET', 'undeclared')" 0 x`, `"x"`},
			{`GET undeclared`, `"x"`},
			{`EVAL "redis.call('SELECT', 3) return redis.call('SET', 'there', 1)" 0`, "OK"},
			{`GET there`, "(nil)"},

			{`EVAL "return redis.pcall('INCR', 'undeclared')['err']" 0`, `"ERR value is not an integer or out of range"`},
			{`EVAL "return redis.pcall('BLPOP', 'l', 0)['err']" 0`, `"ERR This Redis command is not allowed from scripts"`},
			{`EVAL "return redis.pcall('EVAL', 'return 1', 0)['err']" 0`, `"ERR This Redis command is not allowed from scripts"`},
			{`EVAL "return redis.pcall('SHUTDOWN')['err']" 0`, `"ERR This Redis command is not allowed from scripts"`},
			{`EVAL "return cjson.decode('[1,2]')[2]" 0`, "(integer) 2"},
			{`EVAL_RO "return redis.call('GET', KEYS[1])" 1 undeclared`, `"x"`},
			{`EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0`, "(error) NOSCRIPT No matching script. Please use EVAL."},
			{`SCRIPT LOAD "return 1"`, `"e0e1f9fabfc9d4800c877a703b823ac0578ff8db"`},
			{`EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0`, "(integer) 1"},
			{`SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db 00`, "1) (integer) 1\n2) (integer) 0"},
			{`SCRIPT FLUSH`, "OK"},
			{`SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db`, "1) (integer) 0"},
			{`SCRIPT KILL`, "(error) NOTBUSY No scripts in execution right now."},
			{`EVAL "return 1"`, "(error) ERR wrong number of arguments for 'eval' command"},
		} {
			if got := say(t, m, tt.say); got != tt.want {
				t.Errorf("%s\n got %s\nwant %s", tt.say, got, tt.want)
			}
		}
	})
}

// TestScriptsCountWhatTheyWrite wants keys that a script does not declare in the ledger.
func TestScriptsCountWhatTheyWrite(t *testing.T) {
	engines(t, func(t *testing.T, m *kittest.Machine) {
		start(t, m)
		before := m.Resources.Memory()
		say(t, m, `EVAL "for i = 1, 100 do redis.call('SET', 'k' .. i, string.rep('x', 10000)) end" 0`)
		if grown := m.Resources.Memory() - before; grown < 1_000_000 {
			t.Errorf("%d bytes more are stated", grown)
		}
	})
}

// TestLargeCommandsCount wants what a client sends in the ledger before it is all there.
func TestLargeCommandsCount(t *testing.T) {
	m := machine(t)
	start(t, m)
	m.Resources.Limit = m.Resources.Memory() + 8<<20
	c, err := m.Env().Net.DialContext(t.Context(), "tcp", m.Addr+":6379")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$500000000\r\n")
	sent := 0
	for chunk := make([]byte, 1<<20); err == nil; sent++ {
		_, err = c.Write(chunk)
	}
	if sent > 100 {
		t.Errorf("%d MB were taken", sent)
	}
}

// TestBusyScript wants what a server with a script that does not end gives to others.
func TestBusyScript(t *testing.T) {
	m := machine(t)
	m.Cells = true
	r := start(t, m, "--lua-time-limit", "1", "--appendonly", "yes")
	loop := func(code string) chan error {
		done := make(chan error, 1)
		c := connect(t, m, func(o *goredis.Options) { o.ReadTimeout = -1 })
		go func() { done <- c.Eval(context.Background(), code, nil).Err() }()
		for deadline := time.Now().Add(time.Minute); !strings.HasPrefix(say(t, m, "GET a"), "(error) BUSY"); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the server is not busy")
			}
		}
		return done
	}
	done := loop("while true do end")
	if got := say(t, m, "SCRIPT KILL"); got != "OK" {
		t.Fatal(got)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "Script killed by user") {
		t.Error(err)
	}
	if got := say(t, m, "SET a 1", `EVAL "return redis.call('GET', 'a')" 0`); got != "OK\n\"1\"" {
		t.Error(got)
	}
	loop("redis.call('SET', 'written', 1) while true do end")
	for deadline := time.Now().Add(time.Minute); !strings.Contains(m.Read("/data/appendonly.aof"), "written"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the script has not written")
		}
	}
	if got := say(t, m, "SCRIPT KILL"); !strings.HasPrefix(got, "(error) UNKILLABLE") {
		t.Error(got)
	}
	say(t, m, "SHUTDOWN NOSAVE")
	if code := r.Wait(); code != 0 {
		t.Errorf("code %d", code)
	}
}

// TestScriptsThatTakeTooMuch are ended, and so is one whose server is killed.
func TestScriptsThatTakeTooMuch(t *testing.T) {
	m := machine(t)
	m.Cells = true
	r := start(t, m)
	m.Resources.Limit = m.Resources.Memory() + 64<<20
	for _, script := range []string{
		"local s = 'x' while true do s = s .. s end", "local t = {} while true do t[#t + 1] = {} end",
		"return string.rep('x', 1000000000)", "return cjson.encode(string.rep('x', 300000000))",
		"local function f(n) return f(n + 1) + 1 end return f(1)", "return string.format('%999999999d', 1) .. string.rep('x', 1000000000)",
		"local t = {} for i = 1, 300000 do t = {t} end return t", "local t = {} t[1] = t return t",
	} {
		if got := say(t, m, `EVAL "`+script+`" 0`); !strings.HasPrefix(got, "(error)") {
			t.Errorf("%s: %.200s", script, got)
		}
	}
	if got := say(t, m, "EVAL 'return 1' 0"); got != "(integer) 1" {
		t.Errorf("after all: %s", got)
	}
	c := connect(t, m, func(o *goredis.Options) { o.ReadTimeout = -1 })
	done := make(chan error, 1)
	go func() {
		done <- c.Eval(context.Background(), "redis.call('SET', 'begun', 1) while true do end", nil).Err()
	}()
	r.Signal(syscall.SIGKILL)
	if code := r.Wait(); code != 137 {
		t.Errorf("code %d", code)
	}
	<-done
}

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
