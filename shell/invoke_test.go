package shell

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/shell/internal/shelltest"
)

func TestInvocation(t *testing.T) {
	m := shelltest.New(t, Tools())
	m.Write("/s.sh", "echo \"$0 $# $1\"\nnosuch\n")
	m.Write("/env.sh", "#!/usr/bin/env sh\necho env\n")
	m.Write("/x.sh", "#!/bin/sh -e\nfalse\necho not\n")
	m.Write("/plain", "echo plain $1\n")
	m.Write("/etc/profile", "PROFILE=read\n")
	for _, name := range []string{"/x.sh", "/plain"} {
		if err := m.FS().Chmod(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name  string
		stdin string
		args  []string
		out   string
		err   string
		code  int
	}{
		{name: "command with parameters", args: []string{"sh", "-c", `echo $0 $1 $#`, "name", "a", "b"}, out: "name a 2\n"},
		{name: "combined flags", args: []string{"sh", "-ec", "false; echo not"}, code: 1},
		{name: "flags apart", args: []string{"sh", "-e", "-u", "-c", "echo $nope"}, err: "sh: nope: parameter not set\n", code: 2},
		{name: "trace", args: []string{"sh", "-xc", "echo a"}, out: "a\n", err: "+ echo a\n"},
		{name: "long option", args: []string{"sh", "-o", "pipefail", "-c", "false | true"}, code: 1},
		{name: "combined with o", args: []string{"bash", "-euo", "pipefail", "-c", "false | true; echo not"}, code: 1},
		{name: "login", args: []string{"sh", "-lc", "echo $PROFILE"}, out: "read\n"},
		{name: "login by name", args: []string{"-sh", "-c", "echo $PROFILE"}, out: "read\n"},
		{name: "script", args: []string{"sh", "/s.sh", "a"}, out: "/s.sh 1 a\n", err: "/s.sh: line 2: nosuch: not found\n", code: 127},
		{name: "no script", args: []string{"sh", "/nofile"}, err: "sh: can't open '/nofile': No such file or directory\n", code: 2},
		{name: "no script for bash", args: []string{"bash", "/nofile"}, err: "bash: /nofile: No such file or directory\n", code: 127},
		{name: "standard input", stdin: "echo a\nif true\nthen\necho b\nfi\n", args: []string{"sh"}, out: "a\nb\n"},
		{name: "standard input with parameters", stdin: "echo $1 $2\n", args: []string{"sh", "-s", "x", "y"}, out: "x y\n"},
		{name: "standard input is shared", stdin: "read x\ndata\necho \"got $x\"\ncat\nrest\n", args: []string{"sh"}, out: "got data\nrest\n"},
		{name: "a last line without an end", stdin: "echo a\necho b", args: []string{"sh"}, out: "a\nb\n"},
		{name: "one line without an end", stdin: "exit 5", args: []string{"sh"}, code: 5},
		{name: "exit in standard input", stdin: "exit 5\necho not\n", args: []string{"sh"}, code: 5},
		{name: "syntax error in standard input", stdin: "echo a\nfi\n", args: []string{"sh"}, out: "a\n", err: "sh: syntax error: `fi` can only be used to end an `if`\n", code: 2},
		{name: "no command", args: []string{"sh", "-c"}, err: "sh: -c requires an argument\n", code: 2},
		{name: "bad option", args: []string{"sh", "-Z"}, err: "sh: illegal option -Z\n", code: 2},
		{name: "script with an interpreter", args: []string{"sh", "-c", "/x.sh; echo $?"}, out: "1\n"},
		{name: "script without", args: []string{"sh", "-c", "/plain x; echo $?"}, out: "plain x\n0\n"},
		{name: "version", args: []string{"bash", "--version"}, out: "GNU bash, version 5.2.37(1)-release (x86_64-pc-linux-gnu)\n"},
		{name: "no execution", args: []string{"sh", "-n", "-c", "echo a; rm -rf /"}},
		{name: "end of options", args: []string{"sh", "-c", "--", "echo $0"}, out: "sh\n"},
		{name: "ash", args: []string{"ash", "-c", "nosuch"}, err: "ash: nosuch: not found\n", code: 127},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := m.Env(tt.args...)
			env.Stdin = strings.NewReader(tt.stdin)
			name := strings.TrimPrefix(tt.args[0], "-")
			p, err := m.Procs.Fork(t.Context(), env, Tools()[name])
			if err != nil {
				t.Fatal(err)
			}
			got := shelltest.Result{Code: p.Wait()}
			got.Stdout, got.Stderr = env.Stdout.(*shelltest.Buffer).String(), env.Stderr.(*shelltest.Buffer).String()
			if diff := cmp.Diff(shelltest.Result{Stdout: tt.out, Stderr: tt.err, Code: tt.code}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestToolNames wants everything that people expect to find, and no tool to be lost to another of
// the same name.
func TestToolNames(t *testing.T) {
	tools := Tools()
	for _, name := range strings.Fields(`sh ash bash [ test cat ls echo printf env printenv ps kill pkill pgrep sleep date head
		tail grep egrep fgrep sed awk cut sort uniq wc tr tee xargs find mkdir rmdir rm cp mv ln touch chmod chown stat du df tar gzip
		gunzip zcat wget nc nslookup dig host ping hostname uname id whoami pwd true false seq basename dirname readlink realpath which
		mktemp md5sum sha1sum sha256sum base64 hexdump od dd yes expr timeout nohup nproc free uptime top netstat ss ifconfig ip mount
		diff cmp tac rev nl fold paste comm split sync clear less more dmesg usleep curl vi`) {
		if tools[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	if len(tools) < 125 {
		t.Errorf("only %d tools", len(tools))
	}
}
