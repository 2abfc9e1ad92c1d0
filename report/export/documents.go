package export

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/aiopslab/aiopslab/session"
)

// Document is a format with a document of JSON for each run.
type Document func(r *Run) (any, error)

// ATIF is a [Trajectory].
func ATIF(r *Run) (any, error) { return r.Trajectory(), nil }

// Session is AIOpsLab's session file.
func Session(r *Run) (any, error) { return session.FileOf(r.Record) }

// Stream is a Writer of documents, one after the other.
func Stream(w io.Writer, d Document) Writer { return &stream{w, d} }

type stream struct {
	w io.Writer
	d Document
}

func (s *stream) Write(_ context.Context, r *Run) error {
	b, err := encode(s.d, r)
	if err == nil {
		_, err = s.w.Write(b)
	}
	return err
}

func (s *stream) Close() error { return nil }

// Folder is a Writer of documents into files of a directory, RUN.json. It makes the directory.
func Folder(dir string, d Document) (Writer, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return &folder{dir, d}, nil
}

type folder struct {
	dir string
	d   Document
}

func (f *folder) Write(_ context.Context, r *Run) error {
	name := r.Record.ID + ".json"
	if !filepath.IsLocal(name) || filepath.Base(name) != name {
		return fmt.Errorf("%s: the run's id %q is no name for a file", r.File, r.Record.ID)
	}
	b, err := encode(f.d, r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(f.dir, name), b, 0o644)
}

func (f *folder) Close() error { return nil }

func encode(d Document, r *Run) ([]byte, error) {
	v, err := d(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.File, err)
	}
	b, err := json.MarshalIndent(v, "", "    ")
	return append(b, '\n'), err
}
