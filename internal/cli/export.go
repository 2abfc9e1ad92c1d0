package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/record/index"
	"github.com/aiopslab/aiopslab/report/dataset"
	"github.com/aiopslab/aiopslab/report/export"
)

// The formats of export.
const (
	asOTLP     = "otlp"
	asATIF     = "atif"
	asAIOpsLab = "aiopslab"
	asCSV      = "csv"
	asParquet  = "parquet"
)

var exportFormats = []string{asOTLP, asATIF, asAIOpsLab, asCSV, asParquet}

// headersVariable has what an endpoint wants to be shown, as the exporters of OpenTelemetry take it.
const headersVariable = "OTEL_EXPORTER_OTLP_HEADERS"

type exportFlags struct {
	format   string
	out      string
	endpoint string
	steps    bool
	// telemetry makes a data set of incidents instead.
	telemetry bool
	in        string
}

func newExport(s *State) *cobra.Command {
	f := &exportFlags{}
	c := &cobra.Command{
		Use:   "export [RUN...]",
		Short: "Write runs in the formats of other tools",
		Long: `Write runs in the formats of other tools, from their records.

  otlp       spans of OpenTelemetry's conventions for generative AI, as lines of
             JSON, or sent to --endpoint
  atif       trajectories in Harbor's Agent Trajectory Interchange Format, v1.7
  aiopslab   AIOpsLab's session files
  csv        a table with a row for each run, or with --steps for each step
  parquet    the same in the format of Apache Parquet

--telemetry makes a data set of incidents instead, in the shape that RCAEval
uses, of what 'run' or 'bench' with --keep-telemetry has kept: metrics, logs,
traces and topology in DIR/cases/RUN, what was wrong and when in DIR/truth/RUN.

RUN is a record, or a directory of them; or the id of a run, as 'aiopslab runs'
lists it, or as much of its beginning as no other run has. Without any it is
'results'. Without -o, standard output gets it. With -o, atif and aiopslab make a directory with a
file RUN.json for each run, or one file if its name ends in .json and there is
one run; the others make a file. Records that cannot be read are named and left
out. What an endpoint wants to be shown, such as a key, is in
$` + headersVariable + `, as key=value with commas between them.`,
		Example: `  aiopslab export --format csv -o runs.csv
  aiopslab export results --format atif -o trajectories
  aiopslab export results --format otlp --endpoint http://localhost:4318
  aiopslab export results --format parquet --steps -o steps.parquet
  aiopslab export results --telemetry -o incidents
  aiopslab export 20261117-1618 20261118-0930 --telemetry -o incidents`,
		RunE: func(c *cobra.Command, args []string) error { return exportRuns(c.Context(), s, f, args) },
	}
	c.Flags().StringVar(&f.format, "format", "", "`format`: "+alternatives(exportFormats))
	c.Flags().StringVarP(&f.out, "output", "o", "", "the `file` or directory to make")
	c.Flags().StringVar(&f.endpoint, "endpoint", "", "send otlp to this `URL`, with OTLP over HTTP")
	c.Flags().BoolVar(&f.steps, "steps", false, "a table of steps, not of runs")
	completeFlag(c, "format", func() []string { return exportFormats })
	c.Flags().BoolVar(&f.telemetry, "telemetry", false, "a data set of incidents, not of runs")
	inFlag(c, &f.in)
	return c
}

