package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// The formats of -o: a line with the name of each thing of a list, or all that is known of it.
const (
	asName = "name"
	asJSON = "json"
	asYAML = "yaml"
)

// Formats of commands that print a list, and of those that print one thing.
var (
	listFormats = []string{asName, asJSON, asYAML}
	dataFormats = []string{asJSON, asYAML}
)

// outputFlag adds -o to a command that can print these formats.
func outputFlag(c *cobra.Command, output *string, formats ...string) {
	c.Flags().StringVarP(output, "output", "o", "", "print `format` "+alternatives(formats))
	completeFlag(c, "output", func() []string { return formats })
	pre := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		ok := *output == ""
		for _, f := range formats {
			ok = ok || *output == f
		}
		if !ok {
			return fail(ExitUsage, fmt.Errorf("-o %s: want %s", *output, alternatives(formats)), "")
		}
		if pre != nil {
			return pre(c, args)
		}
		return nil
	}
}

// alternatives joins words as in "a, b or c".
func alternatives(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// printData prints a value as JSON or YAML. It reports whether the format was one of them.
func printData(w io.Writer, output string, v any) (done bool, err error) {
	switch output {
	case asJSON:
		return true, printJSON(w, v)
	case asYAML:
		b, err := yaml.Marshal(v)
		if err == nil {
			_, err = w.Write(b)
		}
		return true, err
	}
	return false, nil
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// list is rows of a kind, as people and programs want them.
type list[T any] struct {
	rows   []T
	name   func(T) string
	header string         // names of the columns, with tabs between
	line   func(T) string // the columns of a row
}

// print prints the list in a format; the empty one is a table.
func (l list[T]) print(w io.Writer, output string) error {
	if l.rows == nil {
		l.rows = []T{}
	}
	if done, err := printData(w, output, l.rows); done {
		return err
	}
	if output == asName {
		for _, r := range l.rows {
			if _, err := fmt.Fprintln(w, l.name(r)); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, l.header)
	for _, r := range l.rows {
		fmt.Fprintln(t, l.line(r))
	}
	return t.Flush()
}
