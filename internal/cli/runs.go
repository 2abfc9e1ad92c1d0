package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record/index"
	"github.com/aiopslab/aiopslab/session"
)

type runsFlags struct {
	agents, apps, tasks, classes []string
	model, problem               string
	since, until                 string
	sort                         string
	reverse                      bool
	output                       string

	from, to time.Time // since and until, once they are read
}

// runClasses are how runs end.
var runClasses = []string{
	string(session.Solved), string(session.AgentFailed), string(session.Infra), string(session.GraderFailed),
	string(session.Inconclusive), string(session.ShadowRun), string(session.Searched),
	index.Unfinished,
}

// runOrders are what runs can be sorted by.
var runOrders = map[string]func(a, b index.Run) int{
	"time":    func(a, b index.Run) int { return a.Begun.Compare(b.Begun) },
	"agent":   func(a, b index.Run) int { return cmp.Compare(a.Contestant(), b.Contestant()) },
	"problem": func(a, b index.Run) int { return cmp.Compare(a.Problem, b.Problem) },
	"class":   func(a, b index.Run) int { return cmp.Compare(a.Class, b.Class) },
	"seconds": func(a, b index.Run) int { return cmp.Compare(a.Seconds, b.Seconds) },
	"steps":   func(a, b index.Run) int { return cmp.Compare(a.Steps, b.Steps) },
	"cost":    func(a, b index.Run) int { return cmp.Compare(costOf(a), costOf(b)) },
}

var runOrderNames = []string{"time", "agent", "problem", "class", "seconds", "steps", "cost"}

// costOf is what a run cost; what is not known comes before all that is.
func costOf(r index.Run) float64 {
	if r.Cost == nil {
		return -1
	}
	return *r.Cost
}

func newRuns(s *State) *cobra.Command {
	f := &runsFlags{}
	c := &cobra.Command{
		Use:   "runs [DIR]",
		Short: "List runs by their records",
		Long: `List the runs whose records are in a directory and in those below it; without
DIR it is 'results'. Flags choose among them: all that are given must hold.

--since and --until are a time such as 2026-11-17, 2026-11-17T16:00 (UTC) or
2026-11-17T16:00:00Z, or how long ago it was, such as 90m, 24h or 7d.

What was read is remembered in an index in your cache directory, so that a
directory of 10,000 runs opens in a moment. It can be deleted at any time.`,
		Example: `  aiopslab runs
  aiopslab runs --class agent --task localization --since 24h
  aiopslab runs campaign --agent react --sort cost --reverse
  aiopslab runs -o json | jq -r '.[] | select(.steps > 20).file'`,
		Args: atMostOne("a directory"),
		RunE: func(_ *cobra.Command, args []string) error { return listRuns(s, f, dirArg(args)) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&f.agents, "agent", nil, "only runs of these agents, by `name`")
	flags.StringVar(&f.model, "model", "", "only runs of models with this `text` in their name")
	flags.StringVar(&f.problem, "problem", "", "only runs of problems with this `text` in their id")
	flags.StringSliceVar(&f.apps, "app", nil, "only runs of these applications, by `name`")
	flags.StringSliceVar(&f.tasks, "task", nil, "only runs of these `tasks`")
	flags.StringSliceVar(&f.classes, "class", nil, "only runs that ended so: `classes` such as solved or agent")
	flags.StringVar(&f.since, "since", "", "only runs that began at this `time` or later")
	flags.StringVar(&f.until, "until", "", "only runs that began before this `time`")
	flags.StringVar(&f.sort, "sort", "time", "by `what` to sort: "+alternatives(runOrderNames))
	flags.BoolVar(&f.reverse, "reverse", false, "the last first")
	outputFlag(c, &f.output, listFormats...)
	completeFlag(c, "task", taskNames)
	completeFlag(c, "class", func() []string { return runClasses })
	completeFlag(c, "sort", func() []string { return runOrderNames })
	return c
}

// atMostOne refuses more than one argument.
func atMostOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fail(ExitUsage,
				fmt.Errorf("%s takes one argument at most, %s; got %d", c.CommandPath(), what, len(args)),
				fmt.Sprintf("Run '%s --help'.", c.CommandPath()))
		}
		return nil
	}
}

// dirArg is the directory that the arguments name.
func dirArg(args []string) string {
	if len(args) == 0 {
		return defaultResults
	}
	return args[0]
}

