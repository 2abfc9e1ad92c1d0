package app

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/kit"
)

// From returns the application with images that come from a prefix of a registry, to which they were pushed.
func (a *App) From(prefix string) (*App, error) {
	objects, err := manifest.Read(a.Manifests)
	if err != nil {
		return nil, fmt.Errorf("the manifests of %s: %w", a.Name, err)
	}
	if err := manifest.Under(prefix, objects); err != nil {
		return nil, err
	}
	var files bytes.Buffer
	w := zip.NewWriter(&files)
	for i, u := range objects {
		f, err := w.Create(fmt.Sprintf("%04d.yaml", i)) // They are read in the order of their names.
		if err != nil {
			return nil, err
		}
		if err := json.NewEncoder(f).Encode(u.Object); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	from := *a
	from.Registry = prefix
	from.Manifests, err = zip.NewReader(bytes.NewReader(files.Bytes()), int64(files.Len()))
	return &from, err
}

// Image is where an image comes from that runs beside those of the application.
func (a *App) Image(ref string) string {
	if a.Registry == "" {
		return ref
	}
	if under, err := kit.Under(a.Registry, ref); err == nil {
		return under
	}
	return ref // It is no name of an image anywhere.
}
