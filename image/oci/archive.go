package oci

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// WriteArchive writes the images as one archive that docker load, ctr images import and kind load image-archive read.
// Those for several architectures are an OCI image layout, which old versions of Docker do not know.
func (s *Set) WriteArchive(w io.Writer) error {
	// The writer of package tarball goes through a map, so each of its archives is different.
	a := archive{tar: tar.NewWriter(w), written: map[string]bool{}}
	if s.parts != nil {
		return errors.Join(a.writeLayout(s), a.tar.Close())
	}
	var manifest tarball.Manifest
	at := map[string]int{} // of an image in the manifest, by the name of its configuration
	for _, i := range s.images {
		d, err := a.add(i)
		if err != nil {
			return fmt.Errorf("%s: %w", i.ref, err)
		}
		n, ok := at[d.Config]
		if !ok {
			n = len(manifest)
			at[d.Config], manifest = n, append(manifest, *d)
		}
		manifest[n].RepoTags = append(manifest[n].RepoTags, i.ref)
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	if err := a.write("manifest.json", int64(len(data)), bytes.NewReader(data)); err != nil {
		return err
	}
	return a.tar.Close()
}

// archive is an archive that is being written.
type archive struct {
	tar     *tar.Writer
	written map[string]bool
}

// add writes what an image consists of, as far as it is not there yet.
func (a *archive) add(i v1.Image) (*tarball.Descriptor, error) {
	name, err := i.ConfigName()
	if err != nil {
		return nil, err
	}
	config, err := i.RawConfigFile()
	if err != nil {
		return nil, err
	}
	d := &tarball.Descriptor{Config: name.Hex + ".json"}
	if err := a.write(d.Config, int64(len(config)), bytes.NewReader(config)); err != nil {
		return nil, err
	}
	layers, err := i.Layers()
	if err != nil {
		return nil, err
	}
	for _, l := range layers {
		file, err := a.layer(l)
		if err != nil {
			return nil, err
		}
		d.Layers = append(d.Layers, file)
	}
	return d, nil
}

func (a *archive) layer(l v1.Layer) (file string, err error) {
	digest, err := l.Digest()
	if err != nil {
		return "", err
	}
	size, err := l.Size()
	if err != nil {
		return "", err
	}
	data, err := l.Compressed()
	if err != nil {
		return "", err
	}
	defer data.Close()
	file = digest.Hex + ".tar.gz"
	return file, a.write(file, size, data)
}

func (a *archive) write(name string, size int64, content io.Reader) error {
	if a.written[name] {
		return nil
	}
	a.written[name] = true
	header := tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: made, Format: tar.FormatPAX,
	}
	if err := a.tar.WriteHeader(&header); err != nil {
		return err
	}
	_, err := io.Copy(a.tar, content)
	return err
}
