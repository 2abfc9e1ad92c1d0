package oci

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Join makes one set of several that have the same images, each for another architecture. A node takes of an image
// what it can run.
func Join(sets ...*Set) (*Set, error) {
	if len(sets) == 0 {
		return nil, errors.New("there is no set of images to join")
	}
	if len(sets) == 1 {
		return sets[0], nil
	}
	joined := &Set{parts: sets}
	for _, s := range sets {
		if slices.Contains(joined.architectures, s.architectures[0]) {
			return nil, fmt.Errorf("two programs are for %s", s.architectures[0])
		}
		joined.architectures = append(joined.architectures, s.architectures[0])
		if len(s.images) != len(sets[0].images) {
			return nil, errors.New("the sets have different images")
		}
	}
	for n, first := range sets[0].images {
		index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
		for _, s := range sets {
			if s.images[n].ref != first.ref {
				return nil, fmt.Errorf("a set has %s, and another %s", first.ref, s.images[n].ref)
			}
			platform := &v1.Platform{OS: "linux", Architecture: s.architectures[0]}
			index = mutate.AppendManifests(index, mutate.IndexAddendum{
				Add: s.images[n].Image, Descriptor: v1.Descriptor{Platform: platform},
			})
		}
		joined.images = append(joined.images, image{ref: first.ref, index: index})
	}
	return joined, nil
}

// Platforms are what the images run on: "linux/amd64 and linux/arm64".
func (s *Set) Platforms() string { return "linux/" + strings.Join(s.architectures, " and linux/") }
