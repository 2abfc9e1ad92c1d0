package oci

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/aiopslab/aiopslab/kit"
)

// Push writes the images to a prefix of a registry, under the references that [kit.Under] gives, and tells of each that
// is there. Who may write is what docker login has kept. PlainHTTP speaks HTTP to a registry that is not on this
// machine, too.
func (s *Set) Push(ctx context.Context, prefix string, plainHTTP bool, pushed func(ref string)) error {
	images, err := s.targets(prefix, plainHTTP)
	if err != nil {
		return err
	}
	pusher, err := remote.NewPusher(remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return err
	}
	for _, i := range images {
		if err := pusher.Push(ctx, i.tag, i.image); err != nil {
			return fmt.Errorf("push %s: %w", i.tag, err)
		}
		pushed(i.tag.String())
	}
	return nil
}

type target struct {
	tag   name.Tag
	image remote.Taggable
}

// targets are where the images go.
func (s *Set) targets(prefix string, plainHTTP bool) ([]target, error) {
	var options []name.Option
	if plainHTTP {
		options = append(options, name.Insecure)
	}
	var list []target
	from := map[string]string{}
	for _, i := range s.images {
		ref, err := kit.Under(prefix, i.ref)
		if err != nil {
			return nil, err
		}
		if from[ref] != "" {
			return nil, fmt.Errorf("%s and %s would both become %s; build them in two steps", from[ref], i.ref, ref)
		}
		from[ref] = i.ref
		tag, err := name.NewTag(ref, options...)
		if err != nil {
			return nil, fmt.Errorf("%q is no place in a registry: %w", prefix, err)
		}
		var content remote.Taggable = i.Image
		if i.index != nil {
			content = i.index
		}
		list = append(list, target{tag, content})
	}
	return list, nil
}
