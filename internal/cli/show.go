package cli

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/aci"
	"github.com/aiopslab/aiopslab/grade"
	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/record/index"
)

// shownRun is all that is shown of a run. Times are seconds since it began.
type shownRun struct {
	index.Run
	Answer  any            `json:"right_answer,omitempty"`
	Results map[string]any `json:"results,omitempty"` // of the verdict
	Past    *record.Past   `json:"past,omitempty"`    // of the world
	Phases  []shownPhase   `json:"phases"`
	Actions []shownStep    `json:"actions"`
	// Talk is what the members of a group told each other, if the agent is one.
	Talk    []shownMessage `json:"talk,omitempty"`
	Users   []shownLook    `json:"users"`
	Session string         `json:"session,omitempty"` // the file in AIOpsLab's format
	// Isolation is what kept the run apart from others; nil for an environment of its own.
	Isolation *record.Isolation `json:"isolation,omitempty"`
}

type shownPhase struct {
	Name    string  `json:"name"`
	At      float64 `json:"at"`
	Seconds float64 `json:"seconds"`
}

type shownStep struct {
	Number  int     `json:"number"`
	At      float64 `json:"at"` // when it was done
	Action  string  `json:"action"`
	Thought float64 `json:"thought_seconds"`
	Took    float64 `json:"took_seconds"`
	Failed  bool    `json:"failed,omitempty"`
}

// shownMessage is what one member of a group told another.
type shownMessage struct {
	At float64 `json:"at"`
	record.Message
}

// shownLook is what users got at one time.
type shownLook struct {
	At         float64  `json:"at"`
	When       string   `json:"when"` // "healthy" or "after"
	Rate       float64  `json:"rate"` // requests/s
	Success    float64  `json:"success"`
	P95        float64  `json:"p95_seconds"`
	Complaints []string `json:"complaints,omitempty"`
}

func newShow(s *State) *cobra.Command {
	var in, output string
	c := &cobra.Command{
		Use:   "show RUN",
		Short: "Tell all about a run",
		Long: `Tell all about a run, from its record: the verdict and why, what was wrong, what
the agent did and what that cost, how long each phase and step took, what the
members of a group told each other, what the users of the application got
before and after, and where the files are.

` + runUsage,
		Example: `  aiopslab show 20261117-1618
  aiopslab show results/20261117-161813-1fbb18155c3c.jsonl -o json | jq .phases
  aiopslab show 20261117-1618 --in campaign`,
		Args: oneArg("a run"),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := findRun(args[0], in)
			if err != nil {
				return err
			}
			run, err := readRun(file)
			if err != nil {
				return err
			}
			shown := run.shown()
			if done, err := printData(s.Stdout, output, shown); done {
				return err
			}
			run.print(newTranscript(s.Stdout, screenOf(s, s.Stdout, s.OutTerminal)), shown)
			return nil
		},
	}
	outputFlag(c, &output, dataFormats...)
	inFlag(c, &in)
	return c
}

// shown is what is shown of a run.
func (r *oneRun) shown() *shownRun {
	v := &shownRun{
		Run: r.Run, Results: r.outcome.Verdict.Results, Answer: r.outcome.Verdict.Results["correct_answer"],
		Session: r.outcome.Session, Phases: []shownPhase{}, Actions: []shownStep{}, Users: []shownLook{},
	}
	v.Why = cmp.Or(v.Why, r.outcome.Verdict.Why)
	at := func(t time.Time) float64 { return t.Sub(r.Begun).Seconds() }
	var base grade.Look
	for _, e := range r.events {
		switch d := e.data.(type) {
		case record.Isolation:
			v.Isolation = &d
		case record.Phase:
			v.Phases = append(v.Phases, shownPhase{Name: d.Name, At: at(e.Time)})
		case record.Past:
			v.Past = &d
		case record.Step:
			v.Actions = append(v.Actions, shownStep{d.Number, at(e.Time), actionOf(d), d.Thought, d.Took, d.Failed})
		case record.Message:
			v.Talk = append(v.Talk, shownMessage{at(e.Time), d})
		case grade.Look:
			l := shownLook{
				At: at(e.Time), When: "after", Rate: d.Load.Total.Rate, Success: d.Load.Total.Success,
				P95: d.Load.Total.P95.Seconds(),
			}
			if e.Kind == record.BaselineEvent {
				base, l.When = d, "healthy"
			} else {
				l.Complaints = grade.Complaints(base, d)
			}
			v.Users = append(v.Users, l)
		}
	}
	for i := range v.Phases {
		end := at(r.Ended)
		if i+1 < len(v.Phases) {
			end = v.Phases[i+1].At
		}
		v.Phases[i].Seconds = end - v.Phases[i].At
	}
	return v
}

