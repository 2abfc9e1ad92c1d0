package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/internal/logs"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/session"
)

// cellTries is how often a cell is run if the environment fails: that says nothing of the problem.
const cellTries = 3

// cell is a problem and an agent, and what must come of it.
type cell struct {
	Problem string  `json:"problem"`
	Agent   string  `json:"agent"`
	Want    string  `json:"want"` // "solved" or "agent"
	Got     string  `json:"got,omitempty"`
	Why     string  `json:"why,omitempty"`
	Record  string  `json:"record,omitempty"`
	Seconds float64 `json:"seconds"`

	file  string // of a problem that is not built in
	seed  uint64
	tries int // 0 is cellTries
}

// matrix is how the runs of many problems and agents go on, each in a process of its own.
type matrix struct {
	suite   string
	workers int
	seed    uint64
	noise   noiseFlag
	decoys  decoyFlag
	results string
	output  string
	memory  memoryFlag
	cloud   cloudFlags
}

// add adds the flags of the commands that run a matrix. Verb is what they do with problems, and kept when
// records are kept by default.
func (m *matrix) add(c *cobra.Command, s *State, verb, suite, kept string) {
	flags := c.Flags()
	flags.StringVar(&m.suite, "suite", suite,
		"the problems to "+verb+", if none is named: "+strings.Join(suiteNames(), ", "))
	flags.IntVarP(&m.workers, "workers", "j", runtime.NumCPU(),
		"how many runs go on at a time; one keeps most of a core busy")
	flags.Lookup("workers").DefValue = "one for each processor" // Manual pages are the same everywhere.
	flags.Uint64Var(&m.seed, "seed", 1, "what is left to chance is drawn from this `number`")
	m.noise.add(c)
	m.decoys.add(c)
	flags.StringVar(&m.results, "results", "", "`directory` of the records; "+kept)
	m.memory.add(c)
	outputFlag(c, &m.output, dataFormats...)
	completeFlag(c, "suite", suiteNames)
	completeArgs(c, s.problemIDs, false, true)
}

// problems are those that are named, in that order, or those of the suite, in an order that is drawn from the seed: in
// the catalog neighbours often have one cause, and a healthy twin comes after its problem. Who remembers it, and what
// was right for the last one, would know what comes.
func (m *matrix) problems(s *State, ids []string) ([]*problem.Problem, error) {
	if len(ids) == 0 {
		l, err := s.library()
		if err != nil {
			return nil, err
		}
		list, err := l.Suite(m.suite)
		list = slices.Clone(list)
		r := rand.New(rand.NewPCG(m.seed, 0x6f726465))
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
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

// progress is where to tell of the runs.
func (m *matrix) progress(s *State) io.Writer {
	if m.output != "" {
		return s.Stderr
	}
	return s.Stdout
}

// run runs the cells, some at a time. Done is told of each when it is done, with how many are, one at a
// time; the records may be gone afterwards.
func (m *matrix) run(ctx context.Context, s *State, cells []*cell, done func(n int, c *cell)) error {
	level, err := m.noise.of(s)
	if err != nil {
		return err
	}
	if _, err := environments(tempDir(s)); err != nil { // Cleans up after the killed.
		return err
	}
	results := m.results
	if results == "" {
		dir, err := newDir(tempDir(s))
		if err != nil {
			return fail(ExitEnvironment, err, tempHint)
		}
		defer os.RemoveAll(dir)
		results = dir
	} else if err := checkResults(results); err != nil {
		return err
	}
	ctx, cancel := untilSignal(ctx, func() {})
	defer cancel()
	program := self(s)
	args := slices.Concat(s.dirs.args(), s.logs.args(), m.cloud.args(),
		[]string{
			"--noise", string(level), "--decoy", m.decoys.String(), "--results", results,
			"--max-memory", m.memory.String(), "--quiet", "-o", "json",
		})
	log := &lines{w: io.Discard} // What went wrong is told in the table.
	if s.logs.settings().Or(logs.Settings{Level: logs.Off}).Level != logs.Off {
		log.w = s.Stderr
	}
	var mu sync.Mutex
	n := 0
	work := make(chan *cell)
	var workers sync.WaitGroup
	for range m.workers {
		workers.Go(func() {
			for c := range work {
				c.run(ctx, program, args, log)
				mu.Lock()
				n++
				done(n, c)
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
	return nil
}

// run runs the cell in a process of its own, which says on its standard error what it logs, and why it failed.
func (c *cell) run(ctx context.Context, program string, args []string, log *lines) {
	start := time.Now()
	defer func() { c.Seconds = time.Since(start).Seconds() }()
	for range cmp.Or(c.tries, cellTries) {
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

func lastLine(text string, err error) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return fmt.Sprint(err)
}
