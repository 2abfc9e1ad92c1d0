package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/internal/adopt"
	"github.com/aiopslab/aiopslab/observe"
)

type adoptFlags struct {
	adopt.Options
	traces string // of a Jaeger
	tempo  string
	calls  []string
}

func newAdopt(s *State) *cobra.Command {
	f := &adoptFlags{}
	c := &cobra.Command{
		Use:   "adopt PATH --entry SERVICE:PORT --mix FILE",
		Short: "Make an application and problems of your own chart or manifests",
		Long: `Make an application and problems of your own chart or manifests.

PATH is a Helm chart, a directory or an archive, or manifests, a directory or a
file. --entry is where requests of users go, and --mix says what users do, as
docs/apps.md has it. What is written to a directory is an application that --apps
takes, and problems over it that --problems takes: for each workload that requests
of users reach, the faults that fit it. Read them, and change what you know better.

Who calls whom is told by the addresses in variables and ConfigMaps and, with
--traces or --tempo, by a Jaeger or a Tempo that has seen requests. No cluster is asked, and nothing is
deployed: 'aiopslab verify' proves the problems, as printed at the end.`,
		Example: `  aiopslab adopt examples/shop/manifests --entry front:80 --mix users.yaml --name shop
  aiopslab adopt ./chart --values prod.yaml --entry web:http --mix users.yaml -o web
  aiopslab adopt k8s/ --entry web:80 --mix users.yaml --traces http://localhost:16686`,
		Args: oneArg("a chart or manifests"),
		RunE: func(c *cobra.Command, args []string) error {
			f.Source = args[0]
			return f.run(c.Context(), s)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.Entry, "entry", "", "the `SERVICE:PORT` that requests of users go to; a port's number or name")
	flags.StringVar(&f.Mix, "mix", "", "the `file` that says what users do")
	flags.StringVar(&f.Name, "name", "", "the `name` of the application (default that of the chart or the manifests)")
	flags.StringVar(&f.Namespace, "namespace", "",
		"the application's (default the one that the manifests name, or test-NAME)")
	flags.StringVarP(&f.Dir, "output", "o", "", "the `directory` to make (default the name)")
	flags.StringSliceVar(&f.Values, "values", nil, "`file` of the chart's values; several count in this order")
	flags.StringSliceVar(&f.Kinds, "faults", nil, "only these `kinds` of faults (default all that fit)")
	flags.Float64Var(&f.Rate, "rate", adopt.DefaultRate, "how many requests users send a second")
	flags.StringVar(&f.traces, "traces", "", "the `URL` of a Jaeger, to see who called whom in the last day")
	flags.StringVar(&f.tempo, "tempo", "", "the `URL` of a Tempo, instead of a Jaeger")
	c.MarkFlagsMutuallyExclusive("traces", "tempo")
	flags.StringSliceVar(&f.calls, "calls", nil,
		"who calls whom beside what manifests and traces tell, as `CALLER:CALLEE`; several")
	completeFlag(c, "faults", func() (names []string) {
		for _, k := range fault.Kinds() {
			names = append(names, k.Name)
		}
		return names
	})
	return c
}

// tracesWindow is how far back traces tell who calls whom, and tracesTimeout how long an answer may take.
const (
	tracesWindow  = 24 * time.Hour
	tracesTimeout = 20 * time.Second
)

func (f *adoptFlags) run(ctx context.Context, s *State) (err error) {
	for _, given := range []struct{ flag, value, hint string }{
		{"entry", f.Entry, "It is the Service that requests of users go to, as front:80."},
		{"mix", f.Mix, "It is a file that says what users do; docs/apps.md has the form."},
	} {
		if given.value == "" {
			return fail(ExitUsage, errors.New("--"+given.flag+" is missing"), given.hint)
		}
	}
	if f.Rate < 1 || f.Rate > 1000 {
		return fail(ExitUsage, fmt.Errorf("--rate %g: want 1 to 1000 requests a second", f.Rate), "")
	}
	if f.Library, err = s.base(); err != nil {
		return err
	}
	if f.Links, err = f.links(ctx); err != nil {
		return err
	}
	images := s.Parts.AllImages()
	f.Lacks = func(image string) string {
		_, _, err := images.Resolve(image)
		if err == nil {
			return ""
		}
		return explainImage(image, images.Tags(image), err).Error()
	}
	r, err := adopt.Adopt(f.Options)
	if err != nil {
		return fail(ExitUsage, err, "docs/adopt.md has all of it.")
	}
	f.tell(s, r)
	return nil
}

// links asks a Jaeger or a Tempo who calls whom.
func (f *adoptFlags) links(ctx context.Context) ([]observe.Link, error) {
	var given []observe.Link
	for _, text := range f.calls {
		caller, callee, ok := strings.Cut(text, ":")
		if !ok || caller == "" || callee == "" {
			return nil, fail(ExitUsage, fmt.Errorf("--calls %s: want CALLER:CALLEE, as in front:catalog", text), "")
		}
		given = append(given, observe.Link{Parent: caller, Child: callee})
	}
	client := &http.Client{Timeout: tracesTimeout}
	flag, address, port, hint := "traces", f.traces, 16686,
		"It must be Jaeger's query API; 'curl URL/api/services' lists the services that sent traces."
	if f.tempo != "" {
		flag, address, port, hint = "tempo", f.tempo, 3200,
			"It must be Tempo's HTTP API; 'curl URL/api/search/tag/service.name/values' lists the services that "+
				"sent traces."
	}
	if address == "" {
		return given, nil
	}
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fail(ExitUsage, fmt.Errorf("--%s %s: want a URL such as http://localhost:%d", flag, address, port), "")
	}
	var traces observe.Traces = observe.JaegerAt(client, address)
	if f.tempo != "" {
		traces = observe.TempoAt(client, address)
	}
	now := time.Now()
	links, err := traces.Dependencies(ctx, now.Add(-tracesWindow), now)
	if err == nil && len(links) == 0 {
		err = errors.New("there are no traces of the last day in which a service calls another")
	}
	return append(given, links...), fail(ExitError, err, hint)
}

