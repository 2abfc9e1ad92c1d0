package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/aiopslab/aiopslab/image/inside"
	"github.com/aiopslab/aiopslab/kit"
)

// layer is a layer that is in memory.
type layer struct {
	digest, diffID v1.Hash
	data           []byte // compressed
}

func (l *layer) Digest() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)            { return l.diffID, nil }
func (l *layer) Size() (int64, error)                { return int64(len(l.data)), nil }
func (l *layer) MediaType() (types.MediaType, error) { return types.OCILayer, nil }
func (l *layer) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(l.data)), nil
}

func (l *layer) Uncompressed() (io.ReadCloser, error) { return gzip.NewReader(bytes.NewReader(l.data)) }

// newLayer makes a layer of what write puts into a tar.
func newLayer(write func(*tar.Writer) error) (v1.Layer, error) {
	var data bytes.Buffer
	// Nothing is read more often than it is written, and most of it is one large binary: speed is worth more than size.
	compressed, err := gzip.NewWriterLevel(&data, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	plain := sha256.New()
	w := tar.NewWriter(io.MultiWriter(plain, compressed))
	if err := errors.Join(write(w), w.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	l := &layer{data: data.Bytes(), diffID: v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%x", plain.Sum(nil))}}
	l.digest = v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%x", sha256.Sum256(l.data))}
	return l, nil
}

// binaryLayer has the binary alone.
func binaryLayer(file string) (v1.Layer, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return newLayer(func(w *tar.Writer) error {
		t := tree{}
		for dir := path.Dir(inside.Program); dir != "/"; dir = path.Dir(dir) {
			t[dir] = entry{mode: 0o755, kind: tar.TypeDir}
		}
		if err := t.write(w); err != nil {
			return err
		}
		header := tar.Header{
			Typeflag: tar.TypeReg, Name: inside.Program[1:], Size: fi.Size(), Mode: 0o755,
			ModTime: made, Format: tar.FormatPAX,
		}
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		// A file that becomes longer or shorter meanwhile is an error, here or at the end.
		_, err := io.Copy(w, f)
		return err
	})
}

// entry is a file, a directory or a link.
type entry struct {
	kind    byte // of a tar header
	mode    int64
	content string // or the target of a link
}

// tree is what a layer has, by absolute path.
type tree map[string]entry

// ownLayer has what is in one image only.
func ownLayer(i *kit.Image) (v1.Layer, error) {
	t, err := files(i)
	if err != nil {
		return nil, err
	}
	t[inside.Marker] = entry{kind: tar.TypeReg, mode: 0o644, content: i.ID() + "\n"}
	return newLayer(t.write)
}

// files are the files of an image. They are those of the embedded cloud, where package cri makes them.
func files(i *kit.Image) (tree, error) {
	t := tree{}
	for _, dir := range []string{
		"/bin", "/dev", "/etc", "/home", "/proc", "/root", "/run", "/sys", "/usr", "/usr/bin", "/var", "/var/run",
	} {
		t[dir] = entry{kind: tar.TypeDir, mode: 0o755}
	}
	t["/tmp"] = entry{kind: tar.TypeDir, mode: 0o1777}
	t["/etc/passwd"] = entry{kind: tar.TypeReg, mode: 0o644, content: "root:x:0:0:root:/root:/bin/sh\n" +
		"nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"}
	t["/etc/group"] = entry{kind: tar.TypeReg, mode: 0o644, content: "root:x:0:\nnogroup:x:65534:\n"}
	for _, name := range slices.Sorted(maps.Keys(i.Files)) {
		e := entry{kind: tar.TypeReg, mode: 0o644, content: i.Files[name]}
		if dir, ok := strings.CutSuffix(name, "/"); ok {
			// An image names the directories that its programs write to. They can do so as any user.
			name, e = dir, entry{kind: tar.TypeDir, mode: 0o1777}
		}
		if err := t.add(name, e); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.Programs)) {
		if e, taken := t[name]; taken {
			return nil, fmt.Errorf("%s is a program and a %s", name, e)
		}
		if err := t.add(name, entry{kind: tar.TypeSymlink, mode: 0o777, content: inside.Program}); err != nil {
			return nil, err
		}
	}
	t[inside.Home] = entry{kind: tar.TypeDir, mode: 0o755}
	return t, t.complete()
}

// String is what an entry is called in an error.
func (e entry) String() string {
	switch e.kind {
	case tar.TypeDir:
		return "directory"
	case tar.TypeSymlink:
		return "program"
	}
	return "file"
}

// add adds an entry, whose name must not lead out of the image or to what the lab adds to it.
func (t tree) add(name string, e entry) error {
	if name != path.Clean(name) || !path.IsAbs(name) || name == "/" || strings.ContainsRune(name, 0) {
		return fmt.Errorf("%q is no absolute path of a file", name)
	}
	if name == inside.Home || strings.HasPrefix(name, inside.Home+"/") {
		return fmt.Errorf("%s is where the lab's own files are; take another name", name)
	}
	if old, taken := t[name]; taken && (old.kind == tar.TypeDir) != (e.kind == tar.TypeDir) {
		return fmt.Errorf("%s is a %s and a %s", name, old, e)
	}
	t[name] = e
	return nil
}

// complete adds the directories that the entries are in.
func (t tree) complete() error {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			switch e, ok := t[dir]; {
			case !ok:
				t[dir] = entry{kind: tar.TypeDir, mode: 0o755}
			case e.kind != tar.TypeDir:
				return fmt.Errorf("%s cannot be in %s, which is a %s", name, dir, e)
			}
		}
	}
	return nil
}

// write writes the entries by name, a directory before what is in it. All belong to root.
func (t tree) write(w *tar.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		e := t[name]
		header := tar.Header{
			Typeflag: e.kind, Name: name[1:], Mode: e.mode, ModTime: made, Format: tar.FormatPAX,
		}
		switch e.kind {
		case tar.TypeDir:
			header.Name += "/"
		case tar.TypeSymlink:
			header.Linkname = e.content
		default:
			header.Size = int64(len(e.content))
		}
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		if e.kind == tar.TypeReg {
			if _, err := io.WriteString(w, e.content); err != nil {
				return err
			}
		}
	}
	return nil
}