func (f *exportFlags) check() error {
	hint := "Run 'aiopslab export --help' to see what each is."
	switch {
	case f.telemetry && (f.format != "" || f.steps || f.endpoint != ""):
		return fail(ExitUsage, errors.New("--telemetry goes without --format, --steps and --endpoint"), hint)
	case f.out != "" && f.endpoint != "":
		return fail(ExitUsage, errors.New("-o and --endpoint: name one of them"), "")
	case f.telemetry && f.out == "":
		return fail(ExitUsage, errors.New("--telemetry needs a directory: name it with -o"), "")
	case f.telemetry:
		return nil
	case f.format == "":
		return fail(ExitUsage, errors.New("--format is missing: want "+alternatives(exportFormats)), hint)
	case !slices.Contains(exportFormats, f.format):
		return fail(ExitUsage, fmt.Errorf("--format %s: want %s", f.format, alternatives(exportFormats)), hint)
	case f.endpoint != "" && f.format != asOTLP:
		return fail(ExitUsage, fmt.Errorf("--endpoint is for --format %s, not for %s", asOTLP, f.format), "")
	case f.steps && f.format != asCSV && f.format != asParquet:
		return fail(ExitUsage, fmt.Errorf("--steps is for --format %s and %s, not for %s", asCSV, asParquet, f.format),
			"")
	}
	return nil
}

// records are the records of runs and paths, each once.
func (f *exportFlags) records(names []string) (files []string, err error) {
	x := sync.OnceValues(func() (*index.Index, error) { return readIndex(f.in) })
	have := map[string]bool{}
	for _, name := range names {
		var some []string
		if _, missing := os.Stat(name); missing == nil {
			some, err = recordFiles([]string{name})
		} else {
			some = make([]string, 1)
			some[0], err = findRunIn(name, f.in, x)
		}
		if err != nil {
			return nil, err
		}
		for _, file := range some {
			if !have[file] {
				files, have[file] = append(files, file), true
			}
		}
	}
	return files, nil
}

func exportRuns(ctx context.Context, s *State, f *exportFlags, names []string) error {
	if err := f.check(); err != nil {
		return err
	}
	if len(names) == 0 {
		names = []string{f.in}
	}
	files, err := f.records(names)
	if err != nil {
		return err
	}
	if f.telemetry {
		return exportIncidents(ctx, s, f.out, files)
	}
	to, err := f.open(s, files)
	if err != nil {
		return err
	}
	out := leftOut{s: s, paths: names}
	for _, name := range files {
		if ctx.Err() != nil {
			to.drop()
			return interrupted
		}
		r, err := export.Read(name)
		if err != nil {
			out.add(err)
			continue
		}
		if err := to.Write(ctx, r); err != nil {
			to.drop()
			return fail(ExitError, fmt.Errorf("export: %w", err), "")
		}
	}
	if err := out.end(len(files)); err != nil {
		to.drop()
		return err
	}
	if err := to.finish(); err != nil {
		return fail(ExitError, fmt.Errorf("export: %w", err), "")
	}
	if to.where != "" {
		fmt.Fprintf(s.Stdout, "%s %s.\n", counted(len(files)-out.n, "run"), to.where)
	}
	return nil
}

// exportIncidents makes a data set of what runs have kept. Runs that have nothing, or are no case of what they should
// be, are named and left out.
func exportIncidents(ctx context.Context, s *State, dir string, files []string) error {
	set := dataset.Set{Dir: dir}
	out := leftOut{s: s, paths: []string{dir}}
	for _, name := range files {
		if ctx.Err() != nil {
			return interrupted
		}
		r, err := export.Read(name)
		if err == nil {
			err = set.Add(r)
		}
		if errors.Is(err, syscall.ENOSPC) {
			return fail(ExitError, fmt.Errorf("export: %w", err), "")
		}
		if err != nil {
			out.add(err)
		}
	}
	if out.n == len(files) {
		return fail(ExitUsage, errors.New("there is no run with telemetry that makes a case"),
			"'aiopslab run PROBLEM --keep-telemetry' keeps it.")
	}
	if err := out.end(len(files)); err != nil {
		return err
	}
	fmt.Fprintf(s.Stdout, "%s exported to %s.\n", counted(len(files)-out.n, "incident"), dir)
	return nil
}

// destination is where an export goes.
type destination struct {
	export.Writer
	where string   // in words; empty for standard output
	file  *os.File // that gets its name when it is whole, or nil
	name  string
}

