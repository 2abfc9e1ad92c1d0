package cli_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/aiopslab/aiopslab/aci/tool"
)

// TestScripts runs testdata/script. Besides testscript's own commands, scripts have
//
//	cluster                        use the shared environment, with a namespace of one's own
//	eventually PATTERN CMD ARG...  repeat a command until its output matches
//	status N CMD ARG...            run a command that exits with status N
//	signal NAME                    send a signal to what runs in the background
//
// and the programs in main_test.go. Environments that a script starts are in $AIOPSLAB_TMPDIR,
// Python's client is in $PYTHONPATH, and the repository's clients and examples are where a script
// begins.
func TestScripts(t *testing.T) {
	t.Parallel()
	cache := t.TempDir() // kubectl's, of what the API offers
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: func(e *testscript.Env) error { return setUp(e, cache) },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"cluster": cluster, "eventually": eventually, "status": status, "signal": signal,
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "tinydisk": // It takes a user namespace, or root.
				return exec.Command("tinydisk", cache, "1M", "true").Run() == nil, nil
			case "hangup": // Below nohup nobody is told of a closed terminal.
				return !ossignal.Ignored(syscall.SIGHUP), nil
			case "landlock": // It takes a kernel that has it.
				return !strings.HasPrefix(tool.Describe(false), "none"), nil
			case "apart": // It takes a kernel that can keep a program from signalling others, as Linux 6.12 does.
				abi := 0
				_, _ = fmt.Sscanf(tool.Describe(false), "Landlock ABI %d", &abi)
				return abi >= 6, nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		RequireUniqueNames: true,
	})
}

func setUp(e *testscript.Env, cache string) error {
	// Not below WORK: the name of a socket cannot be long.
	tmp, err := os.MkdirTemp("", "lab")
	if err != nil {
		return err
	}
	e.Defer(func() { os.RemoveAll(tmp) })
	e.Setenv("AIOPSLAB_TMPDIR", tmp)
	e.Setenv("HOME", e.WorkDir)
	e.Setenv("KUBECACHEDIR", cache)
	e.Setenv("KUBECONFIG", "")
	e.Setenv("AIOPSLAB_SEED", "1")
	e.Setenv("AIOPSLAB_NOISE", "none")
	e.Setenv("AIOPSLAB_WORLDS", os.Getenv("AIOPSLAB_WORLDS"))
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	e.Setenv("PYTHONPATH", filepath.Join(root, "clients/python"))
	e.Setenv("SHOP", filepath.Join(root, "examples/shop"))
	for _, dir := range []string{"clients", "examples"} { // The README's commands are for the root.
		if err := os.Symlink(filepath.Join(root, dir), filepath.Join(e.WorkDir, dir)); err != nil {
			return err
		}
	}
	return nil
}

var namespaces atomic.Int32

func cluster(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(shared.start())
	// The number is for go test -count: the namespace of the run before may not be gone yet.
	name := fmt.Sprintf("%s-%d", filepath.Base(ts.Getenv("WORK")), namespaces.Add(1))
	kubeconfig := ts.MkAbs("kubeconfig")
	ts.Check(shared.namespace(name, kubeconfig))
	ts.Defer(func() { shared.remove(name) })
	ts.Setenv("KUBECONFIG", kubeconfig)
	ts.Setenv("NAMESPACE", name)
}

func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually PATTERN CMD ARG...")
	}
	pattern, err := regexp.Compile(`(?m)` + args[0])
	ts.Check(err)
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		if err == nil && pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no %s in what %v says (%v)", args[0], args[1:], err)
		}
	}
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N CMD ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v: %v", args[1:], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("%v: exit status %d, want %d", args[1:], got, want)
	}
}

func signal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}
	if neg || len(args) != 1 || signals[args[0]] == 0 {
		ts.Fatalf("usage: signal HUP|INT|TERM|KILL")
	}
	for _, c := range ts.BackgroundCmds() {
		ts.Check(c.Process.Signal(signals[args[0]]))
	}
}
