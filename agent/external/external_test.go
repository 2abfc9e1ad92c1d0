package external

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/cage"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
)

// behaviour names what the test binary does when it is the agent.
const behaviour = "EXTERNAL_TEST_AGENT"

func TestMain(m *testing.M) {
	if does := children[os.Getenv(behaviour)]; does != nil {
		does()
		return
	}
	goleak.VerifyTestMain(m)
}

// children are agents, good and bad.
var children = map[string]func(){
	"good": func() {
		in := input()
		h := in()
		say(`{"type":"log","text":"hello for a %v in %v"}`, h["task"], h["namespace"])
		in()
		say(`{"type":"call","name":"exec_shell","arguments":{"command":"echo \"a\" && ls","timeout":5}}`)
		say(``)
		fmt.Fprintln(os.Stderr, "thinking")
		o := in()
		say(`{"type":"action","text":"submit(\"%v\")"}`, o["text"])
		e := in()
		fmt.Fprintln(os.Stderr, "end:", e["type"], e["reason"])
	},
	"kubeconfig": func() {
		h := input()()
		b, err := os.ReadFile(h["kubeconfig"].(string))
		fi, _ := os.Stat(h["kubeconfig"].(string))
		say(`{"type":"log","text":"%s %s %v %v"}`, h["kubeconfig"], b, fi.Mode(), err)
		hang()
	},
	"looks around": func() {
		input()()
		say(`{"type":"log","text":"%s%s, %s"}`, os.Getenv("AIOPSLAB_MEMBER_TOKEN_DB"),
			os.Getenv("AIOPSLAB_QUEUE_PASSWORD"), os.Getenv("OPENAI_API_KEY"))
		hang()
	},
	"steady": func() {
		in := input()
		in()
		for {
			in()
			say(`{"type":"call","name":"get_logs","arguments":{"namespace":"shop","service":"geo"}}`)
		}
	},
	"logs too much": func() {
		in := input()
		in()
		in()
		for range 100_000 {
			say(`{"type":"log","text":"la"}`)
		}
		say(`{"type":"action","text":"submit()"}`)
	},
	"leaves after submitting": func() {
		in := input()
		in()
		in()
		say(`{"type":"action","text":"submit()"}`)
	},
	"crash": func() {
		input()()
		fmt.Fprint(os.Stderr, "Traceback\n  line 7\n\nValueError: no model\n")
		os.Exit(3)
	},
	"crash at once": func() { os.Exit(1) },
	"killed": func() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		hang()
	},
	"stops": func() {},
	"hang":  hang,
	"hang without reading, holding on": func() {
		signal.Ignore(syscall.SIGTERM)
		fmt.Fprintln(os.Stderr, "pid", os.Getpid())
		hang()
	},
	"family": func() { // Its child ignores SIGTERM and holds the pipes.
		argv := []string{"/bin/sh", "-c", `trap "" TERM; echo pid $$ >&2; while :; do sleep 1; done`}
		p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
		if err != nil {
			panic(err)
		}
		_ = p.Release()
		hang()
	},
	"orphan": func() { // It exits, and its child holds the pipes.
		argv := []string{"/bin/sh", "-c", `echo pid $$ >&2; sleep 1000`}
		p, err := os.StartProcess(argv[0], argv, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
		if err != nil {
			panic(err)
		}
		_ = p.Release()
		os.Exit(5)
	},
	"long line": func() {
		say(`{"type":"action","text":"%s"}`, strings.Repeat("x", maxLine))
		hang()
	},
	"endless output": func() {
		for {
			os.Stdout.WriteString(strings.Repeat("x", 4096))
		}
	},
	"endless errors": func() {
		for i := range 1 << 20 {
			fmt.Fprintf(os.Stderr, "%07d\n", i)
		}
		os.Exit(9)
	},
	"endless logs": func() {
		for range 300 {
			say(`{"type":"log","text":"%s"}`, strings.Repeat("l", 10000))
		}
		os.Exit(8)
	},
	"no json": func() {
		fmt.Println("I think the pods are fine.")
		hang()
	},
	"wrong type": func() {
		say(`{"type":"submit","text":"Yes"}`)
		hang()
	},
	"misspelt": func() {
		say(`{"type":"call","name":"get_logs","args":{"service":"geo"}}`)
		hang()
	},
	"two at once": func() {
		in := input()
		in()
		in()
		os.Stdout.WriteString("{\"type\":\"action\",\"text\":\"one()\"}\n{\"type\":\"action\",\"text\":\"two()\"}\n")
		hang()
	},
	"closes its input": func() {
		in := input()
		in()
		in()
		os.Stdin.Close()
		say(`{"type":"action","text":"one()"}`)
		hang()
	},
	"closes its output": func() {
		os.Stdout.Close()
		hang()
	},
}

