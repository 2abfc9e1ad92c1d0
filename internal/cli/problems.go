package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/problem"
)

// findProblem returns the problem with an id or, if that names a YAML file, the first of the file that
// has the task, or the id, that is chosen.
func findProblem(s *State, id, choice string) (*problem.Problem, error) {
	list, err := findProblems(s, id)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(p *problem.Problem) bool {
		return choice == "" || string(p.Task) == choice || p.ID == choice
	})
	if i < 0 {
		var ids []string
		for _, p := range list {
			ids = append(ids, p.ID)
		}
		return nil, fail(ExitUsage, fmt.Errorf("%s has no task %q", id, choice), "It has: "+strings.Join(ids, ", ")+".")
	}
	return list[i], nil
}

// findProblems returns the problem with an id, or all of a YAML file.
func findProblems(s *State, id string) ([]*problem.Problem, error) {
	l, err := s.library()
	if err != nil {
		return nil, err
	}
	if !isFile(id) {
		p, err := l.Find(id)
		return []*problem.Problem{p}, fail(ExitUsage, err, similarProblems(s, id))
	}
	list, err := l.ReadFile(id)
	hint := "docs/problems.md has the format."
	if errors.Is(err, fs.ErrNotExist) {
		hint = "Name a problem by its id, or by a YAML file that describes it."
	}
	return list, fail(ExitUsage, err, hint)
}

// similarProblems is the hint for an id that is not there: those that have it in them, if they are few.
func similarProblems(s *State, text string) string {
	var ids []string
	for _, id := range s.problemIDs() {
		if text != "" && strings.Contains(id, text) {
			ids = append(ids, id)
		}
	}
	switch n := len(ids); {
	case n == 0:
		return "Run 'aiopslab problems' to see them all."
	case n > maxSimilar:
		return fmt.Sprintf("%d ids have %q in them; 'aiopslab problems %s' lists them, %s for example.", n, text, text,
			ids[0])
	}
	return fmt.Sprintf("These have %q in them: %s.", text, strings.Join(ids, ", "))
}

// maxSimilar is how many ids a hint names.
const maxSimilar = 8

func isFile(id string) bool { return strings.HasSuffix(id, ".yaml") || strings.HasSuffix(id, ".yml") }

const taskUsage = "which `task` of a problem that is a file, or which id"

type problemRow struct {
	ID      string `json:"id"`
	Task    string `json:"task"`
	App     string `json:"app"`
	Origin  string `json:"origin"`
	Faulty  bool   `json:"faulty"`
	Summary string `json:"summary"`
	Lacks   string `json:"lacks,omitempty"` // why the cluster that was asked for cannot have it
}

func rowOf(p *problem.Problem) problemRow {
	summary := p.Document.Title
	if p.Healthy {
		summary = "nothing is wrong"
	}
	return problemRow{
		ID: p.ID, Task: string(p.Task), App: p.App.Name, Origin: string(p.Origin), Faulty: p.Faulty(), Summary: summary,
	}
}

// listProblems is a list of problems, with why they cannot be run in a cluster if they are to be run in one.
func listProblems(rows []problemRow, onCluster bool) list[problemRow] {
	l := list[problemRow]{
		rows: rows, name: func(r problemRow) string { return r.ID },
		header: "ID\tTASK\tAPP\tORIGIN\tWHAT IS WRONG",
		line: func(r problemRow) string {
			return strings.Join([]string{r.ID, r.Task, r.App, r.Origin, r.Summary}, "\t")
		},
	}
	if onCluster {
		short := l.line
		l.header += "\tNOT THERE BECAUSE"
		l.line = func(r problemRow) string { return short(r) + "\t" + r.Lacks }
	}
	return l
}

