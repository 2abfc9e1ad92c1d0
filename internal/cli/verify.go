package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// verifyTries is how often a cell is run if the environment fails: that says nothing of the problem.
const verifyTries = 3

// provers are the agents that prove something.
var provers = append([]string{"oracle", "noop"}, fault.Remedies...)

type verifyFlags struct {
	suite   string
	agents  []string
	workers int
	repeat  int
	seed    uint64
	results string
	output  string
	memory  memoryFlag
}

// cell is a problem and an agent, and what must come of it.
type cell struct {
	Problem string  `json:"problem"`
	Agent   string  `json:"agent"`
	Want    string  `json:"want"` // "solved" or "agent"
	Got     string  `json:"got,omitempty"`
	Why     string  `json:"why,omitempty"`
	Record  string  `json:"record,omitempty"`
	Seconds float64 `json:"seconds"`

	file string // of a problem that is not built in
	seed uint64
}

func (c *cell) holds() bool { return c.Got == c.Want }

func newVerify(s *State) *cobra.Command {
	f := &verifyFlags{}
	c := &cobra.Command{
		Use:   "verify [PROBLEM...]",
		Short: "Prove problems: the reference solution passes, doing nothing and blunt remedies fail",
		Long: `Prove problems. For each of them, the reference solution must pass; doing
nothing must fail, if something is wrong. Where the system is to be mended, in a
mitigation or an incident, blunt remedies must fail as well: restarting or
rolling back everything, scaling to zero, deleting the workload, lifting limits,
silencing alerts; unless the problem says, with a reason, that one of them is a
true fix, which must pass then, or may be one by luck, which is not run.

Every run has a cluster and a process of its own. The exit status is 0 only if
all of it holds.`,
		Example: `  aiopslab verify scale_pod_zero_social_net-mitigation-1
  aiopslab verify --suite mitigation -j 4
  aiopslab verify --agents oracle`,
		RunE: func(c *cobra.Command, args []string) error { return verify(c.Context(), s, f, args) },
	}
	flags := c.Flags()
	flags.StringVar(&f.suite, "suite", "all",
		"the problems to prove, if none is named: "+strings.Join(suiteNames(), ", "))
	flags.StringSliceVar(&f.agents, "agents", nil, "only these agents: "+strings.Join(provers, ", "))
	flags.IntVarP(&f.workers, "workers", "j", 2*runtime.NumCPU(), "how many runs go on at a time")
	flags.IntVar(&f.repeat, "repeat", 1, "how often each is run, each time with the next seed")
	flags.Uint64Var(&f.seed, "seed", 1, "what is left to chance is drawn from this `number`")
	flags.StringVar(&f.results, "results", "",
		"`directory` of the records; by default they are kept only of what does not hold")
	f.memory.add(c)
	outputFlag(c, &f.output, dataFormats...)
	completeFlag(c, "suite", suiteNames)
	completeFlag(c, "agents", func() []string { return provers })
	completeArgs(c, s.problemIDs, false, true)
	return c
}

// cells are the matrix of the problems.
func (f *verifyFlags) cells(problems []*problem.Problem) []*cell {
	var list []*cell
	add := func(p *problem.Problem, agent string, solves bool) {
		if len(f.agents) > 0 && !slices.Contains(f.agents, agent) {
			return
		}
		want := session.AgentFailed
		if solves {
			want = session.Solved
		}
		c := &cell{Problem: p.ID, Agent: agent, Want: string(want)}
		if !p.BuiltIn() {
			c.file = p.Document.File
		}
		list = append(list, c)
	}
	for _, p := range problems {
		add(p, "oracle", true)
		add(p, "noop", !p.Faulty())
		if !p.Faulty() || !p.Asks(problem.Mitigation) {
			continue
		}
		fixes, lucky := p.TrueFixes(), p.MayFix()
		for _, remedy := range fault.Remedies {
			_, fix := fixes[remedy]
			if _, ok := lucky[remedy]; !ok {
				add(p, remedy, fix)
			}
		}
	}
	return list
}