// input returns a function that reads the next message.
func input() func() map[string]any {
	lines := bufio.NewReader(os.Stdin)
	return func() map[string]any {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			os.Exit(77)
		}
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			os.Exit(78)
		}
		return m
	}
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func hang() {
	for {
		time.Sleep(time.Hour)
	}
}

// notes are the events an agent left.
type notes struct {
	told func() // called for each, if it is set
	mu   sync.Mutex
	list []string
}

func (n *notes) note(kind string, data any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, kind+": "+strings.TrimSpace(data.(record.Output).Text))
	if n.told != nil {
		n.told()
	}
}

func (n *notes) all() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.list, "\n")
}

// brief has all limits short, but for those of an exit that will come.
var brief = limits{exit: 200 * time.Millisecond, end: 200 * time.Millisecond, term: 200 * time.Millisecond}

// launch starts the test binary as an agent.
func launch(t testing.TB, does string, wait limits) (*child, *notes) {
	t.Helper()
	if children[does] == nil {
		t.Fatalf("there is no agent %q", does)
	}
	t.Setenv(behaviour, does)
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "none")) // What is not told where to go has no place.
	n := &notes{}
	c, err := start(agent.Briefing{
		Task: problem.Detection, Namespace: "shop", Description: "Find <it> & fix it.", Actions: aci.Actions("detection"),
		Kubeconfig: []byte("apiVersion: v1"), Note: n.note, Scratch: dir,
	}, []string{os.Args[0]}, &cage.Cage{}, wait)
	if err != nil {
		t.Fatal(err)
	}
	return c, n
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, errors.New("the agent's time is up"))
	t.Cleanup(cancel)
	return ctx
}

