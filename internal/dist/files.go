package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// files are where the parts of a release are.
type files struct {
	root     string // of the repository
	programs string // by architecture
	docs     string // completions, and man/ with the manual pages
}

// entry is a file of a package.
type entry struct {
	name string // "usr/bin/aiopslab"
	mode int64
	from string // the file that has its content, or
	data []byte // the content itself
}

// open returns the content and its size.
func (e entry) open() (io.ReadCloser, int64, error) {
	if e.from == "" {
		return io.NopCloser(bytes.NewReader(e.data)), int64(len(e.data)), nil
	}
	f, err := os.Open(e.from)
	if err != nil {
		return nil, 0, err
	}
	fi, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, fi.Size(), nil
}

// pages are the manual pages.
func (f files) pages() ([]string, error) {
	pages, err := filepath.Glob(filepath.Join(f.docs, "man", "*.1"))
	if err == nil && len(pages) == 0 {
		err = errors.New("there are no manual pages")
	}
	return pages, err
}

// unpacked is what an archive has, for people who unpack it anywhere.
func (f files) unpacked(arch string) ([]entry, error) {
	list := []entry{
		{name: product, mode: 0o755, from: filepath.Join(f.programs, arch, product)},
		{name: container, mode: 0o755, from: filepath.Join(f.programs, arch, container)},
		{name: "LICENSE", mode: 0o644, from: filepath.Join(f.root, "LICENSE")},
		{name: "README.md", mode: 0o644, from: filepath.Join(f.root, "README.md")},
	}
	for _, s := range shells {
		list = append(list, entry{name: "completions/" + s.file, mode: 0o644, from: filepath.Join(f.docs, s.file)})
	}
	pages, err := f.pages()
	for _, page := range pages {
		list = append(list, entry{name: "man/man1/" + filepath.Base(page), mode: 0o644, from: page})
	}
	return list, err
}

// installed is what a Debian package has, where Debian has such files.
func (f files) installed(arch string) ([]entry, error) {
	const docs = "usr/share/doc/" + product + "/"
	list := []entry{
		{name: "usr/bin/" + product, mode: 0o755, from: filepath.Join(f.programs, arch, product)},
		{name: "usr/bin/" + container, mode: 0o755, from: filepath.Join(f.programs, arch, container)},
		{name: docs + "copyright", mode: 0o644, from: filepath.Join(f.root, "LICENSE")},
		{name: docs + "README.md", mode: 0o644, from: filepath.Join(f.root, "README.md")},
	}
	for _, s := range shells {
		list = append(list, entry{name: s.installed, mode: 0o644, from: filepath.Join(f.docs, s.file)})
	}
	pages, err := f.pages()
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(text); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		name := "usr/share/man/man1/" + filepath.Base(page) + ".gz"
		list = append(list, entry{name: name, mode: 0o644, data: packed.Bytes()})
	}
	return list, nil
}

// write makes the archives, the packages and the lists of modules, and returns their names.
func write(r *release, f files, out string) (names []string, err error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	for _, arch := range r.architectures() {
		name := fmt.Sprintf("%s_%s_linux_%s", product, r.number(), arch)
		parts := []struct {
			name  string
			write func(io.Writer) error
		}{
			{name + ".tar.gz", func(w io.Writer) error { return writeArchive(w, r, f, arch, name) }},
			{
				fmt.Sprintf("%s_%s_%s.deb", product, r.debian(), arch),
				func(w io.Writer) error { return writePackage(w, r, f, arch) },
			},
			{name + ".cdx.json", func(w io.Writer) error { return writeModules(w, r, arch) }},
		}
		for _, p := range parts {
			if err := create(filepath.Join(out, p.name), p.write); err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			names = append(names, p.name)
		}
	}
	return names, nil
}

func create(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// writeArchive writes what people unpack, all in one directory.
func writeArchive(w io.Writer, r *release, f files, arch, dir string) error {
	list, err := f.unpacked(arch)
	if err != nil {
		return err
	}
	for i := range list {
		list[i].name = path.Join(dir, list[i].name)
	}
	return writeTar(w, list, "", r.at)
}

// sumsFile has the checksums of all other files, for sha256sum -c.
const sumsFile = "SHA256SUMS"

func writeSums(dir string, names []string) error {
	var text strings.Builder
	for _, name := range slices.Sorted(slices.Values(names)) {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sum.Sum(nil), name)
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), []byte(text.String()), 0o644)
}