func newProblems(s *State) *cobra.Command {
	var output, task, suite string
	var on cloudFlags
	c := &cobra.Command{
		Use:   "problems [TEXT]",
		Short: "List the problems, or those whose id has a text in it",
		Long: `List the problems, or those whose id has a text in it, and count them by
application and task. With --cloud kubeconfig, the cluster is asked what it has,
and the last column tells why a problem cannot be run there.`,
		Example: `  aiopslab problems
  aiopslab problems mongodb
  aiopslab problems --suite aiopslab
  aiopslab problems --task mitigation -o name
  aiopslab problems --cloud kubeconfig --context kind-lab`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			l, err := s.library()
			if err != nil {
				return err
			}
			lacks, err := on.lacking(c.Context())
			if err != nil {
				return err
			}
			problems, err := l.Suite(suite)
			if err != nil {
				return fail(ExitUsage, err, "")
			}
			rows := []problemRow{}
			for _, p := range problems {
				if (task == "" || string(p.Task) == task) && (len(args) == 0 || strings.Contains(p.ID, args[0])) {
					row := rowOf(p)
					row.Lacks = lacks(p)
					rows = append(rows, row)
				}
			}
			if len(rows) == 0 {
				return fail(ExitUsage, errors.New("no problem is like that"),
					"Run 'aiopslab problems' to see them all.")
			}
			if err := listProblems(rows, on.onCluster()).print(s.Stdout, output); err != nil || output != "" {
				return err
			}
			return printCounts(s.Stdout, rows)
		},
	}
	c.Flags().StringVar(&task, "task", "", "only those of a `task`: "+strings.Join(taskNames(), ", "))
	c.Flags().StringVar(&suite, "suite", "all", "only those of a `suite`: "+strings.Join(suiteNames(), ", "))
	on.add(c)
	outputFlag(c, &output, listFormats...)
	completeFlag(c, "task", taskNames)
	completeFlag(c, "suite", suiteNames)
	return c
}

func suiteNames() []string {
	var names []string
	for _, s := range problem.Suites {
		names = append(names, s.Name)
	}
	return names
}

func newDescribe(s *State) *cobra.Command {
	var output, task string
	c := &cobra.Command{
		Use:   "describe PROBLEM",
		Short: "Tell all about a problem: what the agent is told, what is wrong, and the answer",
		Example: `  aiopslab describe scale_pod_zero_social_net-mitigation-1
  aiopslab describe ./mine.yaml --task localization`,
		Args: oneArg("a problem"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := findProblem(s, args[0], task)
			if err != nil {
				return err
			}
			return describeProblem(s, output, p)
		},
	}
	c.Flags().StringVar(&task, "task", "", taskUsage)
	outputFlag(c, &output, dataFormats...)
	completeFlag(c, "task", taskNames)
	completeArgs(c, s.problemIDs, true, true)
	return c
}

type problemDetails struct {
	problemRow
	Document  string                  `json:"document"`
	Load      string                  `json:"load"`
	Faults    []string                `json:"faults"`
	Answer    any                     `json:"answer"`
	Accepted  []string                `json:"also_accepted,omitempty"`
	Because   string                  `json:"because,omitempty"`
	Without   map[problem.Task]string `json:"without,omitempty"` // why the document does not ask a question
	Differs   string                  `json:"differs,omitempty"`
	Solution  []string                `json:"solution,omitempty"`
	TrueFixes map[string]string       `json:"true_fixes,omitempty"`
	MayFix    map[string]string       `json:"may_fix,omitempty"`
	Prompt    string                  `json:"prompt"`
}

func describeProblem(s *State, output string, p *problem.Problem) error {
	d := problemDetails{
		problemRow: rowOf(p), Document: p.Document.File, Faults: []string{}, Differs: p.Document.Differs,
		Without: p.Document.Without,
		Load:    p.Load().String(),
		Prompt:  prompt(p),
	}
	for _, f := range p.Faults() {
		d.Faults = append(d.Faults, strings.TrimSpace(f.Kind+" "+f.Target))
	}
	if s := p.Shift(); s != nil {
		d.Faults = s.Of // Some of them.
	}
	var answers questionAnswers
	for _, q := range p.Questions() {
		a, err := d.answer(p, q)
		if err != nil {
			return err
		}
		d.Answer, answers = a, append(answers, questionAnswer{string(q), a})
	}
	if p.Task == problem.Incident {
		d.Answer = answers
	}
	if done, err := printData(s.Stdout, output, d); done {
		return err
	}
	return d.print(s)
}

