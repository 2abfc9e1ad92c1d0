package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/world/decoy"
)

// decoyFlag is --decoy.
type decoyFlag struct{ kinds decoy.Set }

func (d *decoyFlag) add(c *cobra.Command) {
	c.Flags().Var(d, "decoy", "what is put in to be taken for the fault, or to mislead: `kinds` of "+
		strings.Join(decoy.Kinds(), ", ")+", with commas between them; none by default")
	completeFlag(c, "decoy", decoy.Kinds)
}

func (d *decoyFlag) String() string { return d.kinds.String() }
func (d *decoyFlag) Type() string   { return "decoy" }

func (d *decoyFlag) Set(text string) (err error) {
	d.kinds, err = decoy.Parse(text)
	return err
}
