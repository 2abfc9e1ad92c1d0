package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aiopslab/aiopslab/kit"
)

// The values of --images: images come from where their names say, or from a registry that has the lab's own.
const (
	publicImages = "public"
	labImages    = "lab="
)

// imagesFlag is where images come from: the prefix of a registry, or none.
type imagesFlag struct{ prefix *string }

func (f *imagesFlag) String() string {
	if f.prefix == nil || *f.prefix == "" {
		return publicImages
	}
	return labImages + *f.prefix
}

func (f *imagesFlag) Type() string { return "source" }

func (f *imagesFlag) Set(word string) error {
	prefix, lab := strings.CutPrefix(word, labImages)
	switch {
	case word == publicImages:
		prefix = ""
	case !lab:
		return errors.New("want public, or lab=PREFIX with what 'aiopslab images build --push PREFIX' was given")
	default:
		if _, err := kit.Under(prefix, "busybox"); err != nil {
			return err
		}
	}
	*f.prefix = prefix
	return nil
}

// addImages adds the flag that says where a cluster that is there gets the images from.
func (f *cloudFlags) addImages(c *cobra.Command, s *State) {
	f.images = &s.registry
	c.Flags().Var(&imagesFlag{f.images}, "images",
		"`where` the cluster gets images from: public, where their names say; or lab=PREFIX of a registry, as "+
			"lab=registry.example/lab, that 'aiopslab images build' has pushed them to")
	completeFlag(c, "images", func() []string { return []string{publicImages, labImages} })
}

// registry is the prefix that images come from, if one was given.
func (f *cloudFlags) registry() string {
	if f.images == nil {
		return ""
	}
	return *f.images
}
