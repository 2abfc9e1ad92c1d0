package cli

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/record/index"
	"github.com/aiopslab/aiopslab/session"
)

// regraded is a run that was graded again, or why it was not.
type regraded struct {
	ID      string `json:"id"`
	Problem string `json:"problem,omitempty"`
	Agent   string `json:"agent"`
	File    string `json:"file"`
	*session.Regrading
	Cannot string `json:"cannot,omitempty"` // why it cannot be graded again
}

// regrades are all of them.
type regrades struct {
	Same   int        `json:"same"`
	Differ []regraded `json:"differ"`
	Cannot []regraded `json:"cannot"`
}

func newRegrade(s *State) *cobra.Command {
	var in, output string
	c := &cobra.Command{
		Use:   "regrade [RUN]",
		Short: "Grade old runs with today's graders",
		Long: `Grade runs again from their records, with the graders of this program, and show
which verdicts and results differ from those in the records. The records stay as
they are. What was asked and what is right are the record's; a model that judged
the reasoning is not asked again.

A run can be graded again if its record has what its verdict was made of. The
others are listed, each with what its record lacks.

Without RUN it grades all runs of 'results'; RUN may be a directory as well.
` + runUsage + `

The exit status is 0 if all that was graded again is as it was, 4 if something
differs, and 5 if no run could be graded again.`,
		Example: `  aiopslab regrade
  aiopslab regrade 20261117-1618
  aiopslab regrade campaign -o json | jq '.differ[] | {id, differences}'`,
		Args: atMostOne("a directory or a run"),
		RunE: func(_ *cobra.Command, args []string) error { return regradeRuns(s, dirArg(args), in, output) },
	}
	outputFlag(c, &output, dataFormats...)
	inFlag(c, &in)
	return c
}

func regradeRuns(s *State, what, in, output string) error {
	files, all, err := regradeFiles(what, in)
	if err != nil {
		return err
	}
	for _, f := range files {
		all.add(f)
	}
	if done, err := printData(s.Stdout, output, all); err != nil {
		return err
	} else if !done {
		all.print(newTranscript(s.Stdout, screenOf(s, s.Stdout, s.OutTerminal)))
	}
	switch {
	case len(all.Differ) > 0:
		return exitStatus(ExitUnsolved)
	case all.Same == 0:
		return exitStatus(ExitInconclusive)
	}
	return nil
}

// regradeFiles are the records that are asked for. Those that cannot be read are among what cannot be graded.
func regradeFiles(what, in string) (files []string, all *regrades, err error) {
	all = &regrades{Differ: []regraded{}, Cannot: []regraded{}}
	if info, err := os.Stat(what); what != defaultResults && (err != nil || !info.IsDir()) {
		file, err := findRun(what, in)
		return []string{file}, all, err
	}
	x, err := readIndex(what)
	if err != nil {
		return nil, nil, err
	}
	if len(x.Runs)+len(x.Unreadable) == 0 {
		return nil, nil, fail(ExitUsage, fmt.Errorf("there is no record of a run in %s", what), recordsHint)
	}
	for _, u := range x.Unreadable {
		all.Cannot = append(all.Cannot, regraded{File: u.File, Cannot: "it cannot be read: " + oneLine(u.Why)})
	}
	for _, r := range x.Runs {
		files = append(files, r.File)
	}
	return files, all, nil
}

// add grades one again.
func (all *regrades) add(file string) {
	one := regraded{File: file}
	rec, err := record.Read(file)
	if err != nil {
		one.Cannot = "it cannot be read: " + oneLine(err.Error())
		all.Cannot = append(all.Cannot, one)
		return
	}
	run, err := index.Of(rec)
	one.ID, one.Problem, one.Agent = run.ID, run.Problem, run.Contestant()
	if err == nil {
		one.Regrading, err = session.Regrade(rec)
	}
	switch {
	case err != nil:
		one.ID, one.Agent, one.Cannot = rec.ID, rec.Agent, oneLine(err.Error())
		all.Cannot = append(all.Cannot, one)
	case len(one.Differences) > 0:
		all.Differ = append(all.Differ, one)
	default:
		all.Same++
	}
}

// print prints what came of it.
func (all *regrades) print(t *transcript) {
	rows := [][]string{{"RUN", "PROBLEM", "AGENT", "WHAT", "WAS", "NOW"}}
	for _, r := range all.Differ {
		for _, d := range r.Differences {
			rows = append(rows, []string{
				r.ID, r.Problem, r.Agent, d.Name, clip(shortly(d.Was), 60), clip(shortly(d.Now), 60),
			})
		}
	}
	t.table("Graded otherwise", rows)
	rows = [][]string{{"RUN", "WHY", "RECORD"}}
	for _, r := range all.Cannot {
		rows = append(rows, []string{r.ID, r.Cannot, r.File})
	}
	t.table("Cannot be graded again", rows)
	if len(all.Differ)+len(all.Cannot) > 0 {
		fmt.Fprintln(t.w)
	}
	n := all.Same + len(all.Differ) + len(all.Cannot)
	fmt.Fprintf(t.w, "%d %s: %d graded as before, %d otherwise, %d cannot be graded again.\n", n, plural(n, "run"),
		all.Same, len(all.Differ), len(all.Cannot))
}

// shortly is a result on one line.
func shortly(v any) string {
	if v == nil {
		return "-"
	}
	if text, ok := v.(string); ok {
		return text
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
