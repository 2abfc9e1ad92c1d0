package cage

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// place is a working directory as people have them: an agent's files beside the lab's records.
type place struct{ dir, scratch, results string }

func newPlace(t *testing.T) place {
	t.Helper()
	dir := t.TempDir()
	p := place{dir, filepath.Join(dir, "lab", "scratch"), filepath.Join(dir, "results")}
	for name, text := range map[string]string{
		"agent.py": "print('my own')", "parts/part.py": "a part", "results/1.jsonl": "the secret", "lab/etcd": "the secret",
		"lab/scratch/kubeconfig": "mine", "home/.bash_history": "aiopslab run the secret", "home/notes": "a note",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("results", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", filepath.Join(dir, "home"))
	return p
}

func (p place) cage() *Cage {
	return &Cage{Hidden: []string{p.results, filepath.Join(p.dir, "la*")}}
}

// runAgent runs a script as an agent's program, and returns what it prints.
func (p place) runAgent(t *testing.T, c *Cage, command ...string) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, w, w
	err = c.Start(cmd, p.scratch)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return string(text)
}

func needCage(t *testing.T) {
	t.Helper()
	if gap := (&Cage{}).Gap(); gap != "" {
		t.Skip(gap)
	}
}

// A program that is an agent cannot read what the lab writes, end the lab or look into it, with the same
// user's rights or the superuser's. The signal is one that a Go program ignores, in case that it can.
func TestHeldIn(t *testing.T) {
	needCage(t)
	lab, environment := os.Getpid(), exec.Command("sleep", "60")
	environment.Env = append(os.Environ(), "PROBLEM=the secret")
	if err := environment.Start(); err != nil {
		t.Fatal(err)
	}
	defer environment.Wait()
	defer environment.Process.Kill()
	other := environment.Process.Pid
	for _, c := range []struct{ name, script string }{
		{"reads a record", "cat results/1.jsonl"},
		{"reads a record by a link", "cat link/1.jsonl"},
		{"reads a record by its whole name", "cat $PWD/results/1.jsonl"},
		{"links a record into its own directory", "ln results/1.jsonl lab/scratch/r && cat lab/scratch/r"},
		{"moves the records", "mv results lab/scratch/r && cat lab/scratch/r/*"},
		{"mounts the records elsewhere", "unshare -Urm sh -c 'mount --bind results parts && cat parts/1.jsonl'"},
		{"reads the lab's files", "cat lab/etcd"},
		{"reads what was typed", "cat home/.bash_history"},
		{"writes a record", "echo the secret >results/2.jsonl && cat results/2.jsonl"},
		{"removes a record", "rm -f results/1.jsonl && echo the secret is gone"},
		{"writes what others run", "echo the secret >agent.py && cat agent.py"},
		{"signals the lab", fmt.Sprintf("kill -URG $PPID && echo the secret; kill -URG %d && echo the secret", lab)},
		{"signals from a session of its own", fmt.Sprintf("setsid sh -c 'kill -URG %d && echo the secret'", lab)},
		{"reads the environment's memory", fmt.Sprintf(": </proc/%d/mem && echo the secret", other)},
		{"reads the environment's variables", fmt.Sprintf("tr '\\0' '\\n' </proc/%d/environ", other)},
		{"reads a command line", fmt.Sprintf("tr '\\0' ' ' </proc/%d/cmdline | grep sleep && echo the secret", other)},
		{"lists processes", "ls /proc | grep -q . && echo the secret"},
		{"looks for the lab's files", fmt.Sprintf("readlink /proc/%d/cwd && echo the secret", lab)},
		{"bounds the environment", fmt.Sprintf("prlimit --pid %d --cpu=1 && echo the secret", other)},
		{"slows the environment", fmt.Sprintf("renice -n 19 -p %d && echo the secret", other)},
		{"opens another terminal", "for t in /dev/pts/*; do : <$t && echo the secret; done"},
		{"signals the environment", fmt.Sprintf("kill -KILL %d && echo the secret", other)},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			if got := p.runAgent(t, p.cage(), "sh", "-c", c.script); strings.Contains(got, "the secret") {
				t.Errorf("%s: %q", c.script, got)
			}
			if b, err := os.ReadFile(filepath.Join(p.results, "1.jsonl")); err != nil || string(b) != "the secret\n" {
				t.Errorf("the record is %q, %v", b, err)
			}
		})
	}
	// The thread that was kept apart is gone: the lab can still end what it has to.
	if err := environment.Process.Kill(); err != nil {
		t.Error(err)
	}
}

