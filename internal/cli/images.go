package cli

import (
	"cmp"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newImages(s *State) *cobra.Command {
	return &cobra.Command{
		Use:   "images",
		Short: "List the container images that an environment can run",
		Long: `List the container images that an environment can run. A pod with any other image
gets ErrImagePull, as one would without a network. docs/images.md tells how to
add one.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			w := tabwriter.NewWriter(s.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "IMAGE\tTAGS")
			for _, i := range builtinImages().Images() {
				tags := cmp.Or(i.Tags, "any")
				for _, name := range i.Names {
					fmt.Fprintf(w, "%s\t%s\n", name, tags)
				}
			}
			return w.Flush()
		},
	}
}
