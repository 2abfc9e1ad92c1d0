package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// writeTar writes entries and the directories that they are in, compressed, by name. All belong to root and are of one
// time. The prefix is before each name: "./" in a Debian package, which has an entry of that name as well.
func writeTar(w io.Writer, list []entry, prefix string, at time.Time) error {
	compressed := gzip.NewWriter(w)
	out := tar.NewWriter(compressed)
	header := func(name string, kind byte, mode, size int64) error {
		return out.WriteHeader(&tar.Header{
			Typeflag: kind, Name: name, Mode: mode, Size: size, ModTime: at, Uname: "root", Gname: "root",
			Format: tar.FormatUSTAR, // dpkg reads no newer one
		})
	}
	if prefix != "" {
		if err := header(prefix, tar.TypeDir, 0o755, 0); err != nil {
			return err
		}
	}
	all := map[string]entry{}
	for _, e := range list {
		all[e.name] = e
		for dir := path.Dir(e.name); dir != "."; dir = path.Dir(dir) {
			all[dir+"/"] = entry{name: dir + "/"}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.HasSuffix(name, "/") {
			if err := header(prefix+name, tar.TypeDir, 0o755, 0); err != nil {
				return err
			}
			continue
		}
		content, size, err := all[name].open()
		if err != nil {
			return err
		}
		if err = header(prefix+name, tar.TypeReg, all[name].mode, size); err == nil {
			_, err = io.Copy(out, content)
		}
		if err := errors.Join(err, content.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return errors.Join(out.Close(), compressed.Close())
}
