package cli

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/agent/exploit"
	"github.com/aiopslab/aiopslab/internal/strict"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/record"
	runs "github.com/aiopslab/aiopslab/report"
	"github.com/aiopslab/aiopslab/report/stats"
	"github.com/aiopslab/aiopslab/session"
)

type auditFlags struct {
	matrix
	seeds    int
	exploits []string
}

func newAudit(s *State) *cobra.Command {
	f := &auditFlags{}
	c := &cobra.Command{
		Use:   "audit [PROBLEM...]",
		Short: "Measure what answers that do not look at the system's health score",
		Long: `Measure what answers score that do not look whether the system is well: the
youngest pod, the last object written, the same answer each time. None should be
right more often than by chance. Symptoms (restarts, logs, alerts) are baselines:
they are shown beside, and may well be.

One run of a problem serves all exploits: an agent reads what they look at, and
their answers are graded from the record. Detections (with their healthy twins),
localizations and analyses are asked; a mitigation is tampered with by 'verify'
and by the suite of hostile scripts. Faults whose symptom is churn (pod_kill,
container_kill) count apart.

The exit status is 0 if no exploit is above chance, at 95 % for each row; 4 if
one is; 3 if a run could not be had and none is.`,
		Example: `  aiopslab audit --suite localization --seeds 3
  aiopslab audit container_kill-detection container_kill-detection-healthy
  aiopslab audit --exploits youngest-pod,last-written -o json`,
		RunE: func(c *cobra.Command, args []string) error { return audit(c.Context(), s, f, args) },
	}
	f.add(c, s, "ask about, if none is named", []string{"all"}, "by default none is kept")
	c.Flags().IntVar(&f.seeds, "seeds", 1, "how often each is run, each time with the next seed")
	c.Flags().StringSliceVar(&f.exploits, "exploits", nil,
		"only these exploits: "+strings.Join(exploit.Names(), ", "))
	completeFlag(c, "exploits", exploit.Names)
	return c
}

// audited is what the command tells.
type audited struct {
	Rows []auditRow `json:"rows"`
	Lost []*cell    `json:"lost"` // runs that could not be had
	runs int
}

// auditRow is a row with its score.
type auditRow struct {
	exploit.Row
	Score runs.Share `json:"score"`
}

// scene is what a run shows: problems that are told apart by what is asked share it. A detection is none
// of them, because it begins at another moment.
type scene struct {
	document           *problem.Document
	healthy, detection bool
	seed               uint64
}

func audit(ctx context.Context, s *State, f *auditFlags, ids []string) error {
	if f.workers < 1 || f.seeds < 1 {
		return fail(ExitUsage, fmt.Errorf("-j %d --seeds %d: both are 1 at least", f.workers, f.seeds), "")
	}
	exploits := exploit.All()
	if len(f.exploits) > 0 {
		found, missing := exploit.Find(f.exploits)
		if missing != "" {
			hint := "Choose among " + strings.Join(exploit.Names(), ", ") + "."
			if near := strict.Nearest(missing, exploit.Names()); near != "" {
				hint = fmt.Sprintf("Did you mean '%s'?", near)
			}
			return fail(ExitUsage, fmt.Errorf("there is no exploit %q", missing), hint)
		}
		exploits = found
	}
	problems, err := f.problems(s, ids)
	if err != nil {
		return err
	}
	problems = slices.DeleteFunc(problems, func(p *problem.Problem) bool { return !exploit.Asks(p) })
	if len(problems) == 0 {
		return fail(ExitUsage, errors.New("there is no detection, localization or analysis among these problems"),
			"Name one, or choose another --suite.")
	}
	out, start := f.progress(s), time.Now()
	result, err := f.measure(ctx, s, problems, exploits, out)
	if err != nil {
		return err
	}
	if done, err := printData(s.Stdout, f.output, result); err != nil {
		return err
	} else if !done {
		result.print(s.Stdout)
	}
	fmt.Fprintf(out, "%d of %d runs read, in %v\n", result.runs-len(result.Lost), result.runs,
		time.Since(start).Round(time.Second))
	switch {
	case len(result.above(1)) > 0:
		return exitStatus(ExitUnsolved)
	case len(result.Lost) > 0:
		return exitStatus(ExitEnvironment)
	}
	return nil
}

