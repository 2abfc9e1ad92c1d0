package shell_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/shell"
	"github.com/aiopslab/aiopslab/shell/internal/shelltest"
)

// session runs scripts one after the other and returns what each prints and its status.
func session(t *testing.T) func(script string) (string, int) {
	t.Helper()
	s := shell.NewSession(shelltest.New(t, shell.Workstation()).Env("bash"))
	t.Cleanup(s.Close)
	return func(script string) (string, int) {
		var out bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		code := s.Run(ctx, script, strings.NewReader(""), &out, &out)
		return out.String(), code
	}
}

func TestSessionKeepsState(t *testing.T) {
	run := session(t)
	for _, step := range []struct {
		script, want string
		code         int
	}{
		{"cd /tmp; x=1; export y=2; f() { echo f $1; }; alias g='echo alias'; shopt -s expand_aliases; umask 077; set -o pipefail", "", 0},
		{"pwd; echo $x $y; f 3; umask", "/tmp\n1 2\nf 3\n0077\n", 0},
		{"g", "alias\n", 0},
		{"false | true", "", 1},
		{"echo before; exit 3; echo after", "before\n", 3},
		{"echo $?; sh -c 'echo $y'", "3\n2\n", 0},
		{"f2() { for i in 1 2; do exit 4; done; }; f2", "", 4},
		{"echo ${#FUNCNAME[@]} $#; break; echo on", "0 0\non\n", 0},
		{"echo 'no end", "bash: line 1: syntax error: unterminated quoted string\n", 2},
		{"exec 1>/dev/null; echo lost", "", 0},
		{"echo seen", "seen\n", 0},
		{"set -e; false; echo not reached", "", 1},
		{"echo $-", "", 0},
	} {
		out, code := run(step.script)
		if code != step.code || step.want != "" && out != step.want {
			t.Errorf("%s: status %d, %q; want %d, %q", step.script, code, out, step.code, step.want)
		}
	}
}

func TestJQ(t *testing.T) {
	m := shelltest.New(t, shell.Workstation())
	m.Write("/tmp/pods.json", `{"items":[{"metadata":{"name":"geo-1"},"n":12345678901234567890},{"metadata":{"name":"rate-1"},"n":2}]}`)
	for _, tt := range []struct {
		script, want string
		code         int
	}{
		{`jq -r '.items[].metadata.name' /tmp/pods.json`, "geo-1\nrate-1\n", 0},
		{`jq -c '.items[1]' < /tmp/pods.json`, "{\"metadata\":{\"name\":\"rate-1\"},\"n\":2}\n", 0},
		{`jq '.items[0].n' /tmp/pods.json`, "12345678901234567890\n", 0},
		{`echo '{"b":[1,{}],"a":"ä"}' | jq .`, "{\n  \"a\": \"ä\",\n  \"b\": [\n    1,\n    {}\n  ]\n}\n", 0},
		{`echo '"ä"' | jq -a .`, "\"\\u00e4\"\n", 0},
		{`echo '1 2' | jq -s add`, "3\n", 0},
		{`printf 'a\nb\n' | jq -Rc .`, "\"a\"\n\"b\"\n", 0},
		{`printf 'a\nb\n' | jq -Rsc .`, "\"a\\nb\\n\"\n", 0},
		{`jq -n --arg a x --argjson b '[1]' -c '[$a,$b,$ARGS.named.a]'`, "[\"x\",[1],\"x\"]\n", 0},
		{`jq -nc '$ARGS.positional' --args p q`, "[\"p\",\"q\"]\n", 0},
		{`jq -n '[inputs]' -c /tmp/pods.json | jq length`, "1\n", 0},
		{`X=5 jq -nr 'env.X + $ENV.X'`, "55\n", 0},
		{`echo null | jq -e .`, "null\n", 1},
		{`echo '{' | jq .`, "jq: error: the input is not JSON: unexpected EOF\n", 2},
		{`echo 1 | jq '.['`, "jq: error: unexpected EOF in the filter .[\n", 3},
		{`echo 1 | jq '.a'`, "jq: error: expected an object but got: number (1)\n", 5},
		{`jq . /tmp/none`, "jq: error: could not open /tmp/none: No such file or directory\n", 2},
		{`jq -n '"bye" | halt_error'`, "bye", 5},
		{`jq --nosuch .`, "jq: error: unknown arguments: --nosuch\n", 2},
		{`printf 'a bb c\nddd e\n' | column -t`, "a    bb  c\nddd  e\n", 0},
		{`printf 'a:b\n' | column -t -s :`, "a  b\n", 0},
	} {
		r := m.Run("bash", "-c", tt.script)
		if r.Code != tt.code || r.Stdout+r.Stderr != tt.want {
			t.Errorf("%s: status %d, %q; want %d, %q", tt.script, r.Code, r.Stdout+r.Stderr, tt.code, tt.want)
		}
	}
}
