package cri

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/aiopslab/aiopslab/shell"
)

func init() {
	for name, p := range shell.Tools() {
		if programs[name] == nil {
			programs[name] = p
		}
	}
}

// exec runs a script in a container and returns its exit code and what it printed.
func (l *lab) exec(id, script string) (code int, output string) {
	l.t.Helper()
	var out bytes.Buffer
	err := l.Run(context.Background(), id, []string{"sh", "-c", script}, Streams{Stdout: &out, Stderr: &out})
	if exit, ok := errors.AsType[utilexec.CodeExitError](err); ok {
		return exit.Code, out.String()
	}
	if err != nil {
		l.t.Fatalf("%.80s: %v", script, err)
	}
	return 0, out.String()
}

// TestWhatAShellHoldsCounts wants a container to be killed as a kernel would kill it, for what a
// command that is executed in it holds.
func TestWhatAShellHoldsCounts(t *testing.T) {
	for name, script := range map[string]string{
		"sort":         "yes | sort",
		"tac":          "yes | tac",
		"tail":         "yes | tail",
		"capture":      "X=$(yes)",
		"variable":     "x=a; while :; do x=$x$x; done",
		"array":        "bash -c 'x=$(seq 1 20000); while :; do a+=(\"$x\"); done'",
		"a long line":  "dd if=/dev/zero bs=1M | grep x",
		"a longer one": "dd if=/dev/zero bs=1M | sed s/x/y/",
		"sed":          "echo a | sed ':a; s/.*/&&&&/; ta'",
		"diff":         "yes | diff - /etc/hostname",
		"dump":         "xxd /dev/zero",
		"edit":         "seq 1 1000000 > /f; sed -i 's/.*/&&&&&&&&/' /f",
		"shuf":         "yes | shuf",
		"context":      "yes | grep -B 100000000 x",
		"unique":       "yes | uniq -D",
		"map":          "bash -c 'x=$(seq 1 20000); declare -A m; while :; do m[$((i++))]=$x; done'",
		"pairs":        "bash -c 'x=$(seq 1 20000); while :; do a+=(\"$x\" y); done'",
		"functions":    "x=$(seq 1 1000); while :; do i=$((i+1)); eval \"f$i() { echo $x; }\"; done",
		"aliases":      "x=$(seq 1 1000); while :; do i=$((i+1)); alias a$i=\"$x\"; done",
		"parameters":   "set -- xxxxxxxxxxxxxxxxxxxxxxxx; while :; do set -- \"$@\" \"$@\"; done",
		"one word":     "x=$(seq 1 20000); : \"" + strings.Repeat("$x", 10_000) + "\"",
		"braces":       "bash -c 'x=$(seq 1 20000); : {1..10000}\"$x\"'",
		"replacement":  "bash -c 'x=$(seq 1 200000); y=$x; z=${x//1/$y}'",
		"pattern":      "bash -c 'x=$(seq 1 200000); y=$x; z=${x//[0-9]/$y}'",
		"document":     "x=$(seq 1 20000); cat <<E\n" + strings.Repeat("$x", 10_000) + "\nE",
		"awk":          `awk 'BEGIN { for (;;) s = s s "x" }'`,
		"awk at once":  "awk 'BEGIN { for (i = 0; i < 20; i++) s = s s \"x\"; print length(" + strings.Repeat("s ", 900) + ") }'",
		"awk array":    `awk 'BEGIN { for (;;) a[n++] = n }'`,
		"awk function": `awk 'function f(n, s) { s = s n; return f(n + 1, s s) } BEGIN { f(1) }'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			id := l.run(l.pod("a"), []string{"wait"}, func(c *runtimeapi.ContainerConfig) {
				c.Linux = &runtimeapi.LinuxContainerConfig{Resources: &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 32 << 20}}
			})
			if code, out := l.exec(id, script); code != 137 {
				t.Errorf("code %d, %.200s", code, out)
			}
			if s := l.ended(id); s.ExitCode != 137 || s.Reason != "OOMKilled" {
				t.Errorf("the container ended with %d, %s", s.ExitCode, s.Reason)
			}
			if used := l.memory(); used != 0 {
				t.Errorf("%d bytes are held after the end", used)
			}
		})
	}
}

// TestWhatAShellHoldsIsGivenBack runs what needs memory for a while.
func TestWhatAShellHoldsIsGivenBack(t *testing.T) {
	l := newLab(t)
	id := l.run(l.pod("a"), []string{"wait"}, nil)
	before := l.memory()
	script := "seq 1 200000 | sort -n | tail -n 1; x=$(seq 1 100000); x=; echo ${#x}; seq 1 100000 | tac | head -n 1"
	if code, out := l.exec(id, script); code != 0 || out != "200000\n0\n100000\n" {
		t.Errorf("code %d, %q", code, out)
	}
	if after := l.memory(); after != before {
		t.Errorf("%d bytes are held, %d before", after, before)
	}
}

// TestFilesWithoutEnd fill what is there, and no more.
func TestFilesWithoutEnd(t *testing.T) {
	l := newLab(t)
	id := l.run(l.pod("a"), []string{"wait"}, nil)
	for _, script := range []string{"dd if=/dev/zero of=/dev/shm/f bs=1M", "yes > /dev/shm/g", "truncate -s 1G /dev/shm/h"} {
		if code, out := l.exec(id, script); code == 0 || !strings.Contains(out, "No space left on device") {
			t.Errorf("%s: code %d, %.200q", script, code, out)
		}
	}
	if code, out := l.exec(id, ". /dev/zero"); code == 0 || !strings.Contains(out, "File too large") {
		t.Errorf("a script without end: code %d, %.200q", code, out)
	}
}

// TestTooManyMatches are an error, not a list of them.
func TestTooManyMatches(t *testing.T) {
	l := newLab(t)
	id := l.run(l.pod("a"), []string{"wait"}, nil)
	for script, want := range map[string]string{
		"head -c 5000000 /dev/zero | tr '\\0' x | sed s/x/y/g":         "couldn't allocate memory",
		"head -c 5000000 /dev/zero | tr '\\0' x | grep -o x | tail -1": "too many matches",
	} {
		if _, out := l.exec(id, script); !strings.Contains(out, want) {
			t.Errorf("%s: %.200q", script, out)
		}
	}
}

// TestForkBombs find a table of processes that is full.
func TestForkBombs(t *testing.T) {
	for name, script := range map[string]string{
		"pipes":      "f() { f | f & }; f; sleep 1; echo over",
		"jobs":       "i=0; while [ $i -lt 1000 ]; do sleep 100 & i=$((i+1)); done; echo over",
		"subshells":  "f() { ( f ) & ( f ) & }; f; echo over",
		"shells":     "echo 'sh /bomb & sh /bomb' > /bomb; sh /bomb; echo over",
		"captures":   "f() { : $(f) $(f); }; f; echo over",
		"processes":  "bash -c 'f() { cat <(f) <(f); }; f; echo over'",
		"background": "bash -c ':(){ :|:& };:'; echo over",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			id := l.run(l.pod("a"), []string{"wait"}, nil)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var out, errs lockedBuffer
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = l.Run(ctx, id, []string{"sh", "-c", script}, Streams{Stdout: &out, Stderr: &errs})
			}()
			l.await("a process table that is full", func() bool {
				return strings.Contains(string(errs.bytes()), "Resource temporarily unavailable")
			})
			if c, err := l.Runtime.container(id); err != nil || len(c.procs.List()) > maxProcesses+1 {
				t.Errorf("%d programs run", len(c.procs.List()))
			}
			cancel()
			<-done
			l.Kill(id)
			l.ended(id)
		})
	}
}

// TestArgumentsWithoutEnd are refused as execve(2) refuses them.
func TestArgumentsWithoutEnd(t *testing.T) {
	l := newLab(t)
	id := l.run(l.pod("a"), []string{"wait"}, nil)
	for _, script := range []string{"seq $(seq 1 300000)", "x=$(seq 1 50000); sleep \"$x\"", "export x=$(seq 1 50000); sleep 0"} {
		if code, out := l.exec(id, script); code != 126 || !strings.Contains(out, "Argument list too long") {
			t.Errorf("%s: code %d, %.200q", script, code, out)
		}
	}
	long := strings.Repeat("a", 200<<10)
	if err := l.Run(context.Background(), id, []string{"sh", "-c", long}, Streams{}); err == nil || !strings.Contains(err.Error(), "argument list too long") {
		t.Errorf("%.300v", err)
	}
}
