package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/cage"
	"github.com/aiopslab/aiopslab/internal/term"
	"github.com/aiopslab/aiopslab/problem"
)

// The test binary is submit when it is called by that name, and who opens a shell on a terminal when
// the environment says so.
func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == Program:
		if err := Submit(os.Getenv(CounterVariable), os.Args[1:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	case filepath.Base(os.Args[0]) == "kubectl":
		fmt.Println("this is kubectl with", os.Getenv("KUBECONFIG"))
	case os.Getenv("TERMINAL_TEST_SHELL") != "":
		openShell(os.Getenv("TERMINAL_TEST_SHELL"))
	default:
		goleak.VerifyTestMain(m)
	}
}

// openShell lets a shell have the terminal, and then reads a line from it.
func openShell(shell string) {
	self, _ := os.Executable()
	e, err := Entry(Options{Command: []string{shell}, Shell: true, Self: self, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Cage: &cage.Cage{}})
	if err != nil {
		panic(err)
	}
	a, err := e.New(agent.Briefing{Task: problem.Detection})
	if err != nil {
		panic(err)
	}
	response, err := a.Act(context.Background(), "")
	fmt.Printf("response %q, %v\n", response, err)
	fmt.Println("close:", a.(*desk).Close())
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	fmt.Printf("then read %q, %v\n", line, err)
}

// files are an empty input of a command, and where it writes to.
func files(t *testing.T) (in, out *os.File) {
	t.Helper()
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	if out, err = os.Create(filepath.Join(t.TempDir(), "out")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		out.Close()
	})
	return in, out
}

// work has a command at work on a task. It returns what the command wrote.
func work(t *testing.T, ctx context.Context, task problem.Task, command ...string) (response, output string, err error) {
	t.Helper()
	null, out := files(t)
	tmp, err := os.MkdirTemp("", "t") // Its name must be short.
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	e, err := Entry(Options{Command: command, Self: os.Args[0], Stdin: null, Stdout: out, Stderr: out, Cage: &cage.Cage{}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.New(agent.Briefing{Task: task, Scratch: tmp, Namespace: "shop", Description: "Find it.", Kubeconfig: []byte("apiVersion: v1\n")})
	if err != nil {
		t.Fatal(err)
	}
	response, acted := a.Act(ctx, "")
	if err := a.(*desk).Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(tmp); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	b, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return response, string(b), acted
}

func TestCommand(t *testing.T) {
	response, output, err := work(t, t.Context(), problem.Localization, "sh", "-c", `
kubectl get pods; cat $KUBECONFIG; stat -c %a $KUBECONFIG
submit; echo status $?
submit --frob; echo status $?
submit --help; echo status $?
submit geo rate,profile; echo status $?
submit again; echo status $?
`)
	if want := "```\nsubmit([\"geo\",\"rate\",\"profile\"])\n```"; err != nil || response != want {
		t.Errorf("got %q, %v, want %q", response, err, want)
	}
	rest := output
	for _, want := range []string{
		"Find it.", "its namespace is shop", "submit NAME...",
		"this is kubectl with ", "/kubeconfig\n", "apiVersion: v1\n", "600\n",
		"name the faulty services, or write --no-fault\n", "status 2\n",
		"there is no flag --frob\n", "status 2\n",
		"submit NAME...", "status 0\n",
		"Submitted. The run is over, and is being graded.\nstatus 0\n",
		"status 2\n",
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("no %q in its place in\n%s", want, output)
		}
		rest = after
	}
}

func TestSubmitsLast(t *testing.T) {
	for range 20 { // The answer and the exit of the command race.
		response, output, err := work(t, t.Context(), problem.Mitigation, "sh", "-c", "exec submit")
		if want := "```\nsubmit()\n```"; err != nil || response != want {
			t.Fatalf("got %q, %v\n%s", response, err, output)
		}
	}
}

func TestNoSubmission(t *testing.T) {
	_, _, err := work(t, t.Context(), problem.Detection, "sh", "-c", "submit maybe; exit 3")
	if err == nil || !strings.HasPrefix(err.Error(), "the command exited with status 3 without a submission") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("the agent's time is up"))
	defer cancel()
	_, _, err = work(t, ctx, problem.Detection, "sh", "-c", "sleep 1000")
	if err == nil || err.Error() != "the agent's time is up" {
		t.Errorf("got %v", err)
	}
}

func TestEntry(t *testing.T) {
	if _, err := Entry(Options{Command: []string{"no-such-program"}}); err == nil {
		t.Error("a command that is not there is accepted")
	}
}

func TestSubmitWithoutRun(t *testing.T) {
	for _, socket := range []string{"", filepath.Join(t.TempDir(), "none")} {
		if err := Submit(socket, []string{"Yes"}, os.Stderr); !errors.Is(err, ErrNoRun) {
			t.Errorf("socket %q: %v", socket, err)
		}
	}
}

