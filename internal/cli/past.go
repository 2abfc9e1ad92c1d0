package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/session"
)

// maxLived is as long as anybody waits for a past.
const maxLived = 24 * time.Hour

// pastFlag is for how long an application is used before a run, on a cluster that is there.
type pastFlag struct {
	lived time.Duration
	given bool
}

// addPast adds the flag of runs on a cluster that is there.
func (f *cloudFlags) addPast(c *cobra.Command) {
	f.past.lived = session.DefaultLived
	c.Flags().Var(&f.past, "past",
		"how `long` users have the application before anything goes wrong, on a cluster that you have: nothing can be "+
			"back-dated there; 0s for not at all")
}

func (p *pastFlag) String() string { return p.lived.String() }
func (p *pastFlag) Type() string   { return "past" }

func (p *pastFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err == nil && (d < 0 || d > maxLived) {
		err = errors.New("out of range")
	}
	if err != nil {
		return err
	}
	p.lived, p.given = d, true
	return nil
}
