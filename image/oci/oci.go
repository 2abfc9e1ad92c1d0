// Package oci makes real container images of the lab's own images, so that a cluster without a registry runs them.
//
// An image of the lab is a set of Go functions under the names of programs ([kit.Image]). All of them are linked into
// one static binary. A real image is two layers: the binary, which all images share, and what makes the one image
// different: a link to the binary for each program, its files, and a file that says which image it is. Started by
// the name of a program, the binary reads that file and runs the function: see package inside.
//
//	set, err := oci.Build("bin/aiopslab", registry, []string{"mongo:4.4.6", "redis:6.2.4"})
//	err = set.WriteArchive(file)
//
// [Join] makes one set of sets for several architectures.
//
// The same binary and the same images give the same bytes.
package oci

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/aiopslab/aiopslab/kit"
)

// made is the date of every file and image: nothing may depend on when they were built.
var made = time.Date(2025, time.January, 6, 9, 0, 0, 0, time.UTC)

// Set is a number of images that share the layer with the binary.
type Set struct {
	architectures []string // as images name them: "amd64"
	images        []image  // by reference
	parts         []*Set   // one for each architecture, if there are several
}

// image is an image for one architecture, or an index of those for several.
type image struct {
	ref string // in full: "docker.io/library/mongo:4.4.6"
	v1.Image
	index v1.ImageIndex
}

// digest is that of the manifest by which the image is known.
func (i image) digest() (v1.Hash, error) {
	if i.index != nil {
		return i.index.Digest()
	}
	return i.Digest()
}

// Info describes an image of a set.
type Info struct {
	Ref    string // in full: "docker.io/library/mongo:4.4.6"
	Digest string // of its manifest: "sha256:..."
}

// Build makes the images of a registry that have the given references, of a static Linux binary which calls lab.Main.
func Build(binary string, registry *kit.Registry, refs []string) (*Set, error) {
	architecture, err := platform(binary)
	if err != nil {
		return nil, err
	}
	found, err := resolve(registry, refs)
	if err != nil {
		return nil, err
	}
	shared, err := binaryLayer(binary)
	if err != nil {
		return nil, err
	}
	s := &Set{architectures: []string{architecture}}
	built := map[*kit.Image]v1.Image{}
	for _, ref := range slices.Sorted(maps.Keys(found)) {
		i := found[ref]
		if built[i] == nil {
			if built[i], err = assemble(i, architecture, shared); err != nil {
				return nil, fmt.Errorf("image %s: %w", i.ID(), err)
			}
		}
		s.images = append(s.images, image{ref: ref, Image: built[i]})
	}
	return s, nil
}

// resolve finds the images by their full references.
func resolve(registry *kit.Registry, refs []string) (map[string]*kit.Image, error) {
	if len(refs) == 0 {
		return nil, errors.New("no image is named")
	}
	found := map[string]*kit.Image{}
	var errs []error
	for _, ref := range refs {
		full, i, err := registry.Resolve(ref)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if strings.Contains(full, "@") {
			errs = append(errs, fmt.Errorf("%s: an image is made by its tag; its digest is what comes of it", ref))
			continue
		}
		found[full] = i
	}
	return found, errors.Join(errs...)
}

// platform is the architecture of a static binary, as images name it.
func platform(binary string) (string, error) {
	f, err := elf.Open(binary)
	if _, file := errors.AsType[*fs.PathError](err); err != nil && !file {
		return "", fmt.Errorf("%s is no program for Linux; build one with GOOS=linux CGO_ENABLED=0", binary)
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	if slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return "", fmt.Errorf("%s needs the libraries of its machine, which no image has; build it with CGO_ENABLED=0",
			binary)
	}
	switch f.Machine {
	case elf.EM_X86_64:
		return "amd64", nil
	case elf.EM_AARCH64:
		return "arm64", nil
	}
	return "", fmt.Errorf("%s is for %s; images are made for amd64 and arm64", binary, f.Machine)
}

// assemble makes an image of its layers and what runs in it.
func assemble(i *kit.Image, architecture string, shared v1.Layer) (v1.Image, error) {
	own, err := ownLayer(i)
	if err != nil {
		return nil, err
	}
	return compose(i, architecture, shared, own)
}

func compose(i *kit.Image, architecture string, shared, own v1.Layer) (v1.Image, error) {
	vars := map[string]string{"PATH": kit.DefaultPath}
	maps.Copy(vars, i.Vars)
	bare := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err := mutate.ConfigFile(bare, &v1.ConfigFile{
		Architecture: architecture, OS: "linux", Created: v1.Time{Time: made},
		RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{}},
		Config: v1.Config{
			Entrypoint: i.Entrypoint, Cmd: i.Cmd, Env: (&kit.Env{Vars: vars}).Environ(), User: i.User,
			WorkingDir: cmp.Or(i.WorkDir, "/"),
		},
	})
	if err != nil {
		return nil, err
	}
	history := func(what string) v1.History { return v1.History{Created: v1.Time{Time: made}, CreatedBy: what} }
	return mutate.Append(base,
		mutate.Addendum{Layer: shared, History: history("the program")},
		mutate.Addendum{Layer: own, History: history("links and files")})
}

// Images lists the images by reference.
func (s *Set) Images() ([]Info, error) {
	list := make([]Info, 0, len(s.images))
	for _, i := range s.images {
		digest, err := i.digest()
		if err != nil {
			return nil, err
		}
		list = append(list, Info{i.ref, digest.String()})
	}
	return list, nil
}
