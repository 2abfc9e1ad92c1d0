package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/agent"
	"github.com/aiopslab/aiopslab/agent/cage"
	"github.com/aiopslab/aiopslab/agent/external"
	"github.com/aiopslab/aiopslab/agent/replay"
	"github.com/aiopslab/aiopslab/internal/strict"
)

// replayPrefix begins the name of an agent that does what a record says.
const replayPrefix = "replay:"

// defaultAgent is who works on a problem if nobody else is named.
const defaultAgent = "runbook"

// findAgent returns an agent by name, with options behind a colon if it has any; "replay:FILE" is one that does what a
// record says, and "exec:COMMAND" one that is a program, which runs in a cage.
func findAgent(s *State, name string, c *cage.Cage) (agent.Entry, error) {
	if command, ok := strings.CutPrefix(name, external.Prefix); ok {
		e, err := external.Entry(command, c)
		return e, fail(ExitUsage, err, "Write it as --agent 'exec:python3 agent.py'; docs/ways-in.md tells how it "+
			"speaks with the lab.")
	}
	if file, ok := strings.CutPrefix(name, replayPrefix); ok {
		e, err := replay.Entry(file)
		if err != nil {
			return e, fail(ExitUsage, fmt.Errorf("--agent %s: %w", name, err),
				"Name the record of a run, a .jsonl file.")
		}
		return e, nil
	}
	var names []string
	var optional func() (agent.Entry, error)
	for _, e := range s.Parts.AllAgents(s.Stderr) {
		if e.Name == name {
			return e, nil
		}
		if options, ok := strings.CutPrefix(name, e.Name+":"); ok && e.Options != nil && optional == nil {
			optional = func() (agent.Entry, error) { return e.Options(options) }
		}
		names = append(names, e.Name)
	}
	if optional != nil {
		e, err := optional()
		return e, fail(ExitUsage, err, "docs/agents.md has what can stand behind the name of an agent.")
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
		RunE:  func(*cobra.Command, []string) error { return listAgents(s).print(s.Stdout, output) },
	}
	outputFlag(c, &output, listFormats...)
	return c
}

type agentRow struct {
	Name       string `json:"name"`
	Doc        string `json:"doc"`
	KnowsTruth bool   `json:"knows_truth"`
	NeedsModel bool   `json:"needs_model"`
}

func listAgents(s *State) list[agentRow] {
	l := list[agentRow]{
		header: "NAME\tNEEDS A MODEL\tKNOWS THE ANSWER\tWHAT IT DOES",
		name:   func(r agentRow) string { return r.Name },
		line: func(r agentRow) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s", r.Name, yesNo[r.NeedsModel], yesNo[r.KnowsTruth], r.Doc)
		},
	}
	for _, e := range s.Parts.AllAgents(s.Stderr) {
		l.rows = append(l.rows, agentRow{e.Name, e.Doc, e.KnowsTruth, e.NeedsModel})
	}
	l.rows = append(l.rows, agentRow{Name: replayPrefix + "FILE", Doc: "gives the responses of a record again"},
		agentRow{Name: external.Prefix + "COMMAND", Doc: "your own program, in any language"})
	return l
}
