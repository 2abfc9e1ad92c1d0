package shell

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell/internal/shelltest"
	"github.com/aiopslab/aiopslab/shell/internal/stream"
)

// asInit starts a script as process 1.
func asInit(t *testing.T, script string) *shelltest.Running {
	m := shelltest.New(t, Tools())
	m.Procs.SetNext(1)
	return m.Start(m.Env("sh", "-c", script))
}

func TestInitIgnoresSignalsWithoutTrap(t *testing.T) {
	r := asInit(t, "echo up; sleep 0.2; echo still here")
	r.Await("up")
	r.Signal(syscall.SIGTERM)
	if got := r.Wait(); got.Code != 0 || got.Stdout != "up\nstill here\n" {
		t.Errorf("%+v", got)
	}
}

func TestOthersDieOfSignals(t *testing.T) {
	m := shelltest.New(t, Tools())
	for _, script := range []string{
		"echo up; sleep 100; echo not",
		"echo up; while :; do :; done",
		"echo up; read x; echo not",
		"echo up; sleep 100 | cat; echo not",
		"echo up; x=$(sleep 100); echo not",
		"trap 'echo usr' USR1; echo up; sleep 100 & wait; echo not", // It handles signals itself, but not this one.
	} {
		env := m.Env("sh", "-c", script)
		r, w := stream.NewPipe()
		env.Stdin = r
		run := m.Start(env)
		run.Await("up")
		run.Signal(syscall.SIGTERM)
		if got := run.Wait(); got.Code != 143 || got.Stdout != "up\n" {
			t.Errorf("%s: %+v", script, got)
		}
		w.Close()
	}
}

func TestTrapRunsAfterTheForegroundCommand(t *testing.T) {
	m := shelltest.New(t, Tools())
	m.Procs.SetNext(1)
	r := m.Start(m.Env("sh", "-c",
		"trap 'echo trapped; exit 7' TERM; sh -c 'echo up; until [ -e /tmp/end ]; do sleep 0.01; done; echo ended'; echo not"))
	r.Await("up")
	r.Signal(syscall.SIGTERM)
	m.Write("/tmp/end", "")
	if got := r.Wait(); got.Code != 7 || got.Stdout != "up\nended\ntrapped\n" {
		t.Errorf("%+v", got)
	}
}

func TestTrapInterruptsWait(t *testing.T) {
	r := asInit(t, "trap 'echo trapped' TERM; sh -c 'echo up; exec sleep 100' & wait $!; echo status $?; kill $!; wait $!; echo $?")
	r.Await("up")
	// A signal that comes before the wait is trapped and interrupts nothing. The next one does.
	for deadline := time.Now().Add(shelltest.Patience); !strings.Contains(r.Stdout(), "status") && time.Now().Before(deadline); {
		r.Signal(syscall.SIGTERM)
		time.Sleep(10 * time.Millisecond)
	}
	want := regexp.MustCompile(`^up\n(trapped\n)+status 143\n(trapped\n)*143\n$`)
	if got := r.Wait(); got.Code != 0 || !want.MatchString(got.Stdout) {
		t.Errorf("%+v", got)
	}
}

func TestTrapInterruptsRead(t *testing.T) {
	m := shelltest.New(t, Tools())
	env := m.Env("sh", "-c", "trap 'echo trapped' USR1; (sleep 0.1; echo up) & read x; echo \"got $x\"")
	r, w := stream.NewPipe()
	env.Stdin = r
	run := m.Start(env)
	run.Await("up")
	run.Signal(syscall.SIGUSR1)
	run.Await("trapped")
	w.Write([]byte("line\n"))
	if got := run.Wait(); got.Stdout != "up\ntrapped\ngot line\n" {
		t.Errorf("%+v", got)
	}
}

func TestScriptGoesOnAfterTrap(t *testing.T) {
	r := asInit(t, "n=0; trap 'n=$((n+1)); echo hup $n' HUP; echo up; while [ $n -lt 2 ]; do sleep 0.01; done; echo done")
	r.Await("up")
	r.Signal(syscall.SIGHUP)
	r.Await("hup 1")
	r.Signal(syscall.SIGHUP)
	if got := r.Wait(); got.Code != 0 || !strings.HasSuffix(got.Stdout, "hup 2\ndone\n") {
		t.Errorf("%+v", got)
	}
}

func TestIgnoredSignal(t *testing.T) {
	m := shelltest.New(t, Tools())
	r := m.Start(m.Env("sh", "-c", "trap '' TERM; echo up; sleep 0.1; echo survived"))
	r.Await("up")
	r.Signal(syscall.SIGTERM)
	if got := r.Wait(); got.Code != 0 || got.Stdout != "up\nsurvived\n" {
		t.Errorf("%+v", got)
	}
}

