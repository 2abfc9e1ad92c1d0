package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/kit"
)

func newImages(s *State) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "images [IMAGE...]",
		Short: "List the container images that an environment can run",
		Long: `List the container images that an environment can run. With arguments, tell
whether it can run those: a pod with any other gets ErrImagePull, as it does
from a registry that has no such image. docs/images.md tells how to add one.`,
		Example: `  aiopslab images
  aiopslab images nginx:1.27 busybox`,
		RunE: func(_ *cobra.Command, args []string) error {
			images := s.Parts.AllImages()
			if len(args) == 0 {
				return listImages(images).print(s.Stdout, output)
			}
			var errs []error
			for _, ref := range args {
				full, _, err := images.Resolve(ref)
				if err != nil {
					errs = append(errs, explainImage(ref, images.Tags(ref), err))
					continue
				}
				fmt.Fprintf(s.Stdout, "%s is %s\n", ref, full)
			}
			return fail(ExitError, errors.Join(errs...), "Run 'aiopslab images' to see all there are.")
		},
	}
	outputFlag(c, &output, listFormats...)
	c.AddCommand(newImagesBuild(s))
	return c
}

type imageRow struct {
	Image string   `json:"image"`
	Also  []string `json:"also,omitempty"` // its other names
}

func listImages(images *kit.Registry) list[imageRow] {
	l := list[imageRow]{
		header: "IMAGE\tALSO AS", name: func(r imageRow) string { return r.Image },
		line: func(r imageRow) string { return r.Image + "\t" + strings.Join(r.Also, ", ") },
	}
	for _, i := range images.Images() {
		l.rows = append(l.rows, imageRow{i.ID(), i.Names[1:]})
	}
	return l
}

// explainImage says why an image cannot be had.
func explainImage(ref, tags string, err error) error {
	switch {
	case errors.Is(err, kit.ErrNoSuchVersion):
		return fmt.Errorf("%s: there is no such tag; those that exist match %s", ref, tags)
	case errors.Is(err, kit.ErrNoSuchImage):
		return fmt.Errorf("%s: there is no such image", ref)
	}
	return fmt.Errorf("%s: %w", ref, err)
}
