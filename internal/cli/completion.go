package cli

import (
	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/agent/external"
	"github.com/aiopslab/aiopslab/problem"
)

// What the shell completes: names that the program knows. Cobra filters them by what was typed.

// completeFlag completes the values of a flag.
func completeFlag(c *cobra.Command, flag string, names func() []string) {
	err := c.RegisterFlagCompletionFunc(flag,
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return names(), cobra.ShellCompDirectiveNoFileComp
		})
	if err != nil {
		panic(err) // The flag is not there, or is completed already.
	}
}

// completeArgs completes the arguments of a command, or only the first. With files, the names of
// files are completed as well.
func completeArgs(c *cobra.Command, names func() []string, only1, files bool) {
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if only1 && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if files {
			return names(), cobra.ShellCompDirectiveDefault
		}
		return names(), cobra.ShellCompDirectiveNoFileComp
	}
}

// problemIDs returns the ids of the library that the flags name, or nothing if it cannot be read.
func (s *State) problemIDs() (ids []string) {
	l, err := s.library()
	if err != nil {
		return nil
	}
	for _, p := range l.Problems {
		ids = append(ids, p.ID)
	}
	return ids
}

func taskNames() []string {
	var names []string
	for _, t := range problem.Tasks {
		names = append(names, string(t))
	}
	return names
}

func agentNames(s *State) []string {
	var names []string
	for _, a := range s.Parts.AllAgents(s.Stderr) {
		names = append(names, a.Name)
	}
	return append(names, external.Prefix, replayPrefix)
}

func (s *State) appNames() (names []string) {
	list, err := s.apps()
	if err != nil {
		return nil
	}
	for _, a := range list {
		names = append(names, a.Name)
	}
	return names
}

func (s *State) kindNames() (names []string) {
	l, err := s.base()
	if err != nil {
		return nil
	}
	for _, k := range l.Kinds {
		names = append(names, k.Name)
	}
	return names
}
