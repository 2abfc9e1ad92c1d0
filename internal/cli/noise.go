package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/world/noise"
)

// noiseVariable stands for --noise.
const noiseVariable = "AIOPSLAB_NOISE"

// noiseFlag is --noise.
type noiseFlag struct{ level noise.Level }

func (n *noiseFlag) add(c *cobra.Command) {
	c.Flags().Var(n, "noise", "how much else changes in the application and does no harm, around a fault and "+
		"without one: `level` "+strings.Join(noise.Levels(), ", ")+"; by default $"+noiseVariable+", or calm")
	completeFlag(c, "noise", noise.Levels)
}

func (n *noiseFlag) String() string { return string(n.level) }
func (n *noiseFlag) Type() string   { return "noise" }

func (n *noiseFlag) Set(text string) (err error) {
	n.level, err = noise.Parse(text)
	return err
}

// of is the level that the flag names, or else the environment.
func (n *noiseFlag) of(s *State) (noise.Level, error) { return noiseLevel(s, string(n.level)) }

// noiseLevel reads a level of noise. If there is none, it is that of the environment.
func noiseLevel(s *State, text string) (noise.Level, error) {
	l, err := noise.Parse(cmp.Or(text, s.Env(noiseVariable)))
	if err != nil && text == "" {
		return l, fail(ExitUsage, fmt.Errorf("%s: %w", noiseVariable, err), "")
	}
	return l, err
}
