package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/aiopslab/aiopslab/internal/strict"
)

// readFlags takes the flags of a command from a YAML file: names and values, or lists of values. Those of the command
// line count more.
func readFlags(c *cobra.Command, file string) error {
	hint := "It has the names of flags and their values, such as 'suite: aiopslab'."
	b, err := os.ReadFile(file)
	if err != nil {
		return fail(ExitUsage, err, "Name a YAML file; problems are named with --suite.")
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return fail(ExitUsage, fmt.Errorf("%s: %s", file, oneLine(err.Error())), hint)
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return fail(ExitUsage, fmt.Errorf("%s is no list of flags", file), hint)
	}
	given := map[string]bool{}
	c.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = true })
	pairs := doc.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		name, where := pairs[i].Value, fmt.Sprintf("%s:%d", file, pairs[i].Line)
		f := c.Flags().Lookup(name)
		if f == nil || f.Hidden || name == "help" {
			return fail(ExitUsage, fmt.Errorf("%s: there is no flag %q", where, name), nearFlag(c, name))
		}
		if given[name] {
			continue
		}
		if err := setFlag(c, f, pairs[i+1]); err != nil {
			return fail(ExitUsage, fmt.Errorf("%s: %s: %w", where, name, err), "")
		}
	}
	return nil
}

// nearFlag is the hint for a flag that there is not.
func nearFlag(c *cobra.Command, name string) string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if near := strict.Nearest(name, names); near != "" {
		return fmt.Sprintf("Did you mean '%s'?", near)
	}
	return fmt.Sprintf("Run '%s --help' to see the flags.", c.CommandPath())
}

// setFlag gives a flag what a file says.
func setFlag(c *cobra.Command, f *pflag.Flag, n *yaml.Node) error {
	values := []string{n.Value}
	list, many := f.Value.(pflag.SliceValue)
	switch {
	case n.Kind == yaml.SequenceNode && many:
		values = nil
		for _, x := range n.Content {
			if x.Kind != yaml.ScalarNode {
				return errors.New("want a list of plain values")
			}
			values = append(values, x.Value)
		}
	case n.Kind != yaml.ScalarNode:
		return errors.New("want a plain value")
	case many:
		values = strings.Split(n.Value, ",")
	}
	if many {
		f.Changed = true
		return list.Replace(values)
	}
	if err := f.Value.Set(values[0]); err != nil {
		if form := forms[f.Value.Type()]; form != "" {
			return fmt.Errorf("want %s, got %q", form, values[0])
		}
		return err
	}
	f.Changed = true
	return nil
}
