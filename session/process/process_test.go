package process

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/problem/problemtest"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

// The test binary is the process of an environment when it is told to be.
func TestMain(m *testing.M) {
	switch os.Getenv("PROCESS_TEST") {
	case "environment":
		pretend(os.Stdin, Answers())
	case "apart":
		answers, err := Stdout()
		if err != nil {
			panic(err)
		}
		fmt.Println("this is no answer")
		pretend(os.Stdin, answers)
	case "supervisor":
		supervise()
	default:
		goleak.VerifyTestMain(m)
	}
}

// pretend is an environment without a cluster. What a response says happens to it.
func pretend(in io.Reader, out io.Writer) {
	w := &writer{w: out}
	log := newRemote(w, nil)
	_ = readLines(in, func(line []byte) error {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		m := message{ID: r.ID}
		switch r.Method {
		case "open":
			var p openParams
			_ = json.Unmarshal(r.Params, &p)
			log = newRemote(w, p.Log)
			log.Info("open", slog.Group("group", "key", "a\nb"))
			log.Debug("opened", "dir", p.Dir)
			if p.Run != nil && p.Run.Handed {
				_ = w.write(message{World: append([]byte("made of "), p.Run.World...)})
			}
		case "prepare":
			log.Info("prepared")
			var p prepareParams
			_ = json.Unmarshal(r.Params, &p)
			_ = w.write(message{Kind: record.PhaseEvent, Data: []byte(`{"name":"deploying"}`)})
			_ = w.write(message{Kind: record.PastEvent, Data: []byte(`{}`)})
			_ = w.write(message{Kind: record.BaselineEvent, Data: []byte(`{}`)})
			api := cmp.Or(os.Getenv("PROCESS_TEST_API"), "https://127.0.0.1:1")
			m.Data, _ = json.Marshal(session.Admission{
				Kubeconfig:  []byte("clusters: [{name: c, cluster: {server: '" + api + "'}}]\n" + kubeconfig),
				Confinement: fmt.Sprint(p.Problem.ID, " ", os.Args[1:], " ", os.Environ()),
			})
		case "export":
			dir, _ := os.MkdirTemp("", "process-test-")
			_ = os.Mkdir(filepath.Join(dir, "metrics"), 0o700)
			_ = os.WriteFile(filepath.Join(dir, "metrics", "up.csv"), []byte("up\n1\n"), 0o600)
			m.Data, _ = json.Marshal(dir)
		case "fetch":
			result, err := (&server{env: &session.Local{}}).do(context.Background(), r)
			if err != nil {
				m.Error = &Failure{Text: err.Error()}
			}
			m.Data, _ = json.Marshal(result)
		case "act":
			var p actParams
			_ = json.Unmarshal(r.Params, &p)
			action, _, _ := strings.Cut(p.Response, " ")
			_ = w.write(message{ID: r.ID, Begun: &action})
			reply, hangs := happen(p.Response)
			if hangs {
				return nil
			}
			m.Data, _ = json.Marshal(reply)
		}
		return w.write(m)
	})
}

const kubeconfig = "contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"

// happen does what a response says.
func happen(response string) (r session.Reply, hangs bool) {
	r = session.Reply{Action: response, Text: "done"}
	switch response {
	case "submit":
		r.Submitted, r.Answer = true, []byte(`"Yes"`)
	case "exit":
		os.Exit(7)
	case "panic":
		panic("oh no")
	case "overflow":
		debug.SetMaxStack(64 << 20)
		r.Submitted = overflow(0) < 0
	case "hang":
		return r, true
	case "eat":
		eat()
	case "eat later":
		time.AfterFunc(50*time.Millisecond, eat)
	case "die later":
		time.AfterFunc(50*time.Millisecond, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) })
	case "make a world":
		_ = (&writer{w: Answers()}).write(message{World: []byte("of an enemy")})
	case "have a child eat":
		cmd := exec.Command("sh", "-c", "x=0123456789abcdef; while :; do x=$x$x; done")
		_ = cmd.Start()
	case "have a child look for the line":
		b, _ := exec.Command("sh", "-c", "test -e /proc/self/fd/3 && echo 3 is open || echo 3 is closed").Output()
		r.Text = strings.TrimSpace(string(b))
	case "babble":
		fmt.Fprintln(Answers(), "what?")
	}
	return r, false
}

//go:noinline
func overflow(n int) int {
	if n < 0 { // It never is: the stack ends before.
		return n
	}
	return overflow(n+1) + 1
}

var eaten [][]byte

