package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/problem"
	runs "github.com/aiopslab/aiopslab/report"
)

// Formats of a report beside those of other data, and CSV.
const (
	asMarkdown = "markdown"
	asHTML     = "html"
)

type reportFlags struct {
	agents []string
	task   string
	svg    string
	paper  string
	output string
}

func newReport(s *State) *cobra.Command {
	f := &reportFlags{}
	c := &cobra.Command{
		Use:   "report [PATH...]",
		Short: "Compare agents by the records of their runs",
		Long: `Compare agents by the records of their runs: accuracy with its 95 % interval,
time, steps, tokens and cost, overall and by task; accuracy against the limit
of steps; and what agents did in the runs they solved and failed; cost against
quality; and the same by kind of fault, system level, application and load.
Tables and figures are named after those of the AIOpsLab paper that they
correspond to.

-o markdown is for a pull request, -o csv for a spreadsheet, and -o html is one
page with all tables and figures that needs no other file.

--paper writes a page with the tables and figures of that paper, its numbers
beside those of the records. A row without runs has the command that fills it.

PATH is a record or a directory of them; without any it is 'results'. Runs
that say nothing about the agent ('infra', 'grader', 'inconclusive', and those
that are not finished) are listed and not counted. Records that cannot be read are named and left out.`,
		Example: `  aiopslab report
  aiopslab report results --agent react,flash --task localization
  aiopslab report results --svg figures -o json
  aiopslab report results -o html > report.html
  aiopslab report results --paper paper.html`,
		RunE: func(_ *cobra.Command, args []string) error { return reportRuns(s, f, args) },
	}
	c.Flags().StringSliceVar(&f.agents, "agent", nil, "only runs of these agents, by `name`")
	c.Flags().StringVar(&f.task, "task", "", "only runs of this `task`")
	c.Flags().StringVar(&f.svg, "svg", "", "write the figures into this `directory`, as SVG")
	c.Flags().StringVar(&f.paper, "paper", "", "write the paper's tables and figures beside these into an HTML `file`")
	outputFlag(c, &f.output, asMarkdown, asCSV, asHTML, asJSON, asYAML)
	completeFlag(c, "task", taskNames)
	return c
}

func reportRuns(s *State, f *reportFlags, paths []string) error {
	if f.task != "" && !slices.Contains(problem.Tasks, problem.Task(f.task)) {
		return fail(ExitUsage, fmt.Errorf("--task %s: want one of %v", f.task, problem.Tasks), "")
	}
	if len(paths) == 0 {
		paths = []string{defaultResults}
	}
	var b runs.Builder
	read := 0
	err := eachRun(s, paths, func(r *runs.Run) {
		read++
		if f.wants(r) {
			b.Add(r)
		}
	})
	if err != nil {
		return err
	}
	r := b.Report()
	if r.Runs == 0 {
		return fail(ExitUsage, fmt.Errorf("none of %d runs is one of the agent and task asked for", read),
			"Leave out --agent or --task to see all.")
	}
	if f.svg != "" {
		if err := r.WriteFigures(f.svg); err != nil {
			return fail(ExitError, fmt.Errorf("--svg: %w", err), "")
		}
	}
	if f.paper != "" {
		if err := writePaper(f.paper, r); err != nil {
			return fail(ExitError, fmt.Errorf("--paper: %w", err), "")
		}
	}
	write, ok := map[string]func(io.Writer) error{
		"": r.WriteText, asMarkdown: r.WriteMarkdown, asCSV: r.WriteCSV, asHTML: r.WriteHTML,
	}[f.output]
	if ok {
		return write(s.Stdout)
	}
	_, err = printData(s.Stdout, f.output, r)
	return err
}

// writePaper writes the page into a file.
func writePaper(file string, r *runs.Report) error {
	var page bytes.Buffer
	if err := r.WritePaper(&page); err != nil {
		return err
	}
	return os.WriteFile(file, page.Bytes(), 0o644)
}

// wants reports whether a run is one of those asked for.
func (f *reportFlags) wants(r *runs.Run) bool {
	return (len(f.agents) == 0 || slices.Contains(f.agents, r.Agent) || slices.Contains(f.agents, r.Contestant())) &&
		(f.task == "" || string(r.Task) == f.task)
}