func (f *verifyFlags) problems(s *State, ids []string) ([]*problem.Problem, error) {
	if len(ids) == 0 {
		l, err := s.library()
		if err != nil {
			return nil, err
		}
		list, err := l.Suite(f.suite)
		return list, fail(ExitUsage, err, "")
	}
	var list []*problem.Problem
	for _, id := range ids {
		more, err := findProblems(s, id)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

func verify(ctx context.Context, s *State, f *verifyFlags, ids []string) error {
	if f.workers < 1 || f.repeat < 1 {
		return fail(ExitUsage, fmt.Errorf("-j %d --repeat %d: both are 1 at least", f.workers, f.repeat), "")
	}
	for _, a := range f.agents {
		if !slices.Contains(provers, a) {
			return fail(ExitUsage, fmt.Errorf("--agents %s proves nothing", a),
				"Choose among "+strings.Join(provers, ", ")+".")
		}
	}
	problems, err := f.problems(s, ids)
	if err != nil {
		return err
	}
	var cells []*cell
	for i := range f.repeat {
		for _, c := range f.cells(problems) {
			c.seed = f.seed + uint64(i)
			cells = append(cells, c)
		}
	}
	if _, err := environments(tempDir(s)); err != nil { // Cleans up after the killed.
		return err
	}
	results, err := newDir(tempDir(s))
	if err != nil {
		return fail(ExitEnvironment, err, tempHint)
	}
	defer os.RemoveAll(results)
	if f.results != "" {
		if err := checkResults(f.results); err != nil {
			return err
		}
		results = f.results
	}
	ctx, cancel := untilSignal(ctx, func() {})
	defer cancel()
	out := s.Stdout
	if f.output != "" {
		out = s.Stderr
	}
	start := time.Now()
	fmt.Fprintf(out, "%d runs of %d %s, %d at a time\n", len(cells), len(problems), plural(len(problems), "problem"),
		f.workers)
	var mu sync.Mutex
	done, bad := 0, 0
	program := self(s)
	args := slices.Concat(s.dirs.args(), s.logs.args(),
		[]string{"--results", results, "--max-memory", f.memory.String(), "--quiet", "-o", "json"})
	log := &lines{w: io.Discard} // What went wrong is told in the table.
	if s.logs.settings().Or(logs.Settings{Level: logs.Off}).Level != logs.Off {
		log.w = s.Stderr
	}
	work := make(chan *cell)
	var workers sync.WaitGroup
	for range f.workers {
		workers.Go(func() {
			for c := range work {
				c.run(ctx, program, args, log)
				mu.Lock()
				done++
				mark := "ok  "
				if !c.holds() {
					bad++
					mark = "BAD "
					c.keep(f.results)
				}
				fmt.Fprintf(out, "%4d/%d  %s  %-55s %-22s %-8s %5.1f s  %s\n", done, len(cells), mark, c.Problem,
					c.Agent, c.Got, c.Seconds, c.explain())
				mu.Unlock()
			}
		})
	}
	for _, c := range cells {
		if ctx.Err() != nil {
			break
		}
		work <- c
	}
	close(work)
	workers.Wait()
	if ctx.Err() != nil {
		return exitStatus(ExitSignal + int(syscall.SIGINT))
	}
	if _, err := printData(s.Stdout, f.output, cells); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d hold, in %v\n", len(cells)-bad, len(cells), time.Since(start).Round(time.Second))
	if bad > 0 {
		return exitStatus(ExitUnsolved)
	}
	return nil
}

// run runs the cell in a process of its own, which says on its standard error what it logs, and why it failed.
func (c *cell) run(ctx context.Context, program string, args []string, log *lines) {
	start := time.Now()
	defer func() { c.Seconds = time.Since(start).Seconds() }()
	for range verifyTries {
		cmd := exec.CommandContext(ctx, program,
			slices.Concat(c.name(), []string{"--agent", c.Agent, "--seed", fmt.Sprint(c.seed)}, args)...)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = time.Minute
		// A terminal would send Ctrl-C to it as well, and the second signal kills it before it has cleaned up.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, io.MultiWriter(&stderr, log.writer())
		err := cmd.Run()
		if ctx.Err() != nil {
			return
		}
		var o session.Outcome
		if json.Unmarshal(stdout.Bytes(), &o) != nil {
			c.Got, c.Why = string(session.Infra), lastLine(stderr.String(), err)
			continue
		}
		c.Got, c.Why, c.Record = string(o.Verdict.Class), o.Verdict.Why, o.Record
		if o.Verdict.Class != session.Infra {
			return
		}
	}
}

// name is the command that runs the problem.
func (c *cell) name() []string {
	if c.file != "" {
		return []string{"run", c.file, "--task", c.Problem}
	}
	return []string{"run", c.Problem}
}

// keep moves the records of a cell out of the temporary directory, unless they are in another one.
func (c *cell) keep(results string) {
	if results != "" || c.Record == "" || os.MkdirAll(defaultResults, 0o755) != nil {
		return
	}
	for _, file := range []string{c.Record, strings.TrimSuffix(c.Record, ".jsonl") + ".json"} {
		if b, err := os.ReadFile(file); err == nil &&
			os.WriteFile(filepath.Join(defaultResults, filepath.Base(file)), b, 0o644) == nil {
			continue
		}
		return
	}
	c.Record = filepath.Join(defaultResults, filepath.Base(c.Record))
}

// explain says why a cell does not hold.
func (c *cell) explain() string {
	if c.holds() {
		return ""
	}
	return fmt.Sprintf("want %s: %s %s", c.Want, oneLine(c.Why), c.Record)
}

func lastLine(text string, err error) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return fmt.Sprint(err)
}
