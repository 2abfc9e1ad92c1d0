package cli

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan is the command that writes the manual pages, for packages of the program.
func newMan(s *State) *cobra.Command {
	return &cobra.Command{
		Use: "man DIRECTORY", Short: "Write the manual pages into a directory", Hidden: true,
		Args: oneArg("a directory"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := c.Root()
			root.InitDefaultCompletionCmd()
			root.DisableAutoGenTag = true // It has the date of today.
			built := builtAt()
			err := doc.GenManTree(root, &doc.GenManHeader{
				Section: "1", Date: &built, Source: "aiopslab " + ownVersion(), Manual: "AIOpsLab",
			}, args[0])
			if err != nil {
				return err
			}
			pages, err := os.ReadDir(args[0])
			fmt.Fprintf(s.Stdout, "%d pages are in %s.\n", len(pages), args[0])
			return err
		},
	}
}

// builtAt is the time of the commit that the program is built from, so that the same program gives the same pages.
func builtAt() time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if at, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
				return at
			}
		}
	}
	return time.Unix(0, 0).UTC()
}
