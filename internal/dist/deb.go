package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// control says what the package is: see deb-control(5).
const control = `Package: aiopslab
Version: %s
Architecture: %s
Maintainer: The AIOpsLab authors <noreply@aiopslab.invalid>
Installed-Size: %d
Section: devel
Priority: optional
Homepage: https://github.com/aiopslab/aiopslab
Description: lab in which AI agents learn to run clouds
 AIOpsLab takes AI agents through incidents in a live cloud and grades what
 they found and fixed. The cloud is a Kubernetes cluster in one unprivileged
 process, or a cluster that you have.
`

// writePackage writes a Debian package: see deb(5).
func writePackage(w io.Writer, r *release, f files, arch string) error {
	list, err := f.installed(arch)
	if err != nil {
		return err
	}
	about, err := controlFiles(list, r.debian(), arch)
	if err != nil {
		return err
	}
	var head bytes.Buffer
	if err := writeTar(&head, about, "./", r.at); err != nil {
		return err
	}
	// Its size comes before it.
	data, err := os.CreateTemp("", "dist-*.tar.gz")
	if err != nil {
		return err
	}
	defer os.Remove(data.Name())
	defer data.Close()
	if err := writeTar(data, list, "./", r.at); err != nil {
		return err
	}
	size, err := data.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := data.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "!<arch>\n"); err != nil {
		return err
	}
	for _, part := range []struct {
		name    string
		size    int64
		content io.Reader
	}{
		{"debian-binary", 4, strings.NewReader("2.0\n")},
		{"control.tar.gz", int64(head.Len()), &head},
		{"data.tar.gz", size, data},
	} {
		if err := writeMember(w, part.name, part.size, r.at, part.content); err != nil {
			return err
		}
	}
	return nil
}

// writeMember writes a member of an ar archive: a header of one line, and the content up to an even number of bytes.
func writeMember(w io.Writer, name string, size int64, at time.Time, content io.Reader) error {
	if _, err := fmt.Fprintf(w, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", name, at.Unix(), 0, 0, 0o100644, size); err != nil {
		return err
	}
	if _, err := io.CopyN(w, content, size); err != nil {
		return err
	}
	if size%2 == 0 {
		return nil
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// controlFiles are what dpkg reads: what the package is, and the sums of its files.
func controlFiles(list []entry, version, arch string) ([]entry, error) {
	var sums strings.Builder
	var size int64
	byName := func(a, b entry) int { return strings.Compare(a.name, b.name) }
	for _, e := range slices.SortedFunc(slices.Values(list), byName) {
		content, n, err := e.open()
		if err != nil {
			return nil, err
		}
		sum := md5.New()
		_, err = io.Copy(sum, content)
		if closing := content.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return nil, err
		}
		size += n
		fmt.Fprintf(&sums, "%x  %s\n", sum.Sum(nil), e.name)
	}
	return []entry{
		{name: "control", mode: 0o644, data: fmt.Appendf(nil, control, version, arch, (size+1023)/1024)},
		{name: "md5sums", mode: 0o644, data: []byte(sums.String())},
	}, nil
}
