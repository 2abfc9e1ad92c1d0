package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/blunt"
	"github.com/aiopslab/aiopslab/agent/classic"
	"github.com/aiopslab/aiopslab/agent/external"
	"github.com/aiopslab/aiopslab/agent/flash"
	"github.com/aiopslab/aiopslab/agent/noop"
	"github.com/aiopslab/aiopslab/agent/oracle"
	"github.com/aiopslab/aiopslab/agent/react"
	"github.com/aiopslab/aiopslab/agent/replay"
	"github.com/aiopslab/aiopslab/agent/runbook"
	"github.com/aiopslab/aiopslab/agent/shell"
	"github.com/aiopslab/aiopslab/agent/tools"
	"github.com/aiopslab/aiopslab/internal/strict"
)

// defaultAgent is who works on a problem if nobody else is named.
const defaultAgent = "runbook"

// agents are who --agent can name.
func agents(s *State) []agent.Entry {
	list := append(slices.Clone(s.Agents), runbook.Entry, shell.Entry, react.Entry, flash.Entry, tools.Entry)
	list = append(list, classic.Entries()...)
	return append(append(list, oracle.Entry, noop.Entry), blunt.Entries()...)
}

// findAgent returns an agent by name; "replay:FILE" is one that does what a record says, and
// "exec:COMMAND" one that is a program.
func findAgent(s *State, name string) (agent.Entry, error) {
	if command, ok := strings.CutPrefix(name, external.Prefix); ok {
		e, err := external.Entry(command, tempDir(s))
		return e, fail(ExitUsage, err, "Write it as --agent 'exec:python3 agent.py'; docs/ways-in.md tells how it speaks with the lab.")
	}
	if file, ok := strings.CutPrefix(name, "replay:"); ok {
		e, err := replay.Entry(file)
		if err != nil {
			return e, fail(ExitUsage, fmt.Errorf("--agent %s: %w", name, err), "Name the record of a run, a .jsonl file.")
		}
		return e, nil
	}
	var names []string
	for _, e := range agents(s) {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	hint := "Run 'aiopslab agents' to see them."
	if near := strict.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("Did you mean '%s'?", near)
	}
	return agent.Entry{}, fail(ExitUsage, fmt.Errorf("there is no agent %q", name), hint)
}

var yesNo = map[bool]string{true: "yes", false: "no"}

func newAgents(s *State) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "agents",
		Short: "List the agents",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if output == "json" {
				type row struct {
					Name       string `json:"name"`
					Doc        string `json:"doc"`
					KnowsTruth bool   `json:"knows_truth"`
					NeedsModel bool   `json:"needs_model"`
				}
				var list []row
				for _, e := range agents(s) {
					list = append(list, row{e.Name, e.Doc, e.KnowsTruth, e.NeedsModel})
				}
				return printJSON(s.Stdout, list)
			}
			w := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tNEEDS A MODEL\tKNOWS THE ANSWER\tWHAT IT DOES")
			for _, e := range agents(s) {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", e.Name, yesNo[e.NeedsModel], yesNo[e.KnowsTruth], e.Doc)
			}
			fmt.Fprintln(w, "replay:FILE\tno\tno\tgives the responses of a record again")
			fmt.Fprintln(w, "exec:COMMAND\tno\tno\tyour own program, in any language")
			return w.Flush()
		},
	}
	outputFlag(c, &output)
	return c
}

// outputFlag adds -o to a command that can print JSON. More are further formats.
func outputFlag(c *cobra.Command, output *string, more ...string) {
	formats := append([]string{"json"}, more...)
	c.Flags().StringVarP(output, "output", "o", "", "print `format` "+strings.Join(formats, " or "))
	pre := c.PreRunE
	c.PreRunE = func(c *cobra.Command, args []string) error {
		ok := *output == ""
		for _, f := range formats {
			ok = ok || *output == f
		}
		if !ok {
			return fail(ExitUsage, fmt.Errorf("-o %s: want %s", *output, strings.Join(formats, " or ")), "")
		}
		if pre != nil {
			return pre(c, args)
		}
		return nil
	}
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