func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		task, args, want string // args are separated by |
	}{
		{term.Detection, "Yes", `submit("Yes")`},
		{term.Detection, "no", `submit("No")`},
		{term.Localization, "geo", `submit(["geo"])`},
		{term.Localization, "geo|rate", `submit(["geo","rate"])`},
		{term.Localization, "geo, rate", `submit(["geo","rate"])`},
		{term.Localization, `["geo"]`, `submit(["geo"])`},
		{term.Localization, "[]", `submit([])`},
		{term.Localization, "--no-fault", `submit([])`},
		{term.Analysis, "--system-level|application|--fault-type=Code Defect", `submit({"fault_type":"Code Defect","system_level":"Application"})`},
		{term.Analysis, `{"system_level":"Hardware","fault_type":"operation error"}`, `submit({"fault_type":"Operation Error","system_level":"Hardware"})`},
		{term.Analysis, "--no-fault", `submit()`},
		{term.Mitigation, "", `submit()`},
	} {
		got, err := answer(c.task, words(c.args))
		if want := "```\n" + c.want + "\n```"; err != nil || got != want {
			t.Errorf("%s: submit %s: got %q, %v", c.task, c.args, got, err)
		}
	}
	for _, c := range []struct{ task, args, want string }{
		{term.Detection, "", `Yes or No`},
		{term.Detection, "maybe", `Yes or No, not "maybe"`},
		{term.Detection, "Yes|No", `Yes or No, not "Yes No"`},
		{term.Localization, "", "name the faulty services"},
		{term.Localization, ",", "name the faulty services"},
		{term.Localization, "[1]", "not a JSON list of names"},
		{term.Localization, "[", "not a JSON list of names"},
		{term.Localization, "-x", "there is no flag -x"},
		{term.Analysis, "", "needs --system-level and --fault-type"},
		{term.Analysis, "Application", `no place for "Application"`},
		{term.Analysis, "--level|x", "flag provided but not defined"},
		{term.Analysis, "--system-level|Application", "fault_type is missing"},
		{term.Analysis, "--system-level|Aplication|--fault-type|Code Defect", `did you mean "Application"?`},
		{term.Analysis, "--system-level|Kernel|--fault-type|Code Defect", "it is one of Hardware, "},
		{term.Analysis, `{"system_level":1}`, "not a JSON object of texts"},
		{term.Analysis, `{"system_level":"Application","fault_type":"Code Defect","x":"y"}`, `there is no key "x"`},
		{term.Mitigation, "done", "the system itself is judged"},
	} {
		if _, err := answer(c.task, words(c.args)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: submit %s: got %v, want %s", c.task, c.args, err, c.want)
		}
	}
}

func words(args string) []string {
	if args == "" {
		return nil
	}
	return strings.Split(args, "|")
}

// Whatever is handed in, it is refused or becomes a call that the lab understands.
func FuzzAnswer(f *testing.F) {
	for _, args := range []string{"Yes", "geo|rate", `["geo"]`, "--system-level|Application|--fault-type|Code Defect", `{"system_level":"x"}`, "--no-fault", ""} {
		f.Add(args)
	}
	f.Fuzz(func(t *testing.T, args string) {
		for _, task := range term.Tasks {
			response, err := answer(task, words(args))
			if err != nil {
				continue
			}
			if call, err := aci.Parse(response); err != nil || call.Name != "submit" || call.Note != "" {
				t.Errorf("%s: submit %s becomes %q: %v, %v", task, args, response, call, err)
			}
		}
	})
}

// An incident has one question after another for a command. Each is told when the answer before it was taken, and the
// last answer is told to be the last whether or not anybody could know that it was.
func TestIncident(t *testing.T) {
	for _, last := range []string{term.Analysis, term.Mitigation} {
		null, out := files(t)
		e, err := Entry(Options{Command: []string{"sh", "-c", `
submit geo; submit Yes; submit Yes; submit geo; submit --no-fault; echo status $?; submit; echo bye`}, Self: os.Args[0], Stdin: null, Stdout: out, Stderr: out, Cage: &cage.Cage{}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := e.New(agent.Briefing{Task: problem.Incident, Namespace: "shop", Description: "Find it.", Kubeconfig: []byte("apiVersion: v1\n")})
		if err != nil {
			t.Fatal(err)
		}
		var responses []string
		observation := aci.NextAction
		for _, q := range term.Questions {
			response, err := a.Act(t.Context(), observation)
			if err != nil {
				t.Fatal(err)
			}
			responses = append(responses, strings.Trim(response, "`\n"))
			if q == last {
				break
			}
			observation = "ok\n\n" + aci.Ask(term.Questions[len(responses)]) + "\n" + aci.NextAction
		}
		if err := a.(*desk).Close(); err != nil {
			t.Error(err)
		}
		want := []string{`submit("Yes")`, `submit(["Yes"])`, `submit()`, `submit()`}
		if last == term.Analysis {
			want = want[:3]
		}
		// The second Yes is the name of a service, as far as anybody can tell, and then geo is no cause.
		if diff := cmp.Diff(want, responses); diff != "" {
			t.Error(diff)
		}
		b, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		rest := string(b)
		for _, want := range []string{
			"An answer is submitted, once, with", `Yes or No, not "geo"`, "Submitted.\n\nQuestion (localization)", "submit NAME...",
			"Submitted.\n\nQuestion (analysis)", `no place for "geo"`, map[string]string{term.Mitigation: "Question (mitigation)", term.Analysis: runOver}[last],
			"status 0",
		} {
			_, after, ok := strings.Cut(rest, want)
			if !ok {
				t.Fatalf("no %q in its place in\n%s", want, b)
			}
			rest = after
		}
	}
}