// questionAnswers are the answers to the questions of an incident.
type (
	questionAnswers []questionAnswer
	questionAnswer  struct {
		Question string `json:"question"`
		Answer   any    `json:"answer"`
	}
)

// answer is that to a question, with what else there is to tell of it.
func (d *problemDetails) answer(p *problem.Problem, question problem.Task) (any, error) {
	answer := p.Answer()
	switch question {
	case problem.Detection:
		return p.Anomaly(), nil
	case problem.Localization:
		names := []string{}
		for _, c := range answer.Components {
			names = append(names, c.Name)
			d.Accepted = append(d.Accepted, c.Aliases...)
		}
		return names, nil
	case problem.Analysis:
		for _, c := range answer.Also {
			d.Accepted = append(d.Accepted, c.SystemLevel+": "+c.FaultType)
		}
		d.Because = answer.Because
		return answer.Cause, nil
	}
	var err error
	if d.Solution, err = p.Solution(); err != nil {
		return nil, err
	}
	if s := p.Shift(); s != nil {
		return "each incident is mended soon, and nothing else is touched", nil
	}
	if p.Task == problem.Operation {
		return "what is asked for: " + p.Asked(), nil
	}
	if p.Faulty() {
		d.TrueFixes, d.MayFix = p.TrueFixes(), p.MayFix()
	}
	return "users are served as before, by all that was there before", nil
}

// prompt is what an agent is told: the situation, what it can do, and how to answer.
func prompt(p *problem.Problem) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(aci.Description(string(p.Task), p.App, p.Asked())))
	for _, a := range aci.Actions(string(p.Task)) {
		fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(a.Text()))
	}
	b.WriteString(aci.Instructions(string(p.Task)))
	return b.String()
}

func (d problemDetails) print(s *State) error {
	w := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s:\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("Problem", "%s", d.ID)
	row("Task", "%s", d.Task)
	row("Application", "%s", d.App)
	row("Load", "%s", d.Load)
	row("Origin", "%s (%s)", d.Origin, d.Document)
	row("What is wrong", "%s", d.Summary)
	for _, f := range d.Faults {
		row("Fault", "%s", f)
	}
	row("Answer", "%v", answerText(d.Answer))
	if len(d.Accepted) > 0 {
		row("Also right", "%s", strings.Join(d.Accepted, "; "))
	}
	if d.Because != "" {
		row("Because", "%s", d.Because)
	}
	for _, t := range problem.Tasks {
		if why := d.Without[t]; why != "" {
			row("No "+string(t), "%s", why)
		}
	}
	if d.Differs != "" {
		row("Not as in AIOpsLab", "%s", d.Differs)
	}
	for _, c := range d.Solution {
		row("Reference solution", "%s", c)
	}
	for _, remedy := range fault.Remedies {
		if why, ok := d.TrueFixes[remedy]; ok {
			row("Solved by "+remedy, "%s", why)
		}
		if why, ok := d.MayFix[remedy]; ok {
			row("With luck solved by "+remedy, "%s", why)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "\nWhat the agent is told:\n\n%s\n", indent(d.Prompt))
	return nil
}

func answerText(v any) string {
	switch v := v.(type) {
	case []string:
		if len(v) == 0 {
			return "none"
		}
		return strings.Join(v, ", ")
	case *fault.Cause:
		if v == nil {
			return "none"
		}
		return v.SystemLevel + ": " + v.FaultType
	case questionAnswers:
		var list []string
		for _, a := range v {
			list = append(list, a.Question+": "+answerText(a.Answer))
		}
		return strings.Join(list, "; ")
	}
	return strings.TrimSpace(fmt.Sprint(v))
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ")
}