// Whatever thread a program is started from, the main one too, it is held in.
func TestAnyThread(t *testing.T) {
	needCage(t)
	p := newPlace(t)
	for range 50 {
		script := fmt.Sprintf("kill -URG %d || echo refused", os.Getpid())
		if got := p.runAgent(t, p.cage(), "sh", "-c", script); !strings.Contains(got, "refused") {
			t.Fatal("it could signal the lab")
		}
	}
}

// A program cannot have others do for it what it may not: a server of its user's on a socket of the machine.
func TestNoSockets(t *testing.T) {
	needCage(t)
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	p := newPlace(t)
	l, err := net.Listen("unix", filepath.Join(p.dir, "bus"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	over, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	const script = `
import socket, sys
def tries(name, what):
    try:
        what()
        print(name, "yes")
    except OSError as e:
        print(name, "no")
tries("bus", lambda: socket.socket(socket.AF_UNIX).connect(sys.argv[1]))
tries("pair", lambda: socket.socketpair())
tries("network", lambda: socket.create_connection(("127.0.0.1", int(sys.argv[2]))))
`
	_, port, _ := net.SplitHostPort(over.Addr().String())
	got := p.runAgent(t, p.cage(), "python3", "-c", script, filepath.Join(p.dir, "bus"), port)
	if want := "bus no\npair yes\nnetwork yes\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A stream that is called as a device is, and is a pipe, is no device to grant.
func TestStreams(t *testing.T) {
	needCage(t)
	p := newPlace(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	fd, err := unix.Dup(int(w.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	out := os.NewFile(uintptr(fd), "/dev/stdout")
	defer out.Close()
	cmd := exec.Command("true")
	cmd.Dir, cmd.Stdout = p.dir, out
	if err := p.cage().Start(cmd, p.scratch); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// What a program needs, it has: its own files and those beside them, what it is given, a place for its own,
// the system's.
func TestWorks(t *testing.T) {
	needCage(t)
	p := newPlace(t)
	given := t.TempDir()
	for _, c := range []struct {
		name, script, want string
		cage               *Cage
	}{
		{"its directory", "cat agent.py parts/part.py && ls", "my own", p.cage()},
		{"its scratch", "echo mine >$TMPDIR/x && cat $TMPDIR/x && mkdir $TMPDIR/d && mv $TMPDIR/x $TMPDIR/d/y && ls $TMPDIR/d", "y", p.cage()},
		{"its kubeconfig", "cat " + p.scratch + "/kubeconfig", "mine", p.cage()},
		{"the system", "cat /etc/hosts /proc/meminfo >/dev/null && date >/dev/null && echo fine", "fine", p.cage()},
		{"what it started", "sleep 60 & kill $! && wait $!; echo $?", "143", p.cage()},
		{"a pipe by name", "echo piped | cat /dev/stdin", "piped", p.cage()},
		{"what it is given to write", "echo kept >" + given + "/x && cat " + given + "/x", "kept", &Cage{Write: []string{given}}},
		{"nothing is in the way", "cat results/1.jsonl", "the secret", &Cage{Off: true, Hidden: []string{p.results}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := p.runAgent(t, c.cage, "sh", "-c", c.script); !strings.Contains(got, c.want) {
				t.Errorf("%s: %q", c.script, got)
			}
		})
	}
	other := newPlace(t) // An agent from elsewhere, named by its path.
	if got := p.runAgent(t, p.cage(), "sh", "-c", "cat "+other.dir+"/agent.py"); strings.Contains(got, "my own") {
		t.Errorf("it reads what nobody named: %q", got)
	}
	if got := p.runAgent(t, p.cage(), "cat", filepath.Join(other.dir, "agent.py")); !strings.Contains(got, "my own") {
		t.Errorf("it cannot read what its argument names: %q", got)
	}
}

// An interpreter that is not the system's works with its libraries.
func TestInterpreter(t *testing.T) {
	needCage(t)
	p := newPlace(t)
	for name, command := range map[string][]string{
		"python3": {"python3", "-c", "import json, ssl, subprocess, tempfile, concurrent.futures as f\n" +
			"tempfile.TemporaryFile()\nprint(subprocess.run(['echo', 'fine'], capture_output=True).stdout)"},
		"node": {"node", "-e", "require('child_process').exec('echo fine', (e, out) => console.log(out))"},
		"bash": {"bash", "-c", "cat <(echo fine)"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				t.Skip(err)
			}
			if got := p.runAgent(t, p.cage(), command...); !strings.Contains(got, "fine") {
				t.Errorf("%q", got)
			}
		})
	}
}
