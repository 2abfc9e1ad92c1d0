package oci

import (
	"github.com/aiopslab/aiopslab/kit"
)

// ProgramName is the reference of the image that [Program] makes.
const ProgramName = "aiopslab/aiopslab:latest"

// Program makes the image of a binary itself, by the name aiopslab, for pods that run it as anybody does.
// It runs as no user in particular, and writes to nothing but /tmp.
func Program(binary string) (*Set, error) {
	architecture, err := platform(binary)
	if err != nil {
		return nil, err
	}
	shared, err := binaryLayer(binary)
	if err != nil {
		return nil, err
	}
	i := &kit.Image{
		Names: []string{"aiopslab/aiopslab"}, Entrypoint: []string{"/usr/bin/aiopslab"}, User: "65532:65532",
		WorkDir: "/tmp", Vars: map[string]string{"HOME": "/tmp"},
		Programs: map[string]kit.Program{"/usr/bin/aiopslab": nil},
	}
	t, err := files(i) // without the file that would have it be a program of an image
	if err != nil {
		return nil, err
	}
	own, err := newLayer(t.write)
	if err != nil {
		return nil, err
	}
	whole, err := compose(i, architecture, shared, own)
	if err != nil {
		return nil, err
	}
	full, err := kit.FullName(ProgramName)
	if err != nil {
		return nil, err
	}
	return &Set{architectures: []string{architecture}, images: []image{{ref: full, Image: whole}}}, nil
}
