package oci

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The annotations by which containerd, and the specification of the layout, know an image's name.
const (
	containerdName = "io.containerd.image.name"
	layoutName     = "org.opencontainers.image.ref.name"
)

// writeLayout writes images for several architectures, which the older format cannot have, as an OCI image layout.
func (a *archive) writeLayout(s *Set) error {
	top := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, part := range s.parts {
		for _, i := range part.images {
			if err := a.addBlobs(i.Image); err != nil {
				return fmt.Errorf("%s: %w", i.ref, err)
			}
		}
	}
	for _, i := range s.images {
		raw, err := i.index.RawManifest()
		if err != nil {
			return err
		}
		digest, err := i.index.Digest()
		if err != nil {
			return err
		}
		if err := a.blob(digest, int64(len(raw)), bytes.NewReader(raw)); err != nil {
			return err
		}
		top.Manifests = append(top.Manifests, v1.Descriptor{
			MediaType: types.OCIImageIndex, Size: int64(len(raw)), Digest: digest,
			Annotations: map[string]string{containerdName: i.ref, layoutName: i.ref},
		})
	}
	index, err := json.Marshal(top)
	if err != nil {
		return err
	}
	if err := a.write("index.json", int64(len(index)), bytes.NewReader(index)); err != nil {
		return err
	}
	const layout = `{"imageLayoutVersion":"1.0.0"}`
	return a.write("oci-layout", int64(len(layout)), bytes.NewReader([]byte(layout)))
}

// addBlobs writes what an image consists of, as far as it is not there yet.
func (a *archive) addBlobs(i v1.Image) error {
	for _, part := range []struct {
		digest func() (v1.Hash, error)
		raw    func() ([]byte, error)
	}{{i.Digest, i.RawManifest}, {i.ConfigName, i.RawConfigFile}} {
		digest, err := part.digest()
		if err != nil {
			return err
		}
		raw, err := part.raw()
		if err != nil {
			return err
		}
		if err := a.blob(digest, int64(len(raw)), bytes.NewReader(raw)); err != nil {
			return err
		}
	}
	layers, err := i.Layers()
	if err != nil {
		return err
	}
	for _, l := range layers {
		if err := a.layerBlob(l); err != nil {
			return err
		}
	}
	return nil
}

func (a *archive) layerBlob(l v1.Layer) error {
	digest, err := l.Digest()
	if err != nil {
		return err
	}
	size, err := l.Size()
	if err != nil {
		return err
	}
	data, err := l.Compressed()
	if err != nil {
		return err
	}
	defer data.Close()
	return a.blob(digest, size, data)
}

func (a *archive) blob(digest v1.Hash, size int64, content io.Reader) error {
	return a.write("blobs/"+digest.Algorithm+"/"+digest.Hex, size, content)
}
