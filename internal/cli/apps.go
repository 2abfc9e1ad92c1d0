package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/problem"
)

// applications are what --app can name.
func applications() []*app.App { return problem.Apps() }

// findApp returns an application by name.
func findApp(name string) (*app.App, error) {
	var names []string
	for _, a := range applications() {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return nil, fail(ExitUsage, fmt.Errorf("there is no application %q", name), "There are: "+strings.Join(names, ", ")+".")
}

func newApps(s *State) *cobra.Command {
	return &cobra.Command{
		Use:   "apps [NAME]",
		Short: "List the applications, or show who calls whom in one",
		Example: `  aiopslab apps
  aiopslab apps hotel-reservation
  aiopslab up --app hotel-reservation`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listApps(s)
			}
			a, err := findApp(args[0])
			if err != nil {
				return err
			}
			return showApp(s, a)
		},
	}
}

func listApps(s *State) error {
	w := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tNAMESPACE\tDEPLOYMENTS\tFRONTEND")
	for _, a := range applications() {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s:%d\n", a.Name, a.Namespace, len(a.Services), a.Frontend.Service, a.Frontend.Port)
	}
	return w.Flush()
}

func showApp(s *State, a *app.App) error {
	fmt.Fprint(s.Stdout, a.Summary(), "Services:\n")
	w := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
	for _, svc := range a.Services {
		calls := svc.Kind
		if len(svc.Calls) > 0 {
			calls = "-> " + strings.Join(svc.Calls, ", ")
		}
		fmt.Fprintf(w, "  %s\t%s\n", svc.Name, calls)
	}
	return w.Flush()
}