// drop removes what is not whole.
func (d *destination) drop() {
	if d.file != nil {
		_ = d.file.Close() // It goes away.
		_ = os.Remove(d.file.Name())
	}
}

// finish completes the export.
func (d *destination) finish() error {
	err := d.Close()
	if d.file == nil {
		return err
	}
	if err == nil {
		err = d.file.Close()
	}
	if err == nil {
		err = os.Rename(d.file.Name(), d.name)
	}
	if err != nil {
		d.drop()
	}
	return err
}

// open makes the destination of an export of some records.
func (f *exportFlags) open(s *State, files []string) (*destination, error) {
	if f.endpoint != "" {
		e, err := export.NewEndpoint(f.endpoint, s.Env(headersVariable))
		if err != nil {
			return nil, fail(ExitUsage, fmt.Errorf("--endpoint: %w", err), "")
		}
		return &destination{Writer: e, where: "sent to " + f.endpoint}, nil
	}
	if f.out == "" && f.format == asParquet && s.OutTerminal {
		return nil, fail(ExitUsage, errors.New("parquet is nothing for a terminal"), "Name a file with -o.")
	}
	if f.out == "" {
		w, err := f.writer(s.Stdout)
		return &destination{Writer: w}, err
	}
	if f.folder() {
		return f.openFolder(files)
	}
	if (f.format == asATIF || f.format == asAIOpsLab) && len(files) > 1 {
		return nil, fail(ExitUsage, fmt.Errorf("-o %s is one file, and there are %d records", f.out, len(files)),
			"Name a directory.")
	}
	for _, name := range files {
		if same(name, f.out) {
			return nil, fail(ExitUsage, fmt.Errorf("-o %s is a record, which would be lost", f.out), "")
		}
	}
	file, err := os.CreateTemp(filepath.Dir(f.out), ".export-*")
	if err != nil {
		return nil, fail(ExitError, fmt.Errorf("-o %s: %w", f.out, err), "")
	}
	d := &destination{where: "exported to " + f.out, file: file, name: f.out}
	err = file.Chmod(0o644)
	if err == nil {
		d.Writer, err = f.writer(file)
	}
	if err != nil {
		d.drop()
	}
	return d, err
}

// folder reports whether a directory is to be made.
func (f *exportFlags) folder() bool {
	return (f.format == asATIF || f.format == asAIOpsLab) && !strings.HasSuffix(f.out, ".json")
}

func (f *exportFlags) openFolder(files []string) (*destination, error) {
	for _, name := range files {
		if f.format == asATIF && same(filepath.Dir(name), f.out) {
			return nil, fail(ExitUsage,
				fmt.Errorf("-o %s has the session files of its runs, which would be lost", f.out),
				"Name another directory.")
		}
	}
	w, err := export.Folder(f.out, f.document())
	if err != nil {
		return nil, fail(ExitError, fmt.Errorf("-o %s: %w", f.out, err), "")
	}
	return &destination{Writer: w, where: "exported to " + f.out}, nil
}

// same reports whether two names are of one file.
func same(a, b string) bool {
	x, xerr := os.Stat(a)
	y, yerr := os.Stat(b)
	return xerr == nil && yerr == nil && os.SameFile(x, y)
}

// document is that of a format with one for each run.
func (f *exportFlags) document() export.Document {
	if f.format == asATIF {
		return export.ATIF
	}
	return export.Session
}

// writer writes the format.
func (f *exportFlags) writer(w io.Writer) (export.Writer, error) {
	rows := export.Runs
	if f.steps {
		rows = export.Steps
	}
	switch f.format {
	case asOTLP:
		return export.OTLP(w), nil
	case asCSV:
		return export.CSV(w, rows)
	case asParquet:
		return export.Parquet(w, rows), nil
	}
	return export.Stream(w, f.document()), nil
}