// actionOf is what a step did.
func actionOf(s record.Step) string {
	_, action := aci.Told(s.Response)
	return cmp.Or(action, s.Action, "(unreadable)")
}

// print prints the run for people to read.
func (r *oneRun) print(t *transcript, v *shownRun) {
	t.head(r)
	fmt.Fprintf(t.w, "%s, begun %s, took %v", visible(r.ID), r.Begun.Format("2006-01-02 15:04:05 MST"),
		r.Ended.Sub(r.Begun).Round(time.Second))
	if r.App != "" {
		fmt.Fprintf(t.w, ", %s, seed %d", visible(r.App), r.Seed)
	}
	if i := v.Isolation; i != nil && i.Mode == record.IsolatedReset {
		fmt.Fprintf(t.w, ", in an environment that was reset after %d runs", i.Before)
	}
	fmt.Fprintln(t.w)
	if v.Past != nil {
		fmt.Fprintln(t.w, pastLine(v.Past))
	}
	t.detail = quiet // The events are what its end sums up.
	for _, e := range r.events {
		t.event(e.Kind, e.data)
	}
	t.end(r.outcome)
	rows := [][]string{{"AT", "TOOK", "PHASE"}}
	for _, p := range v.Phases {
		rows = append(rows, []string{seconds(p.At), seconds(p.Seconds), p.Name})
	}
	t.table("Phases", rows)
	rows = [][]string{{"STEP", "AT", "THOUGHT", "TOOK", "ACTION"}}
	for _, a := range v.Actions {
		action, rest, more := strings.Cut(strings.TrimSpace(a.Action), "\n")
		if more && rest != "" {
			action += " …"
		}
		if a.Failed {
			action = "(failed) " + action
		}
		rows = append(rows, []string{
			fmt.Sprint(a.Number), seconds(a.At), seconds(a.Thought), seconds(a.Took),
			clip(visible(action), t.columns(40)),
		})
	}
	t.table("Steps", rows)
	t.talk(v.Talk)
	t.table("What users got", userRows(t, v.Users))
}

// userRows are the looks at what users got: of several that follow each other with the same complaints the first, and
// the last of all.
func userRows(t *transcript, looks []shownLook) [][]string {
	rows := [][]string{{"AT", "WHEN", "REQUESTS/S", "SUCCEED", "P95", "COMPLAINTS"}}
	before := ""
	for i, l := range looks {
		what := strings.Join(l.Complaints, "; ")
		if state := l.When + what; state == before && i < len(looks)-1 {
			continue
		} else {
			before = state
		}
		rows = append(rows, []string{
			seconds(l.At), l.When, fmt.Sprintf("%.1f", l.Rate), fmt.Sprintf("%.1f %%", 100*l.Success),
			fmt.Sprintf("%.0f ms", 1000*l.P95), clip(visible(cmp.Or(what, "none")), t.columns(60)),
		})
	}
	return rows
}

// talk prints what the members of a group told each other, whole.
func (t *transcript) talk(list []shownMessage) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(t.w, "\n%s\n", t.paint(bold, "What was said"))
	for _, m := range list {
		fmt.Fprintf(t.w, "  %s  %s\n", t.paint(dim, seconds(m.At)), visible(headOf(m.Message)))
		t.block("    ", "", wrap(visible(strings.TrimSpace(m.Text)), t.columns(4)))
	}
}

// pastLine says which past a world had.
func pastLine(p *record.Past) string {
	switch p.Made {
	case record.PastWritten:
		return fmt.Sprintf("The world was given a past of %d days.", p.Days)
	case record.PastLived:
		lived := time.Duration(p.Seconds * float64(time.Second)).Round(time.Second)
		return fmt.Sprintf("The world had a past of its own, of %v.", lived)
	}
	return "The world had no past but its own start."
}

func seconds(n float64) string { return fmt.Sprintf("%.1f s", n) }

// table prints rows below a title, unless there are none but the head.
func (t *transcript) table(title string, rows [][]string) {
	if len(rows) < 2 {
		return
	}
	fmt.Fprintf(t.w, "\n%s\n", t.paint(bold, title))
	w := tabwriter.NewWriter(t.w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = strings.NewReplacer("\t", " ", "\n", " ").Replace(visible(cell))
		}
		fmt.Fprintln(w, "  "+strings.Join(row, "\t"))
	}
	_ = w.Flush() // What cannot be printed was not printed before either.
}
