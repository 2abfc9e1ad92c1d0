package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
)

type faultRow struct {
	Name        string              `json:"name"`
	Title       string              `json:"title"`
	Description string              `json:"description"`
	Cause       fault.Cause         `json:"cause"`
	Parameters  []fault.Parameter   `json:"parameters"`
	Targets     map[string][]string `json:"targets"` // by application
	TrueFixes   map[string]string   `json:"true_fixes,omitempty"`
	MayFix      map[string]string   `json:"may_fix,omitempty"`
}

func newFaults(s *State) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "faults [KIND]",
		Short: "List the kinds of faults, or tell all about one",
		Example: `  aiopslab faults
  aiopslab faults network_delay`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := s.base()
			if err != nil {
				return err
			}
			kinds, apps := l.Kinds, l.Apps
			if len(args) == 1 {
				k, err := fault.Find(kinds, args[0])
				if err != nil {
					return fail(ExitUsage, err, "Run 'aiopslab faults' to see them all.")
				}
				kinds = []*fault.Kind{k}
			}
			rows := []faultRow{}
			for _, k := range kinds {
				rows = append(rows, describeFault(k, apps))
			}
			if len(args) == 1 && output == "" {
				return rows[0].print(s, apps)
			}
			return list[faultRow]{
				rows: rows, name: func(r faultRow) string { return r.Name },
				header: "KIND\tWHAT GOES WRONG", line: func(r faultRow) string { return r.Name + "\t" + r.Title },
			}.print(s.Stdout, output)
		},
	}
	outputFlag(c, &output, listFormats...)
	completeArgs(c, s.kindNames, true, false)
	return c
}

func describeFault(k *fault.Kind, apps []*app.App) faultRow {
	r := faultRow{
		Name: k.Name, Title: k.Title, Description: k.Description, Cause: k.Cause, Parameters: k.Parameters(),
		Targets: map[string][]string{}, TrueFixes: k.TrueFixes, MayFix: k.MayFix,
	}
	for _, a := range apps {
		if t := k.Targets(a); len(t) > 0 {
			r.Targets[a.Name] = t
		}
	}
	return r
}

func (r faultRow) print(s *State, apps []*app.App) error {
	fmt.Fprintf(s.Stdout, "%s: %s\n\n%s\n\n", r.Name, r.Title, strings.TrimSpace(r.Description))
	w := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "Root cause:\t%s: %s\n", r.Cause.SystemLevel, r.Cause.FaultType)
	for _, p := range r.Parameters {
		fmt.Fprintf(w, "Parameter %s:\t%s, by default %v; %s\n", p.Name, p.Type, p.Default, p.Doc)
	}
	for _, a := range apps {
		if t := r.Targets[a.Name]; len(t) > 0 {
			fmt.Fprintf(w, "Targets in %s:\t%s\n", a.Name, strings.Join(t, ", "))
		}
	}
	for _, remedy := range fault.Remedies {
		if why, ok := r.TrueFixes[remedy]; ok {
			fmt.Fprintf(w, "Truly fixed by %s:\t%s\n", remedy, why)
		}
		if why, ok := r.MayFix[remedy]; ok {
			fmt.Fprintf(w, "With luck fixed by %s:\t%s\n", remedy, why)
		}
	}
	return w.Flush()
}