func TestConversation(t *testing.T) {
	c, n := launch(t, "good", patience)
	ctx := within(t, time.Minute)
	first, err := c.Act(ctx, "Please take the next action")
	if err != nil {
		t.Fatal(err)
	}
	if want := "```\nexec_shell(command=\"echo \\\"a\\\" && ls\", timeout=5)\n```"; first != want {
		t.Errorf("got %q, want %q", first, want)
	}
	second, err := c.Act(ctx, "Yes")
	if err != nil || second != `submit("Yes")` {
		t.Errorf("got %q, %v", second, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff("log: hello for a detection in shop\nstderr: thinking\nend: end submitted", n.all()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestKubeconfig(t *testing.T) {
	c, n := launch(t, "kubeconfig", brief)
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	n.told = cancel
	if _, err := c.Act(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	file, rest, _ := strings.Cut(strings.TrimPrefix(n.all(), "log: "), " ")
	if rest != "apiVersion: v1 -rw------- <nil>" {
		t.Errorf("got %s", n.all())
	}
	if _, err := os.Stat(filepath.Dir(file)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory %s is still there: %v", file, err)
	}
}

// A program has the keys that it is given, but no secret of a group.
func TestTokens(t *testing.T) {
	t.Setenv("AIOPSLAB_MEMBER_TOKEN_DB", "secret")
	t.Setenv("AIOPSLAB_QUEUE_PASSWORD", "secret")
	t.Setenv("OPENAI_API_KEY", "key")
	c, n := launch(t, "looks around", brief)
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	n.told = cancel
	if _, err := c.Act(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got := n.all(); got != "log: , key" {
		t.Errorf("it has %q", got)
	}
}

func TestLeavesAfterSubmitting(t *testing.T) {
	c, _ := launch(t, "leaves after submitting", patience)
	got, err := c.Act(within(t, time.Minute), "x")
	if err != nil || got != "submit()" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestFailures(t *testing.T) {
	for name, want := range map[string]string{
		"crash":             "exited with status 3 before it submitted: Traceback; line 7; ValueError: no model",
		"crash at once":     "exited with status 1 before it submitted",
		"killed":            "was killed by signal 9",
		"stops":             "exited with status 0 before it submitted",
		"orphan":            "exited with status 5",
		"long line":         "a line of more than 1048576 bytes",
		"endless output":    "a line of more than 1048576 bytes",
		"endless errors":    "exited with status 9 before it submitted: 1048573; 1048574; 1048575",
		"endless logs":      "exited with status 8",
		"no json":           `the agent wrote "I think the pods are fine.": this is not JSON; write lines such as {"type":"call"`,
		"wrong type":        `there is no type "submit"; write lines such as`,
		"misspelt":          `unknown field "args"; write lines such as`,
		"two at once":       `the agent wrote "{\"type\":\"action\",\"text\":\"two()\"}" before it was asked`,
		"closes its input":  "closed its standard input",
		"closes its output": "closed its standard output",
	} {
		t.Run(name, func(t *testing.T) {
			c, n := launch(t, name, limits{exit: time.Second, end: time.Minute, term: time.Second})
			ctx := within(t, time.Minute)
			var err error
			for range 2 { // Some do well at first.
				if _, err = c.Act(ctx, "x"); err != nil {
					break
				}
				if name == "two at once" { // Once it is asked again, the second would be an answer.
					<-c.over
				}
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
			if strings.Contains(fmt.Sprint(err), "\n") {
				t.Errorf("not one line: %q", err)
			}
			if errors.Is(err, agent.ErrUnavailable) {
				t.Error("it is not the agent's fault")
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if len(n.all()) > maxLogs+maxStderr+1000 {
				t.Errorf("%d bytes were recorded", len(n.all()))
			}
			if entries, _ := os.ReadDir(os.Getenv("TMPDIR")); len(entries) > 0 {
				t.Errorf("left behind: %v", entries)
			}
		})
	}
}

// Of a flood of small lines a part is recorded, and how much there was more.
func TestLogsTooMuch(t *testing.T) {
	c, n := launch(t, "logs too much", patience)
	if _, err := c.Act(within(t, time.Minute), "x"); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	all := n.all()
	if lines := strings.Count(all, "la"); lines < 100 || lines > 2000 || !strings.Contains(all, "bytes of logs were not kept]") {
		t.Errorf("%d lines were recorded: %s", lines, all[max(0, len(all)-200):])
	}
}

func TestHangs(t *testing.T) {
	for name, reads := range map[string]bool{"hang": true, "hang without reading, holding on": false, "family": true} {
		t.Run(name, func(t *testing.T) {
			c, n := launch(t, name, brief)
			ctx, cancel := context.WithCancelCause(t.Context())
			if name != "hang" {
				for deadline := time.Now().Add(time.Minute); c.tail.lastWords() == "" && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
				}
			}
			text := "x"
			if !reads {
				text = strings.Repeat("x", 1<<20) // More than a pipe holds.
			}
			done := make(chan error, 1)
			go func() { _, err := c.Act(ctx, text); done <- err }()
			cancel(errors.New("the agent's time is up"))
			if err := <-done; err == nil || err.Error() != "the agent's time is up" {
				t.Errorf("got %v", err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			var pid int
			if _, err := fmt.Sscanf(n.all(), "stderr: pid %d", &pid); err != nil {
				pid = c.PID()
			}
			for deadline := time.Now().Add(time.Minute); alive(pid); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("process %d is still there", pid)
				}
			}
		})
	}
}

// alive reports whether a process runs. One that is dead may stay until its new parent has seen it.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		return !bytes.Contains(stat, []byte(") Z ")) && !bytes.Contains(stat, []byte(") X "))
	}
	return syscall.Kill(pid, 0) == nil && !errors.Is(err, os.ErrNotExist)
}

// The agents in examples/ find what is not well, and say so in the form of the task.
func TestExamples(t *testing.T) {
	for name, command := range map[string]string{"python": "python3 ../../examples/agent.py", "shell": "sh ../../examples/agent.sh"} {
		t.Run(name, func(t *testing.T) {
			e, err := Entry(command, &cage.Cage{})
			if errors.Is(err, exec.ErrNotFound) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, pods := range []string{"geo-5d8-x 1/1 Running", "geo-5d8-x 0/1 CrashLoopBackOff"} {
				a, err := e.New(agent.Briefing{Task: problem.Detection, Namespace: "shop", Actions: aci.Actions("detection"), Note: (&notes{}).note})
				if err != nil {
					t.Fatal(err)
				}
				var last string
				for _, observation := range []string{"Please take the next action", pods} {
					if last, err = a.Act(within(t, time.Minute), observation); err != nil {
						t.Fatal(err)
					}
				}
				if err := a.(*child).Close(); err != nil {
					t.Error(err)
				}
				want := map[bool]string{true: "Yes", false: "No"}[strings.Contains(pods, "0/1")]
				if c, err := aci.Parse(last); err != nil || c.Name != "submit" || c.Kwargs["has_anomaly"] != want {
					t.Errorf("%s: got %s, want %s", pods, last, want)
				}
			}
		})
	}
}

func TestSplit(t *testing.T) {
	for command, want := range map[string][]string{
		`python3 agent.py`:                   {"python3", "agent.py"},
		` a  'b c' "d 'e'" f\ g ''`:          {"a", "b c", "d 'e'", "f g", ""},
		`a '$HOME' \$5 --json '{"a":[1,2]}'`: {"a", "$HOME", "$5", "--json", `{"a":[1,2]}`},
		`a *.py`:                             {"a", "*.py"},
	} {
		got, err := split(command)
		if err != nil {
			t.Errorf("%s: %v", command, err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", command, d)
		}
	}
	for command, want := range map[string]string{
		"":              "there is no command",
		"   ":           "there is no command",
		"a 'b":          "cannot be split",
		"a | b":         "cannot be split",
		"a; b":          "cannot be split",
		"a $HOME/x":     "$HOME in it, which is not expanded",
		`a "x ${Y} z"`:  "${Y} in it",
		"a $(rm -rf /)": "$(rm -rf /) in it",
		"a `b`":         "$(b) in it",
	} {
		if _, err := split(command); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", command, err, want)
		}
	}
}

func TestEntry(t *testing.T) {
	if _, err := Entry("no-such-program --flag", &cage.Cage{}); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("got %v", err)
	}
	e, err := Entry("sh -c 'exit 0'", &cage.Cage{})
	if err != nil || e.Name != "exec:sh -c 'exit 0'" || e.KnowsTruth {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestTail(t *testing.T) {
	var tl tail
	for range 10 {
		_, _ = tl.Write(bytes.Repeat([]byte("abcdefg\n"), maxStderr/16+3))
	}
	text, gone := tl.text()
	if len(text) != maxStderr || gone != int64(10*8*(maxStderr/16+3)-maxStderr) || !strings.HasSuffix(text, "abcdefg\n") {
		t.Errorf("%d bytes kept, %d gone", len(text), gone)
	}
}

// Whatever an agent writes, reading it ends, and a complaint is one line.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"type":"action","text":"submit()"}` + "\n"))
	f.Add([]byte(`{"type":"call","name":"get_logs","arguments":{"service":"geo","n":[1,null,{"a":true}]}}` + "\r\n\n{"))
	f.Add([]byte("{\"type\":\"log\",\"text\":\"\xff\"}\n{\"type\":\"call\",\"name\":\"`\"}"))
	f.Add([]byte("{} {}\n[]\nnull"))
	f.Fuzz(func(t *testing.T, output []byte) {
		c := &child{reply: make(chan string, 1), logged: make(chan struct{}, 1), asked: true, room: maxLogs}
		err := c.read(bytes.NewReader(output))
		if err != nil && strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("not one line: %q", err)
		}
		select {
		case response := <-c.reply:
			_, _ = aci.Parse(response)
		default:
		}
	})
}

// BenchmarkAct is what the way through a program adds to an action, with an observation as long as
// they get.
func BenchmarkAct(b *testing.B) {
	c, _ := launch(b, "steady", brief)
	defer c.Close()
	text := strings.Repeat("x", aci.MaxOutput)
	for b.Loop() {
		if _, err := c.Act(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
}