func eat() {
	for {
		b := make([]byte, 16<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		eaten = append(eaten, b)
	}
}

func start(t *testing.T, log *slog.Logger) *Environment {
	t.Helper()
	e, err := Start(Options{
		Program: os.Args[0], Args: []string{"-test.run=none"}, Dir: t.TempDir(), Ceiling: 512 << 20, grace: 100 * time.Millisecond, Log: log,
		Env: append(os.Environ(), "PROCESS_TEST=environment"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// Whatever an action does to the process, the run has a verdict, and it is about the agent. What
// happens while none is under way is the agent's doing only if there is a sign of that.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		response string
		want     session.Class
		why      string
		linux    bool
	}{
		{"submit", session.GraderFailed, "could not be looked at", false}, // This environment shows nothing.
		{"exit", session.AgentFailed, "the agent's action ended the environment: exit status 7", false},
		{"panic", session.AgentFailed, "the agent's action ended the environment: panic: oh no", false},
		{"overflow", session.AgentFailed, "goroutine stack exceeds", false},
		{"babble", session.AgentFailed, "it wrote what cannot be understood", false},
		{"hang", session.AgentFailed, "did not answer", false},
		{"eat", session.AgentFailed, "it took more than 512 MB of memory", true},
		{"eat later", session.AgentFailed, "what the agent left running ended the environment: it took more than 512 MB", true},
		{"have a child eat", session.AgentFailed, "it took more than 512 MB", true},
		{"die later", session.Infra, "signal: killed; no action of the agent was under way", false},
	} {
		t.Run(c.response, func(t *testing.T) {
			if c.linux && runtime.GOOS != "linux" {
				t.Skip("memory is not watched here")
			}
			p := problemtest.Find(t, "revoke_auth_mongodb-detection-1")
			asked := false
			a := agent.Func(func(ctx context.Context, _ string) (string, error) {
				if !asked {
					asked = true
					return c.response, nil
				}
				<-ctx.Done()
				return "", context.Cause(ctx)
			})
			s := session.Session{
				Problem: p, Environment: start(t, nil), Results: t.TempDir(),
				Agent: agent.Entry{Name: "a", New: func(agent.Briefing) (agent.Agent, error) { return a, nil }},
			}
			if c.response == "hang" {
				s.Time = 100 * time.Millisecond
			}
			o, err := s.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if o.Verdict.Class != c.want || !strings.Contains(o.Verdict.Why, c.why) {
				t.Errorf("%s: %s", o.Verdict.Class, o.Verdict.Why)
			}
			rec, err := record.Read(o.Record)
			if err != nil {
				t.Fatal(err)
			}
			kinds := ""
			for _, e := range rec.Events {
				kinds += e.Kind + " "
			}
			// The agent could not read when the system was well.
			if !strings.HasPrefix(kinds, "phase phase briefing action ") || !strings.Contains(kinds, " problem past baseline ") {
				t.Errorf("the record has %s", kinds)
			}
		})
	}
}

// worlds keep the last one.
type worlds struct{ last []byte }

func (w *worlds) Get(*app.App) []byte      { return w.last }
func (w *worlds) Put(_ *app.App, b []byte) { w.last = b }

// The supervisor keeps the worlds of its environments and hands them to the next. It takes none from a process that an
// agent has had its way in, or a verdict of somebody else would be up to that agent.
func TestWorlds(t *testing.T) {
	w := &worlds{last: []byte("nothing")}
	e := start(t, nil)
	e.Worlds = w
	p := problemtest.Find(t, "revoke_auth_mongodb-detection-1")
	if err := e.OpenFor(t.Context(), p.App, 1); err != nil || string(w.last) != "made of nothing" {
		t.Fatalf("%q is kept, %v", w.last, err)
	}
	if _, err := e.Prepare(t.Context(), session.Setting{Problem: p}, func(string, any) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Act(t.Context(), "make a world", func(string) {}); err != nil {
		t.Fatal(err)
	}
	if string(w.last) != "made of nothing" {
		t.Errorf("an agent has made %q", w.last)
	}
}

// Neither the arguments nor the variables of the process tell the problem.
func TestSecret(t *testing.T) {
	e := start(t, nil)
	p := problemtest.Find(t, "revoke_auth_mongodb-detection-1")
	a, err := e.Prepare(t.Context(), session.Setting{Problem: p}, func(string, any) {})
	if err != nil || strings.Count(a.Confinement, "revoke_auth") != 1 {
		t.Errorf("%v, %v", a.Confinement, err)
	}
}

// supervise is a supervisor that is killed.
func supervise() {
	e, err := Start(Options{Program: os.Args[0], Dir: ".", Env: append(os.Environ(), "PROCESS_TEST=environment")})
	if err != nil {
		panic(err)
	}
	fmt.Println(e.PID())
	go func() { _, _ = e.Act(context.Background(), "hang", func(string) {}) }()
	select {}
}

// A supervisor that is killed leaves no process behind.
func TestNoOrphan(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PROCESS_TEST=supervisor")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for gone := false; !gone; time.Sleep(time.Millisecond) {
		gone = errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid)
		if t.Context().Err() != nil {
			t.Fatal("it is still there")
		}
	}
}

// zombie reports whether a process only waits for its end to be noticed.
func zombie(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && strings.Contains(string(b), ") Z ")
}

func TestEnds(t *testing.T) {
	e := &ends{}
	for i := range 100_000 {
		fmt.Fprintf(e, "line %d\n", i)
	}
	s := e.String()
	if len(s) > 2*kept || !strings.HasPrefix(s, "line 0\n") || !strings.HasSuffix(s, "line 99999\n") {
		t.Errorf("%d bytes", len(s))
	}
}

func TestEpitaph(t *testing.T) {
	status := errors.New("exit status 2")
	for stderr, want := range map[string]string{
		"":                             "exit status 2",
		"aiopslab: the disk is full\n": "aiopslab: the disk is full (exit status 2)",
		"panic: oh no\n\ngoroutine 1 [x]:\n\tf\n": "panic: oh no (exit status 2)",
		"fatal error: all goroutines\nmore\n":     "fatal error: all goroutines (exit status 2)",
	} {
		if got := epitaph(stderr, status); got != want {
			t.Errorf("%q: %q, want %q", stderr, got, want)
		}
	}
}
