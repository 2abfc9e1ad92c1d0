package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// cell is a problem and an agent, and what must come of it.
type cell struct {
	Problem string  `json:"problem"`
	Agent   string  `json:"agent"`
	Want    string  `json:"want"` // "solved" or "agent"
	Got     string  `json:"got,omitempty"`
	Why     string  `json:"why,omitempty"`
	Record  string  `json:"record,omitempty"`
	Seconds float64 `json:"seconds"`

	seed uint64
}

func (c *cell) run() local.Run { return local.Run{Agent: c.Agent, Problem: c.Problem, Seed: c.seed} }

// matrix is how the runs of many problems and agents go on, each in a process of its own.
type matrix struct {
	suite     []string
	task, app string
	workers   int
	seed      uint64
	noise     noiseFlag
	decoys    decoyFlag
	results   string
	output    string
	memory    memoryFlag
	cloud     cloudFlags
	length    time.Duration // of shifts, if not their own
	quiet     bool
	apart     isolation
}

// add adds the flags of the commands that run a matrix. Verb is what they do with problems, and kept when
// records are kept by default.
func (m *matrix) add(c *cobra.Command, s *State, verb string, suite []string, kept string) {
	flags := c.Flags()
	flags.StringSliceVar(&m.suite, "suite", suite, "the problems to "+verb+": `names` of suites ("+
		strings.Join(suiteNames(), ", ")+"), ids or YAML files")
	flags.StringVar(&m.task, "task", "", "of these only the ones of a `task`: "+strings.Join(taskNames(), ", "))
	flags.StringVar(&m.app, "app", "", "of these only the ones of an application, by its `name`")
	flags.IntVarP(&m.workers, "workers", "j", usualWorkers(os.DirFS("/"), 0),
		"how many runs go on at a time; one keeps most of a core busy, and takes up to 1 GiB")
	// Manual pages are the same everywhere.
	flags.Lookup("workers").DefValue = "one for each processor, if there is memory for them"
	flags.Uint64Var(&m.seed, "seed", 1, "what is left to chance is drawn from this `number`")
	m.noise.add(c)
	m.decoys.add(c)
	flags.StringVar(&m.results, "results", "", "`directory` of the records; "+kept)
	m.memory.add(c)
	outputFlag(c, &m.output, dataFormats...)
	flags.BoolVarP(&m.quiet, "quiet", "q", false, "print the result alone")
	completeFlag(c, "suite", suiteNames)
	completeFlag(c, "task", taskNames)
	completeFlag(c, "app", s.appNames)
	completeArgs(c, s.problemIDs, false, true)
}

// problems are those that are named, in that order, or those of the suites, each once, as far as they have the task and
// the application that are asked for.
func (m *matrix) problems(s *State, ids []string) ([]*problem.Problem, error) {
	l, err := s.library()
	if err != nil {
		return nil, err
	}
	if _, err := l.Select(problem.Selector{Task: problem.Task(m.task), App: m.app}); err != nil {
		return nil, fail(ExitUsage, err, "")
	}
	find := findProblems
	if len(ids) == 0 {
		ids, find = m.suite, m.suiteProblems
	}
	var list []*problem.Problem
	have := map[string]bool{}
	for _, id := range ids {
		more, err := find(s, id)
		if err != nil {
			return nil, err
		}
		for _, p := range more {
			if !have[p.ID] && (m.task == "" || string(p.Task) == m.task) && (m.app == "" || p.App.Name == m.app) {
				list, have[p.ID] = append(list, p), true
			}
		}
	}
	if len(list) == 0 {
		return nil, fail(ExitUsage, fmt.Errorf("no problem of %s is like that", strings.Join(ids, ", ")),
			"Run 'aiopslab problems' to see them all.")
	}
	return list, nil
}

// suiteProblems are those of a suite, in an order that is drawn from the seed: in the catalog neighbours often have one
// cause, and a healthy twin comes after its problem. Who remembers it, and what was right for the last one, would know
// what comes. What is no suite is a problem.
func (m *matrix) suiteProblems(s *State, name string) ([]*problem.Problem, error) {
	l, err := s.library()
	if err != nil {
		return nil, err
	}
	list, err := l.Suite(name)
	if err != nil {
		if _, found := l.Find(name); found == nil || isFile(name) {
			return findProblems(s, name)
		}
		return nil, fail(ExitUsage, err, similarProblems(s, name))
	}
	r := rand.New(rand.NewPCG(m.seed, 0x6f726465))
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list, nil
}

// progress is where to tell of the runs.
func (m *matrix) progress(s *State) io.Writer {
	switch {
	case m.quiet:
		return io.Discard
	case m.output != "":
		return s.Stderr
	}
	return s.Stdout
}

// run runs the cells, some at a time, as a campaign of which nothing was run before. Done is told of each when it is
// done, with how many are, one at a time, and where to tell of it; the records may be gone afterwards.
func (m *matrix) run(ctx context.Context, s *State, problems []*problem.Problem, cells []*cell,
	done func(out io.Writer, n int, c *cell),
) error {
	args, err := m.runArgs(s)
	if err != nil {
		return err
	}
	dir := m.results
	if dir == "" {
		home, err := newDir(tempDir(s)) // which is locked
		if err != nil {
			return fail(ExitEnvironment, err, tempHint)
		}
		defer os.RemoveAll(home)
		dir = filepath.Join(home, "runs")
	}
	p := newPool(s, dir, problems)
	p.args = slices.Concat(p.args, m.cloud.args(), args)
	by, n := map[local.Run]*cell{}, 0
	c := &local.Campaign{Workers: m.workers, Fresh: true, Retries: local.DefaultRetries}
	m.apart.apply(p, c)
	if m.cloud.onCluster() {
		c.Alone = p.turns()
	}
	for _, x := range cells {
		by[x.run()] = x
		c.Runs = append(c.Runs, x.run())
	}
	b := newBoard(s, m, len(cells))
	c.Began, c.Ended = b.began, func(t *local.Try, r *local.Result) {
		if r == nil || r.Again {
			b.judged(t, nil, false)
			return
		}
		n++
		x := by[r.Run].ended(r)
		b.judged(t, r, x.Want != "" && !x.holds())
		done(b, n, x)
	}
	defer b.show()()
	_, err = p.run(ctx, s, c, b.tell)
	return err
}

// runArgs are the arguments of every run.
func (m *matrix) runArgs(s *State) ([]string, error) {
	level, err := m.noise.of(s)
	args := []string{
		"--noise", string(level), "--decoy", m.decoys.String(), "--max-memory", m.memory.String(),
	}
	if m.length > 0 {
		args = append(args, "--length", m.length.String())
	}
	return args, err
}

// ended is the cell with what came of it.
func (c *cell) ended(r *local.Result) *cell {
	c.Got, c.Why, c.Record, c.Seconds = string(r.Class), r.Why, r.Record, r.Seconds
	return c
}

// lost is what a cell has of a run that could not be had.
func (c *cell) lost(why string) { c.Got, c.Why = string(session.Infra), cmp.Or(why, "it did not end") }
