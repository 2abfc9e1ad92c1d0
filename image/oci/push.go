package oci

import (
	"context"
	"fmt"
	"strings"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/aiopslab/aiopslab/kit"
)

// In is the reference under which a registry has an image that was pushed to a prefix of it: mongo:4.4.6 at
// registry.example/lab is registry.example/lab/library/mongo:4.4.6. The path is the one that a mirror is asked for.
func In(prefix, ref string) (string, error) {
	full, err := kit.FullName(ref)
	if err != nil {
		return "", fmt.Errorf("%s: %w", ref, err)
	}
	named, err := reference.ParseNormalizedNamed(full)
	if err != nil {
		return "", fmt.Errorf("%s: %w", ref, err)
	}
	return strings.TrimSuffix(prefix, "/") + full[len(reference.Domain(named)):], nil
}

// Push writes the images to a prefix of a registry, under the references that [In] gives, and tells of each that is
// there. Who may write is what docker login has kept. PlainHTTP speaks HTTP to a registry that is not on this machine,
// too.
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
	image v1.Image
}

// targets are where the images go.
func (s *Set) targets(prefix string, plainHTTP bool) ([]target, error) {
	var options []name.Option
	if plainHTTP {
		options = append(options, name.Insecure)
	}
	if registry, _, _ := strings.Cut(prefix, "/"); !strings.ContainsAny(registry, ".:") && registry != "localhost" {
		return nil, fmt.Errorf("%q names no registry; write it with its host, as registry.example/lab or "+
			"localhost:5000", prefix)
	}
	var list []target
	from := map[string]string{}
	for _, i := range s.images {
		ref, err := In(prefix, i.ref)
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
		list = append(list, target{tag, i.Image})
	}
	return list, nil
}
