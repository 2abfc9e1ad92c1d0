package cli

import (
	"bufio"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/workload"
)

func newLoad(s *State) *cobra.Command {
	c := &cobra.Command{
		Use:   "load fit TRACE",
		Short: "Make a problem's load of a recorded trace",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newLoadFit(s))
	return c
}

// fitted is what 'load fit' found, for scripts.
type fitted struct {
	Load      string   `json:"load"` // as in a document
	Error     float64  `json:"error"`
	Explained float64  `json:"explained"`
	Requests  float64  `json:"requests"`
	Span      string   `json:"span"`
	Interval  string   `json:"interval"`
	Notes     []string `json:"notes"`
}

func newLoadFit(s *State) *cobra.Command {
	var period time.Duration
	var mean float64
	var output string
	c := &cobra.Command{
		Use:   "fit TRACE",
		Short: "Fit a curve with noise and surges to a trace, and print it as a problem's load",
		Long: `Fit a curve with noise and surges to a trace, and print it as a problem's load.

A trace is a CSV file with a column time, of single requests or, with a column
count, requests, rate or rps, of intervals; or lines of JSON with a time. A time
is in seconds, a duration, or a date.

How far the curve is off is in the first lines, which are comments. A day is made
ten minutes if nothing else is said, and a rate that no laptop serves 50 a second.`,
		Example: `  aiopslab load fit requests.csv
  aiopslab load fit requests.csv --period 5m --mean 40`,
		Args: oneArg("a trace"),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := fitTrace(args[0], period, mean)
			if err != nil {
				return err
			}
			if done, err := printData(s.Stdout, output, f); done {
				return err
			}
			return f.print(s, args[0])
		},
	}
	c.Flags().DurationVar(&period, "period", 0, "how long a period is to be in a run")
	c.Flags().Float64Var(&mean, "mean", 0, "how many requests a second there are to be in the mean")
	outputFlag(c, &output, dataFormats...)
	return c
}

func fitTrace(file string, period time.Duration, mean float64) (*fitted, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, fail(ExitUsage, err, "Name a file with a trace.")
	}
	defer in.Close()
	counts, err := workload.ReadCounts(bufio.NewReader(in))
	if err != nil {
		return nil, fail(ExitUsage, fmt.Errorf("%s: %w", file, err), "'aiopslab load fit --help' has the formats.")
	}
	f, err := problem.FitLoad(counts, period, mean)
	if err != nil {
		return nil, fail(ExitUsage, fmt.Errorf("%s: %w", file, err), "")
	}
	text, err := yaml.Marshal(map[string]*problem.Load{"load": &f.Load})
	if err != nil {
		return nil, err
	}
	return &fitted{
		Load: string(text), Error: f.Fit.Error, Explained: f.Fit.Explained, Requests: counts.Total(),
		Span: counts.Span().Round(time.Second).String(), Interval: counts.Interval.Round(time.Millisecond).String(),
		Notes: append([]string{}, f.Notes...),
	}, nil
}

// print writes the load as a part of a document, behind comments.
func (f *fitted) print(s *State, file string) error {
	fmt.Fprintf(s.Stdout, "# fitted to %s: %.0f requests in %s, counted every %s\n", file, f.Requests, f.Span,
		f.Interval)
	fmt.Fprintf(s.Stdout, "# error: the curve is off by %.1f %% of the mean in an interval (RMSE); it explains "+
		"%.0f %% of the changes (R²)\n", 100*f.Error, 100*f.Explained)
	for _, n := range f.Notes {
		fmt.Fprintf(s.Stdout, "# %s\n", n)
	}
	_, err := fmt.Fprint(s.Stdout, f.Load)
	return err
}
