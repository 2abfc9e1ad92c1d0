package proc

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// runAgent runs a script as an agent's program, and returns what it prints.
func runAgent(t *testing.T, script string) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command("sh", "-c", script)
	cmd.Stdout, cmd.Stderr = w, w
	p, err := Start(cmd, true)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	return string(text)
}

// TestApart: a program that is an agent cannot end the lab or look into it, with the same user's rights
// or the superuser's. The signal is one that a Go program ignores, in case that it can.
func TestApart(t *testing.T) {
	if !Apart() {
		t.Skip("this kernel has no Landlock with a scope for signals: Linux 6.12 has")
	}
	lab, environment := os.Getpid(), exec.Command("sleep", "60")
	if err := environment.Start(); err != nil {
		t.Fatal(err)
	}
	defer environment.Wait()
	defer environment.Process.Kill()
	for _, c := range []struct{ name, script, want string }{
		{"signals the lab", fmt.Sprintf("kill -URG $PPID || kill -URG %d || echo refused", lab), "refused"},
		{"signals the environment", fmt.Sprintf("kill -KILL %d || echo refused", environment.Process.Pid), "refused"},
		{"reads the environment's memory", fmt.Sprintf("head -c1 /proc/%d/mem 2>&1", environment.Process.Pid), "denied"},
		{"looks for the lab's files", fmt.Sprintf("readlink /proc/%d/cwd || echo refused", lab), "refused"},
		{"in a child of its own", fmt.Sprintf("(setsid sh -c 'kill -URG %d') || echo refused", lab), "refused"},
		{"ends what it started", "sleep 60 & kill $! && wait $!; echo $?", "143"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := runAgent(t, c.script); !strings.Contains(got, c.want) {
				t.Errorf("%s: %q", c.script, got)
			}
		})
	}
	// Whatever thread it was started from, the main one too.
	for range 50 {
		if got := runAgent(t, fmt.Sprintf("kill -URG %d || echo refused", lab)); !strings.Contains(got, "refused") {
			t.Fatal("it could signal the lab")
		}
	}
	// The thread that was kept apart is gone: the lab can still end what it has to.
	if err := environment.Process.Kill(); err != nil {
		t.Error(err)
	}
}
