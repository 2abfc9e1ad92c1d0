package redis

import (
	"bufio"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// cliRun runs redis-cli to its end.
func cliRun(m *kittest.Machine, stdin string, terminal bool, args ...string) (code int, stdout, stderr string) {
	env := m.Env(append([]string{"redis-cli"}, args...)...)
	env.Stdin = strings.NewReader(stdin)
	if terminal {
		env.Terminal = &kit.Terminal{}
	}
	r := m.Run(CLI, env)
	code = r.Wait()
	return code, r.Stdout.String(), r.Stderr.String()
}

// The outputs are those of a real one, but for the words of the errors, which are 6.2's.
func TestCLI(t *testing.T) {
	m := machine(t)
	server := start(t, m)
	tests := []struct {
		args   []string
		stdin  string
		tty    bool
		stdout string
		stderr string
		code   int
	}{
		{args: []string{"set", "a", "b c"}, stdout: "OK\n"},
		{args: []string{"get", "a"}, stdout: "b c\n"},
		{args: []string{"get", "a"}, tty: true, stdout: "\"b c\"\n"},
		{args: []string{"get", "none"}, stdout: "\n"},
		{args: []string{"--no-raw", "get", "none"}, stdout: "(nil)\n"},
		{args: []string{"rpush", "l", "1", "2", "3"}, stdout: "3\n"},
		{args: []string{"lrange", "l", "0", "-1"}, stdout: "1\n2\n3\n"},
		{args: []string{"--no-raw", "lrange", "l", "0", "-1"}, stdout: "1) \"1\"\n2) \"2\"\n3) \"3\"\n"},
		{args: []string{"--csv", "lrange", "l", "0", "-1"}, stdout: "\"1\",\"2\",\"3\"\n"},
		{args: []string{"--no-raw", "lrange", "none", "0", "-1"}, stdout: "(empty array)\n"},
		{args: []string{"--no-raw", "eval", "return {1,{2,{3,'x'}},'a b\\n'}", "0"}, stdout: "1) (integer) 1\n2) 1) (integer) 2\n   2) 1) (integer) 3\n      2) \"x\"\n3) \"a b\\n\"\n"},
		{args: []string{"foo", "bar"}, stdout: "ERR unknown command `foo`, with args beginning with: `bar`, \n\n"},
		{args: []string{"--no-raw", "foo"}, stdout: "(error) ERR unknown command `foo`, with args beginning with: \n"},
		{args: []string{"hset", "h", "f", "v"}, stdout: "1\n"},
		{args: []string{"-3", "--no-raw", "hgetall", "h"}, stdout: "1# \"f\" => \"v\"\n"},
		{stdin: "set x 1\nincr x\n\nget x\nset y \"a\nquit\nget x\n", stdout: "OK\n2\n2\nInvalid argument(s)\n"},
		{stdin: "2 incr x\nselect 1\nget x\n", tty: true, stdout: "127.0.0.1:6379> (integer) 3\n(integer) 4\n127.0.0.1:6379> OK\n127.0.0.1:6379[1]> (nil)\n127.0.0.1:6379[1]> "},
		{args: []string{"-x", "set", "y"}, stdin: "abc", stdout: "OK\n"},
		{args: []string{"-r", "2", "incr", "x"}, stdout: "5\n6\n"},
		{args: []string{"-n", "1", "dbsize"}, stdout: "0\n"},
		{args: []string{"-u", "redis://127.0.0.1:6379/1", "dbsize"}, stdout: "0\n"},
		{args: []string{"--scan", "--pattern", "[xy]"}, stdout: "x\ny\n"},
		{args: []string{"-a", "pw", "ping"}, stdout: "PONG\n", stderr: "Warning: Using a password with '-a' or '-u' option on the command line interface may not be safe.\nAUTH failed: ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\n"},
		{args: []string{"-n", "20", "ping"}, stdout: "PONG\n", stderr: "SELECT 20 failed: ERR DB index is out of range\n"},
		{args: []string{"-p", "1", "ping"}, stderr: "Could not connect to Redis at 127.0.0.1:1: Connection refused\n", code: 1},
		{args: []string{"-h", "no.such.host", "ping"}, stderr: "Could not connect to Redis at no.such.host:6379: Name or service not known\n", code: 1},
		{args: []string{"--bogus"}, stderr: "Unrecognized option or bad number of args for: '--bogus'\n", code: 1},
		{args: []string{"--version"}, stdout: "redis-cli 6.2.4\n"},
		{args: []string{"info", "cluster"}, tty: true, stdout: "# Cluster\r\ncluster_enabled:0\r\n\n"},
	}
	for _, tt := range tests {
		code, stdout, stderr := cliRun(m, tt.stdin, tt.tty, tt.args...)
		if code != tt.code || stdout != tt.stdout || stderr != tt.stderr {
			t.Errorf("%q: exit %d\nstdout %q\nwant   %q\nstderr %q\nwant   %q", tt.args, code, stdout, tt.stdout, stderr, tt.stderr)
		}
	}
	mon := m.Start(CLI, "redis-cli", "monitor")
	mon.Await("OK\n")
	sub := m.Start(CLI, "redis-cli", "subscribe", "news")
	sub.Await("subscribe\nnews\n1\n")
	mon.Await(`"subscribe" "news"`)
	cliRun(m, "", false, "publish", "news", "hello")
	sub.Await("message\nnews\nhello\n")
	mon.Signal(syscall.SIGINT)
	if code := mon.Wait(); code != kit.ExitSignal+int(syscall.SIGINT) {
		t.Errorf("exit %d", code)
	}
	if code, _, _ := cliRun(m, "", false, "shutdown"); code != 0 || server.Wait() != 0 {
		t.Error("shutdown")
	}
	if code := sub.Wait(); code != 1 || !strings.Contains(sub.Stderr.String(), "Server closed the connection") {
		t.Errorf("exit %d, %s", code, sub.Stderr)
	}
}

func TestSplitArgs(t *testing.T) {
	for line, want := range map[string]string{
		"":                 "",
		"  a  b\t":         "a|b",
		`a "b c" 'd e'`:    "a|b c|d e",
		`"\x41\n\"" '\''`:  "A\n\"|'",
		`a"b c"`:           "ab c",
		`""`:               "",
		`"` + "\\x4" + `"`: "x4",
	} {
		got, err := splitArgs(line)
		if err != nil || strings.Join(got, "|") != want {
			t.Errorf("%q: %q, %v", line, got, err)
		}
	}
	for _, line := range []string{`"a`, `'a`, `"a"b`} {
		if _, err := splitArgs(line); err == nil {
			t.Errorf("%q is balanced", line)
		}
	}
	for _, s := range []string{"", "a b", "\x00\xff\"\\\n\r\t\a\b'", "é"} {
		if got, err := splitArgs(quote(s)); err != nil || len(got) != 1 || got[0] != s {
			t.Errorf("%q quoted is %s, which is %q, %v", s, quote(s), got, err)
		}
	}
}

func FuzzReadCommand(f *testing.F) {
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\na\r\n"))
	f.Add([]byte("set a \"b\\x41\"\r\n"))
	f.Add([]byte("*-1\r\n*1\r\n$99999999\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bufio.NewReader(strings.NewReader(string(data)))
		for {
			args, err := readCommand(in, free)
			if err != nil {
				return
			}
			again, err := readCommand(bufio.NewReader(strings.NewReader(string(encode(args...)))), free)
			if err != nil || strings.Join(again, "\x00") != strings.Join(args, "\x00") {
				t.Errorf("%q written and read is %q, %v", args, again, err)
			}
		}
	})
}

func FuzzReadRDB(f *testing.F) {
	f.Add([]byte("REDIS0009\xfe\x00\xfb\x01\x00\x00\x01a\x01b\xff\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = readRDB(strings.NewReader(string(data)), time.Time{}, func(int, ...string) {})
	})
}