// TestExecPassesSignalsOn replaces a shell by a program that handles a signal.
func TestExecPassesSignalsOn(t *testing.T) {
	programs := Tools()
	programs["server"] = func(ctx context.Context, env *kit.Env) error {
		signals := env.Notify()
		env.Stdout.Write([]byte("serving\n"))
		select {
		case sig := <-signals:
			env.Stdout.Write([]byte("got " + sig.String() + "\n"))
			return kit.Exit(3)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m := shelltest.New(t, programs)
	m.Procs.SetNext(1)
	r := m.Start(m.Env("sh", "-c", "exec server"))
	r.Await("serving")
	r.Signal(syscall.SIGTERM)
	if got := r.Wait(); got.Code != 3 || got.Stdout != "serving\ngot terminated\n" {
		t.Errorf("%+v", got)
	}
}

// TestEverythingEndsWithTheContext kills shells that do all kinds of things.
func TestEverythingEndsWithTheContext(t *testing.T) {
	for _, script := range []string{
		"sleep 1000", "while :; do :; done", "while :; do sleep 0.001; done", "cat", "cat | cat | cat", "yes >/dev/null",
		"yes | cat >/dev/null", "tail -f /etc/passwd", "read x", "sleep 1000 & wait", "(while :; do :; done) & wait",
		"cat <(sleep 1000)", "x=$(cat)", "awk 'BEGIN{while(1);}'", "awk '{print}'", "sed p", "nc -l -p 9", "top -b", "ping 10.244.0.5",
		"find / -exec sleep 1000 \\;", "echo x | xargs -I{} sleep 1000", "timeout 1000 sleep 1000", "trap '' TERM INT; sleep 1000", "watch true",
		"head -c 1000000000000 /dev/zero >/dev/null", "sha256sum /dev/zero", "seq 1 1000000000 >/dev/null", "sh", "dd if=/dev/zero of=/dev/null",
		"grep x", "wc", "sort", "tr a b", "od", "base64", "tee /tmp/x", "tar xf -", "gzip",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			m := shelltest.New(t, Tools())
			m.Procs.Cells = true
			env := m.Env("sh", "-c", "echo >/tmp/begun; "+script)
			r, w := stream.NewPipe()
			defer w.Close()
			env.Stdin = r
			run := m.Start(env)
			for deadline := time.Now().Add(shelltest.Patience); m.Read("/tmp/begun") == ""; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the script has not begun")
				}
			}
			m.Procs.Signal(run.PID(), syscall.SIGKILL)
			if got := run.Wait(); got.Code != 137 {
				t.Errorf("exit code %d, %s", got.Code, got.Stderr)
			}
		})
	}
}

func TestBackgroundJobsOutliveTheShell(t *testing.T) {
	m := shelltest.New(t, Tools())
	got := m.Run("sh", "-c", "(sleep 0.1; echo late >/tmp/late) & echo bye")
	if got.Stdout != "bye\n" {
		t.Fatalf("%+v", got)
	}
	for deadline := time.Now().Add(shelltest.Patience); m.Read("/tmp/late") == ""; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the job ended with the shell")
		}
	}
}

// plainProcs is a process table that cannot fork.
type plainProcs struct{ kit.Processes }

func TestJobsWithoutFork(t *testing.T) {
	m := shelltest.New(t, Tools())
	env := m.Env("sh", "-c", "(trap 'echo term; exit 4' TERM; echo ready; while :; do sleep 0.01; done) & p=$!; sleep 0.1; kill $p; wait $p; echo $?; (while :; do :; done) & kill -9 $!; wait $!; echo $?")
	env.Procs = plainProcs{m.Procs}
	if got := m.Start(env).Wait(); got.Stdout != "ready\nterm\n4\n137\n" {
		t.Errorf("%+v", got)
	}
}

// TestBusyLoopUsesTheProcessor wants a spinning script to be seen by the processor's account.
func TestBusyLoopUsesTheProcessor(t *testing.T) {
	m := shelltest.New(t, Tools())
	cpu := &countedCPU{}
	m.CPU = cpu
	m.Run("sh", "-c", "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; head -c 5000000 /dev/zero | md5sum")
	if used := cpu.Info().Used; used < 10*time.Millisecond {
		t.Errorf("it used %v", used)
	}
}

type countedCPU struct {
	mu   sync.Mutex
	used time.Duration
}

func (c *countedCPU) Use(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used += d
	return ctx.Err()
}

func (c *countedCPU) Info() kit.CPUInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return kit.CPUInfo{Cores: 1, Used: c.used}
}