// tell says what was made, and what to do next.
func (f *adoptFlags) tell(s *State, r *adopt.Result) {
	out := func(format string, args ...any) { fmt.Fprintf(s.Stdout, format+"\n", args...) }
	out("%s: %d workloads in namespace %s, users come to %s", r.App.Name, len(r.App.Services), r.App.Namespace,
		r.App.Host())
	printCalls(out, r.App)
	for _, n := range r.Notes {
		out("note: %s", n)
	}
	if len(r.Unreached) > 0 {
		out("note: no problems for %s: no request of users is seen to reach it; --traces, --tempo or --calls may tell",
			strings.Join(r.Unreached, ", "))
	}
	if len(r.Weak) > 0 {
		out("note: %s: nobody knows what only it answers, so anybody could in its place; say it as ask in %s",
			strings.Join(r.Weak, ", "), filepath.Join(r.Dir, "app.yaml"))
	}
	where := ""
	for _, line := range r.Images {
		out("note: the embedded cloud has not all images: %s; use a cluster that has it, with --cloud kubeconfig", line)
		where = " --cloud kubeconfig"
	}
	problems := filepath.Join(r.Dir, adopt.ProblemsDir)
	out("%d faults fit, a document each in %s", len(r.Documents), problems)
	out("Prove them, and remove the documents of those that do not hold:")
	out("  aiopslab verify --apps %s --problems %s --suite own%s", r.Dir, problems, where)
}

// printCalls prints who calls whom.
func printCalls(out func(string, ...any), a *app.App) {
	for _, svc := range a.Services {
		if len(svc.Calls) > 0 {
			out("  %s -> %s", svc.Name, strings.Join(svc.Calls, ", "))
		}
	}
}