// check reads what the flags say.
func (f *runsFlags) check() (err error) {
	if runOrders[f.sort] == nil {
		return fail(ExitUsage, fmt.Errorf("--sort %s: want %s", f.sort, alternatives(runOrderNames)), "")
	}
	for _, c := range f.classes {
		if !slices.Contains(runClasses, c) {
			return fail(ExitUsage, fmt.Errorf("--class %s: want %s", c, alternatives(runClasses)), "")
		}
	}
	for _, t := range f.tasks {
		if !slices.Contains(problem.Tasks, problem.Task(t)) {
			return fail(ExitUsage, fmt.Errorf("--task %s: want one of %v", t, problem.Tasks), "")
		}
	}
	now := time.Now()
	if f.from, err = parseMoment(f.since, now); err != nil {
		return fail(ExitUsage, fmt.Errorf("--since %w", err), "")
	}
	if f.to, err = parseMoment(f.until, now); err != nil {
		return fail(ExitUsage, fmt.Errorf("--until %w", err), "")
	}
	return nil
}

// parseMoment reads a time, or how long ago it was. Nothing is no time.
func parseMoment(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%s: want a time such as 2026-11-17 or 2026-11-17T16:00, or how long ago, "+
		"such as 24h or 7d", text)
}

// wants reports whether a run is one of those asked for.
func (f *runsFlags) wants(r index.Run) bool {
	among := func(list []string, names ...string) bool {
		return len(list) == 0 || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(list, n) })
	}
	return among(f.agents, r.Agent, r.Contestant()) && among(f.apps, r.App) && among(f.tasks, r.Task) &&
		among(f.classes, r.Class) && strings.Contains(r.Model, f.model) && strings.Contains(r.Problem, f.problem) &&
		!r.Begun.Before(f.from) && (f.to.IsZero() || r.Begun.Before(f.to))
}

func listRuns(s *State, f *runsFlags, dir string) error {
	if err := f.check(); err != nil {
		return err
	}
	x, err := openIndex(s, dir)
	if err != nil {
		return err
	}
	rows := slices.DeleteFunc(slices.Clone(x.Runs), func(r index.Run) bool { return !f.wants(r) })
	slices.SortStableFunc(rows, runOrders[f.sort])
	if f.reverse {
		slices.Reverse(rows)
	}
	return list[index.Run]{
		rows: rows, name: func(r index.Run) string { return visible(r.ID) },
		header: "RUN\tBEGUN\tAGENT\tPROBLEM\tCLASS\tTIME (s)\tSTEPS\tCOST ($)", line: runLine,
	}.print(s.Stdout, f.output)
}

// runLine is a run in a table.
func runLine(r index.Run) string {
	seconds, cost := "-", "-"
	if r.Seconds > 0 {
		seconds = fmt.Sprintf("%.1f", r.Seconds)
	}
	if r.Cost != nil {
		cost = fmt.Sprintf("%.4f", *r.Cost)
	}
	cells := []string{
		r.ID, r.Begun.Format("2006-01-02 15:04:05"), r.Contestant(), cmp.Or(r.Problem, "-"), r.Class, seconds,
		fmt.Sprint(r.Steps), cost,
	}
	for i, c := range cells {
		cells[i] = strings.Map(func(r rune) rune {
			if r == '\t' || r == '\n' {
				return ' '
			}
			return r
		}, visible(c))
	}
	return strings.Join(cells, "\t")
}

// openIndex opens the index of a directory. Records that cannot be read are named and left out.
func openIndex(s *State, dir string) (*index.Index, error) {
	x, err := readIndex(dir)
	if err != nil {
		return nil, err
	}
	for _, u := range x.Unreadable {
		fmt.Fprintf(s.Stderr, "aiopslab: left out: %s: %s\n", visible(u.File), visible(oneLine(u.Why)))
	}
	if len(x.Runs) == 0 {
		return nil, fail(ExitUsage, fmt.Errorf("there is no record of a run in %s", dir), recordsHint)
	}
	return x, nil
}

// readIndex opens the index of a directory that must be there.
func readIndex(dir string) (*index.Index, error) {
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fail(ExitUsage, err, recordsHint)
	} else if err == nil && !info.IsDir() {
		return nil, fail(ExitUsage, fmt.Errorf("%s is not a directory", dir), recordsHint)
	}
	return index.Open(dir, index.Options{Cache: indexCache()})
}

// indexCache is where indexes are kept; empty if there is no such place.
func indexCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "aiopslab", "index")
}
