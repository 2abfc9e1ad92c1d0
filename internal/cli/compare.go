package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/record/index"
	runs "github.com/aiopslab/aiopslab/report"
)

func newCompare(s *State) *cobra.Command {
	var output string
	var in []string
	c := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two agents by their runs of the same problems",
		Long: `Compare two agents, or two directories of records, by pairs of runs of the same
problem with the same seed: how many each solved, the difference with its 95 %
interval, what runs took, and the smallest difference that so many problems
could have shown.

A and B are agents, as 'aiopslab report' names them, with records in 'results'
or where --in says; or paths of records, each of which is one side.

-o markdown is for a pull request, -o csv for a spreadsheet, and -o html is one
page that needs no other file.`,
		Example: `  aiopslab compare runbook react
  aiopslab compare 'react (gpt-4o)' 'react (gpt-4o-mini)' --in campaign
  aiopslab compare before/ after/ -o markdown`,
		Args: twoArgs("the two to compare"),
		RunE: func(_ *cobra.Command, args []string) error { return compareRuns(s, args, in, output) },
	}
	c.Flags().StringSliceVar(&in, "in", []string{defaultResults}, "`paths` of the records of agents")
	outputFlag(c, &output, asMarkdown, asCSV, asHTML, asJSON, asYAML)
	return c
}

func compareRuns(s *State, names, in []string, output string) error {
	var sides [2][]*runs.Run
	var known []string
	var err error
	if !arePaths(names) {
		err = eachKnown(s, in, func(r *runs.Run) {
			known = append(known, r.Agent, r.Contestant())
			for i, name := range names {
				if name == r.Agent || name == r.Contestant() {
					sides[i] = append(sides[i], r)
				}
			}
		})
	} else {
		for i, path := range names {
			err = eachKnown(s, []string{path}, func(r *runs.Run) { sides[i] = append(sides[i], r) })
			if err != nil {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	slices.Sort(known)
	for i, name := range names {
		if len(sides[i]) == 0 {
			return fail(ExitUsage, fmt.Errorf("there is no run of %s", name),
				"There are runs of: "+strings.Join(slices.Compact(known), ", "))
		}
	}
	c := runs.Compare(names[0], names[1], sides[0], sides[1])
	if c.Paired.Of() == 0 {
		return fail(ExitUsage, fmt.Errorf("%s and %s have no run of the same problem with the same seed that counts",
			names[0], names[1]), "Run both with the same problems and the same --seed.")
	}
	if done, err := printData(s.Stdout, output, c); done {
		return err
	}
	switch output {
	case asMarkdown:
		return c.WriteMarkdown(s.Stdout)
	case asCSV:
		return c.WriteCSV(s.Stdout)
	case asHTML:
		return c.WriteHTML(s.Stdout)
	}
	return c.WriteText(s.Stdout)
}

// arePaths reports whether all names are of files or directories.
func arePaths(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		_, err := os.Stat(name)
		return err != nil
	})
}

// eachRun reads the records of paths. What cannot be read is named and left out.
func eachRun(s *State, paths []string, take func(*runs.Run)) error {
	files, err := recordFiles(paths)
	if err != nil {
		return err
	}
	out := leftOut{s: s, paths: paths}
	for r, err := range runs.Read(files) {
		if err != nil {
			out.add(err)
			continue
		}
		take(r)
	}
	return out.end(len(files))
}

// eachKnown tells of the runs of paths what a comparison asks: those of directories by the index, which reads a record
// once. What cannot be read is named and left out.
func eachKnown(s *State, paths []string, take func(*runs.Run)) error {
	out, all := leftOut{s: s, paths: paths}, 0
	know := func(x *index.Run) {
		if r, err := runs.Known(x); err != nil {
			out.add(err)
		} else {
			take(r)
		}
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			if err := eachRun(s, []string{path}, take); err != nil {
				return err
			}
			all++
			continue
		}
		x, err := readIndex(path)
		if err != nil {
			return err
		}
		for _, u := range x.Unreadable {
			out.add(fmt.Errorf("%s: %s", u.File, u.Why))
		}
		for i := range x.Runs {
			know(&x.Runs[i])
		}
		all += len(x.Runs) + len(x.Unreadable)
	}
	if all == 0 {
		return noRecords(paths)
	}
	return out.end(all)
}

// noRecords is the error of paths without any.
func noRecords(paths []string) error {
	return fail(ExitUsage, fmt.Errorf("there is no record of a run in %s", strings.Join(paths, ", ")), recordsHint)
}

// recordsHint says where records come from.
const recordsHint = "Name a directory with records; 'aiopslab run' makes them."

// recordFiles are the records of paths, one at least.
func recordFiles(paths []string) ([]string, error) {
	files, err := runs.Files(paths...)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail(ExitUsage, err, recordsHint)
	} else if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, noRecords(paths)
	}
	return files, nil
}

// leftOut are the records that cannot be read.
type leftOut struct {
	s     *State
	paths []string
	n     int
}

// add names a record.
func (l *leftOut) add(err error) {
	l.n++
	fmt.Fprintf(l.s.Stderr, "aiopslab: left out: %s\n", oneLine(err.Error()))
}

// end says how many records of all there are, and fails if that is all of them.
func (l *leftOut) end(all int) error {
	if l.n > 0 {
		fmt.Fprintf(l.s.Stderr, "aiopslab: %d of %d records left out\n", l.n, all)
	}
	if l.n == all {
		return fail(ExitUsage, fmt.Errorf("no record of a run in %s can be read", strings.Join(l.paths, ", ")),
			recordsHint)
	}
	return nil
}