// measure has exploits answer problems, and tells of the runs that it takes.
func (f *auditFlags) measure(ctx context.Context, s *State, problems []*problem.Problem, exploits []exploit.Exploit,
	out io.Writer,
) (*audited, error) {
	cells, scenes := f.scenes(problems)
	blind := !slices.ContainsFunc(exploits, func(e exploit.Exploit) bool { return !e.Blind })
	if blind { // Nobody looks.
		cells = nil
	}
	fmt.Fprintf(out, "%d %s for %d %s, %d at a time\n", len(cells), plural(len(cells), "run"), len(problems),
		plural(len(problems), "problem"), f.workers)
	sights, result := map[*cell]*exploit.Sight{}, &audited{Lost: []*cell{}, runs: len(cells)}
	err := f.run(ctx, s, problems, cells, func(out io.Writer, n int, c *cell) {
		sight, why := see(c)
		if why != nil {
			c.Why = why.Error()
			result.Lost = append(result.Lost, c)
		}
		sights[c] = sight
		fmt.Fprintf(out, "%4d/%d  %-60s %5.1f s  %s\n", n, len(cells), c.Problem, c.Seconds, c.trouble(why))
	})
	if err != nil {
		return nil, err
	}
	var cases []*exploit.Case
	for seed := range f.seeds {
		for _, p := range problems {
			at := f.seed + uint64(seed)
			if sight := sights[scenes[sceneOf(p, at)]]; sight != nil || blind {
				cases = append(cases, &exploit.Case{Problem: p, Seed: at, Sight: sight})
			}
		}
	}
	for _, r := range exploit.Audit(cases, exploits) {
		problems := runs.Problems{}
		for id, of := range r.ByProblem {
			problems[id] = stats.Group{Solved: of[0], Of: of[1]}
		}
		result.Rows = append(result.Rows, auditRow{r, problems.Share()})
	}
	return result, nil
}

// above are the rows of exploits that are above chance, if so many rows are looked at for one.
func (a *audited) above(among int) (list []auditRow) {
	for _, r := range a.Rows {
		if r.Luck*float64(among) < exploit.Significance && !r.Baseline && !r.Churn {
			list = append(list, r)
		}
	}
	return list
}

func sceneOf(p *problem.Problem, seed uint64) scene {
	return scene{p.Document, p.Healthy, p.Task == problem.Detection, seed}
}

// scenes are the runs that it takes, and which of them shows what a problem needs.
func (f *auditFlags) scenes(problems []*problem.Problem) (cells []*cell, by map[scene]*cell) {
	by = map[scene]*cell{}
	for i := range f.seeds {
		for _, p := range problems {
			key := sceneOf(p, f.seed+uint64(i))
			if by[key] != nil {
				continue
			}
			c := &cell{Problem: p.ID, Agent: exploit.Snoop.Name, seed: drawSeed(p.Document.ID, key.seed)}
			by[key] = c
			cells = append(cells, c)
		}
	}
	return cells, by
}

// drawSeed is the seed of a document's runs. Each document has another: if all had one past, an exploit would name one
// service in all of them, and be right by one stroke of luck, or wrong.
func drawSeed(document string, seed uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, document, seed)
	return max(h.Sum64()>>11, 1) // JSON's numbers have 53 bits.
}

// see takes out of a run's record what its agent saw.
func see(c *cell) (*exploit.Sight, error) {
	if c.Got != string(session.Solved) && c.Got != string(session.AgentFailed) {
		return nil, fmt.Errorf("%s: %s", c.Got, oneLine(c.Why))
	}
	r, err := record.Read(c.Record)
	if err != nil {
		return nil, err
	}
	return exploit.Read(r)
}

func (c *cell) trouble(err error) string {
	if err == nil {
		return ""
	}
	return "LOST " + oneLine(err.Error())
}

// print prints the tables: exploits, baselines, and what is about churn.
func (a *audited) print(w io.Writer) {
	for _, part := range []struct {
		title string
		has   func(r auditRow) bool
	}{
		{"Exploits", func(r auditRow) bool { return !r.Churn && !r.Baseline }},
		{"Baselines, which look at a symptom", func(r auditRow) bool { return !r.Churn && r.Baseline }},
		{"Faults whose symptom is churn", func(r auditRow) bool { return r.Churn }},
	} {
		rows := slices.DeleteFunc(slices.Clone(a.Rows), func(r auditRow) bool { return !part.has(r) })
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", part.title)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "EXPLOIT\tTASK\tRUNS\tCLUES\tSCORE\t95 %\tCHANCE\tABOVE CHANCE\tBEST OF")
		for _, r := range rows {
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%.0f %%\t%.0f-%.0f %%\t%.1f %%\t%s\t%s\n", r.Exploit, r.Task, r.Runs,
				r.Clues, 100*r.Score.Value, 100*r.Score.Low, 100*r.Score.High, 100*r.Chance, yesNo[r.Above], r.best())
		}
		t.Flush()
	}
	fmt.Fprintln(w)
}

// best says which of several tries a row is about.
func (r auditRow) best() string {
	if r.Tries < 2 {
		return ""
	}
	return fmt.Sprintf("%d: %s", r.Tries, r.Try)
}
