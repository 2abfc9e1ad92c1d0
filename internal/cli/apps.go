package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/app"
)

// findApp returns an application by name.
func findApp(s *State, name string) (*app.App, error) {
	list, err := s.apps()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, a := range list {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return nil, fail(ExitUsage, fmt.Errorf("there is no application %q", name),
		"There are: "+strings.Join(names, ", ")+".")
}

func newApps(s *State) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "apps [NAME]",
		Short: "List the applications, or show who calls whom in one",
		Example: `  aiopslab apps
  aiopslab apps hotel-reservation
  aiopslab up --app hotel-reservation`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				all, err := s.apps()
				if err != nil {
					return err
				}
				return listApps(all).print(s.Stdout, output)
			}
			a, err := findApp(s, args[0])
			if err != nil {
				return err
			}
			if done, err := printData(s.Stdout, output, appDetailsOf(a)); done {
				return err
			}
			return showApp(s, a)
		},
	}
	outputFlag(c, &output, listFormats...)
	completeArgs(c, s.appNames, true, false)
	return c
}

type appRow struct {
	Name        string `json:"name"`
	Namespace   string `json:"namespace"`
	Deployments int    `json:"deployments"`
	Frontend    string `json:"frontend"`
}

func appRowOf(a *app.App) appRow {
	return appRow{a.Name, a.Namespace, len(a.Services), fmt.Sprintf("%s:%d", a.Frontend.Service, a.Frontend.Port)}
}

func listApps(apps []*app.App) list[appRow] {
	l := list[appRow]{
		header: "NAME\tNAMESPACE\tDEPLOYMENTS\tFRONTEND", name: func(r appRow) string { return r.Name },
		line: func(r appRow) string {
			return fmt.Sprintf("%s\t%s\t%d\t%s", r.Name, r.Namespace, r.Deployments, r.Frontend)
		},
	}
	for _, a := range apps {
		l.rows = append(l.rows, appRowOf(a))
	}
	return l
}

type appDetails struct {
	appRow
	Description string       `json:"description"`
	Operations  []string     `json:"operations"`
	Services    []serviceRow `json:"services"`
}

type serviceRow struct {
	Name  string   `json:"name"`
	Kind  string   `json:"kind"`
	Calls []string `json:"calls,omitempty"`
}

func appDetailsOf(a *app.App) appDetails {
	d := appDetails{appRow: appRowOf(a), Description: a.Description, Operations: a.Operations}
	for _, s := range a.Services {
		d.Services = append(d.Services, serviceRow{s.Name, s.Kind, s.Calls})
	}
	return d
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
