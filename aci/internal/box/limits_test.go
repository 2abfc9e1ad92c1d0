package box

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/aci/tool"
)

// A shell that dies is replaced: its files stay, the run goes on.
func TestShellIsReplaced(t *testing.T) {
	b := newTestBox(t)
	run(t, b, "x=5; cd /tmp; echo kept > f")
	shell := b.shell.cmd
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(b.dir, "tmp/begun")); err == nil {
				tool.Kill(shell)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	o := run(t, b, "echo before; touch begun; sleep 30")
	if o.Ended != internalError || o.Output != "before\n" || o.Status == 0 {
		t.Errorf("%+v", o)
	}
	if b.Dir() != home {
		t.Error(b.Dir())
	}
	if o := run(t, b, `echo "[$x]"; pwd; cat /tmp/f`); o.Output != "[]\n/root\nkept\n" || o.Ended != "" {
		t.Errorf("%+v", o)
	}
	tool.Kill(b.shell.cmd) // Between two commands, too.
	<-b.shell.gone
	if o := run(t, b, "echo again"); o.Output != "again\n" {
		t.Errorf("%+v", o)
	}
}

// What a process says when it crashes is for the lab: the agent gets one line.
func TestCrashes(t *testing.T) {
	b := newTestBox(t)
	for command, want := range map[string]string{
		"kubectl overflow":            "kubectl: stack overflow\n",
		"kubectl grow":                "kubectl: out of memory\n",
		"kubectl panic":               "kubectl: an internal error\n",
		"kubectl panic | cat":         "kubectl: an internal error\n",
		"helm overflow 2>/dev/null":   "",
		"x=$(kubectl grow 2>&1) true": "",
	} {
		if tool.MaxMemory == 0 && strings.Contains(command, "grow") {
			continue // There is no limit in this build.
		}
		o := run(t, b, command)
		if o.Output != want || o.Ended != "" || strings.Contains(o.Output, "goroutine") {
			t.Errorf("%s: %+v", command, o)
		}
	}
}

func TestLastWords(t *testing.T) {
	for text, want := range map[string]string{
		"runtime: goroutine stack exceeds 67108864-byte limit\nfatal error: stack overflow\n": stackOverflow,
		"fatal error: runtime: out of memory\n":                                               outOfMemory,
		"runtime: cannot allocate memory\n":                                                   outOfMemory,
		"panic: x\n":                                                                          internalError,
		"":                                                                                    internalError,
	} {
		if got := lastWords(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// All processes together have a limit.
func TestTotalMemoryIsBounded(t *testing.T) {
	if anonymous(os.Getpid()) == 0 {
		t.Skip("this system does not say what a process takes")
	}
	b := small(t, func(l *limits) { l.Total = 256 << 20 })
	o := run(t, b, "kubectl hold 200 & kubectl hold 200 & wait")
	if !o.TooLarge && !strings.Contains(o.Output, "out of memory") {
		t.Errorf("%+v", o)
	}
	if o := run(t, b, "echo on"); o.Output != "on\n" {
		t.Errorf("%+v", o)
	}
}

// Processes of the shell are bounded in bash's words.
func TestForkBomb(t *testing.T) {
	b := small(t, func(l *limits) { l.Processes, l.Tools = 32, 2 })
	for command, want := range map[string]string{
		"f() { f | f & }; f; wait":                                "", // Its children go on unseen for a moment.
		"f() { f & f & }; f; wait":                                "",
		"for i in $(seq 100); do sleep 5 & done; kill $(jobs -p)": noFork,
		"kubectl hang & kubectl hang & sleep 2; kubectl version":  noFork,
	} {
		o := b.Run(t.Context(), command, 20*time.Second)
		if !strings.Contains(o.Output, want) {
			t.Errorf("%s: %.300s %v %v %s", command, o.Output, o.TimedOut, o.TooLarge, o.Ended)
		}
		if o := run(t, b, "echo on"); o.Output != "on\n" {
			t.Errorf("after %s: %+v", command, o)
		}
	}
}

// What tools write counts as what the shell writes does, and so do many small files.
func TestDiskOfTools(t *testing.T) {
	b := small(t, func(l *limits) { l.Disk = 4 << 20 })
	for _, command := range []string{"kubectl fill big", "kubectl spill big", "kubectl flood many"} {
		if o := run(t, b, command); !strings.Contains(o.Output, noSpace) || o.Status == 0 {
			t.Errorf("%s: %.300q, %d", command, o.Output, o.Status)
		}
		// The disk is full now, for everybody.
		if o := run(t, b, "echo x > /tmp/new"); o.Status == 0 {
			t.Errorf("%s: there is room: %+v", command, o)
		}
		if o := run(t, b, "kubectl write /tmp/new"); o.Status == 0 || !strings.Contains(o.Output, noSpace) {
			t.Errorf("%s: there is room for tools: %+v", command, o)
		}
		if o := run(t, b, "kubectl version"); o.Output != "kubectl version\n" {
			t.Errorf("%s: %+v", command, o)
		}
		if err := b.WriteFile("/root/outputs/x", []byte("x")); err == nil {
			t.Error("there is room for outputs")
		}
		if o := run(t, b, "rm -r /root/big* /root/many*; echo x > /tmp/new; kubectl write /tmp/newer && rm /tmp/new*"); o.Status != 0 {
			t.Errorf("%s: %+v", command, o)
		}
	}
	for command, want := range map[string]string{
		"i=0; while : > /tmp/s$i; do i=$((i+1)); done; rm /tmp/s*":           "No space left",
		"i=0; while mkdir /tmp/d$i; do i=$((i+1)); done; rm -r /tmp/d*":      "No space left",
		"i=0; while ln -s x /tmp/l$i; do i=$((i+1)); done; rm /tmp/l*":       "No space left",
		"d=/tmp; while mkdir $d/a; do d=$d/a; done; rm -r /tmp/a":            "File name too long",
		"truncate -s 100M /tmp/sparse; rm -f /tmp/sparse":                    "No space left",
		"head -c 3000000 /dev/zero > /tmp/a; cp /tmp/a /tmp/b; rm /tmp/[ab]": "No space left",
	} {
		if o := run(t, b, command); !strings.Contains(o.Output, want) {
			t.Errorf("%s: %.300q", command, o.Output)
		}
		if o := run(t, b, "echo x > /tmp/new && rm /tmp/new"); o.Status != 0 {
			t.Errorf("after %s: %+v", command, o)
		}
	}
}

// A kubeconfig with a program in it does not spoil kubectl for good.
func TestKubeconfigCanBeRepaired(t *testing.T) {
	b := newTestBox(t)
	if o := run(t, b, "kubectl config set-credentials me --exec-command=/bin/sh"); o.Status == 0 {
		t.Errorf("%+v", o)
	}
	if o := run(t, b, "kubectl version"); o.Status != 0 {
		t.Errorf("%+v", o)
	}
	run(t, b, `printf 'apiVersion: v1\nkind: Config\nusers: [{name: me, user: {exec: {command: sh, apiVersion: v1}}}]\n' > ~/.kube/config`)
	if o := run(t, b, "kubectl version"); o.Status == 0 || !strings.Contains(o.Output, "kubectl config delete-user me") {
		t.Errorf("%+v", o)
	}
	if o := run(t, b, "kubectl config delete-user me"); o.Status != 0 {
		t.Errorf("%+v", o)
	}
}
