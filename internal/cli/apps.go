package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/app/social"
	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/workload"
)

// deployTimeout is how long an application may take to be ready.
const deployTimeout = 5 * time.Minute

// applications are what --app can name.
func applications() []*app.App { return []*app.App{hotel.App(), social.App()} }

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

// deploy brings an application and its telemetry up, and returns when all of it is ready.
func deploy(ctx context.Context, c cloud.Cloud, a *app.App) error {
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	o, err := observe.New(c.RESTConfig(), c.Dial)
	if err != nil {
		return err
	}
	defer o.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return o.Deploy(ctx) })
	g.Go(func() error { return deployApp(ctx, c, a) })
	return g.Wait()
}

func deployApp(ctx context.Context, c cloud.Cloud, a *app.App) error {
	objects, err := manifest.Read(a.Manifests)
	if err != nil {
		return err
	}
	client, err := manifest.NewClient(c.RESTConfig())
	if err != nil {
		return err
	}
	if err := client.Apply(ctx, a.Namespace, objects); err != nil {
		return err
	}
	return client.WaitReady(ctx, a.Namespace, objects)
}

// startLoad sends an application's mix of requests, rate a second, until stop is called, which
// returns what its users got.
func startLoad(c cloud.Cloud, a *app.App, rate float64) (stop func() workload.SLI, err error) {
	mix, err := workload.BuiltinMix(a.Mix)
	if err != nil {
		return nil, err
	}
	g, err := workload.New(workload.Spec{
		Mix: workload.MixRef{Mix: mix}, Arrivals: &workload.Arrivals{Rate: workload.Rate{{Constant: &rate}}},
	}, workload.Target{BaseURL: "http://" + a.Host(), DialContext: c.Dial})
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Run(context.Background()) // It ends by Stop alone.
	}()
	return func() workload.SLI {
		g.Stop()
		<-done
		return g.Snapshot().Window("whole").Total
	}, nil
}
