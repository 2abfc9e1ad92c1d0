package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"go.uber.org/goleak"

	"github.com/aiopslab/aiopslab/image/inside"
	"github.com/aiopslab/aiopslab/kit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeBinary is a file that starts as a program for a machine does.
func fakeBinary(t *testing.T, machine elf.Machine, headers ...elf.Prog64) string {
	t.Helper()
	var b bytes.Buffer
	header := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Phoff: 64,
		Ehsize: 64, Phentsize: 56, Phnum: uint16(len(headers)), Shentsize: 64,
	}
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS], header.Ident[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
	header.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	for _, part := range []any{header, headers, []byte(strings.Repeat("what it does\n", 1000))} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return writeFile(t, b.Bytes())
}

func writeFile(t *testing.T, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, content, 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func nothing(context.Context, *kit.Env) error { return nil }

func store() kit.Image {
	return kit.Image{
		Names: []string{"store"}, Tags: `1\.\d`, Entrypoint: []string{"entry.sh"}, Cmd: []string{"stored"},
		Vars: map[string]string{"STORE_VERSION": "1.2", "A": "b"}, WorkDir: "/data", User: "999:999",
		Programs: map[string]kit.Program{"/usr/local/bin/entry.sh": nothing, "/bin/stored": nothing, "/top": nothing},
		Files: map[string]string{
			"/data/": "", "/etc/store.conf": "port 1\n", "/etc/passwd": "store:x:999:999::/data:/bin/sh\n",
			"/a/deep/file": "x",
		},
	}
}

func images() *kit.Registry {
	return kit.NewRegistry(store(), kit.Image{Names: []string{"example/plain"}, Programs: map[string]kit.Program{"/p": nothing}})
}

func build(t *testing.T, binary string) *Set {
	t.Helper()
	s, err := Build(binary, images(), []string{"store:1.2", "example/plain:v1", "store:1.3", "docker.io/library/store:1.2"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func archiveOf(t *testing.T, s *Set) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.WriteArchive(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSameBytes builds twice, from two files of one content at two places.
func TestSameBytes(t *testing.T) {
	one := fakeBinary(t, elf.EM_X86_64)
	content, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	a, b := archiveOf(t, build(t, one)), archiveOf(t, build(t, writeFile(t, content)))
	if !bytes.Equal(a, b) {
		t.Error("two archives of one binary differ")
	}
	if other := archiveOf(t, build(t, fakeBinary(t, elf.EM_AARCH64))); bytes.Equal(a, other) {
		t.Error("archives of two binaries are the same")
	}
}

// TestArchive reads an archive with the library that others read it with.
func TestArchive(t *testing.T) {
	file := writeFile(t, archiveOf(t, build(t, fakeBinary(t, elf.EM_X86_64))))
	opener := func() (io.ReadCloser, error) { return os.Open(file) }
	manifest, err := tarball.LoadManifest(opener)
	if err != nil {
		t.Fatal(err)
	}
	var tags [][]string
	for _, d := range manifest {
		tags = append(tags, d.RepoTags)
	}
	want := [][]string{{"docker.io/example/plain:v1"}, {"docker.io/library/store:1.2", "docker.io/library/store:1.3"}}
	if diff := cmp.Diff(want, tags); diff != "" {
		t.Error(diff)
	}
	if manifest[0].Layers[0] != manifest[1].Layers[0] || manifest[0].Layers[1] == manifest[1].Layers[1] {
		t.Errorf("layers %v", manifest)
	}
	tag, err := name.NewTag("store:1.3")
	if err != nil {
		t.Fatal(err)
	}
	i, err := tarball.Image(opener, &tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(i); err != nil {
		t.Error(err)
	}
	checkStore(t, i)
}

// checkStore looks at everything in the image store.
func checkStore(t *testing.T, i v1.Image) {
	t.Helper()
	config, err := i.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	wantConfig := v1.Config{
		Entrypoint: []string{"entry.sh"}, Cmd: []string{"stored"}, WorkingDir: "/data", User: "999:999",
		Env: []string{"A=b", "PATH=" + kit.DefaultPath, "STORE_VERSION=1.2"},
	}
	if diff := cmp.Diff(wantConfig, config.Config); diff != "" {
		t.Error(diff)
	}
	if config.Architecture != "amd64" || config.OS != "linux" || !config.Created.Equal(made) {
		t.Errorf("%s/%s of %v", config.OS, config.Architecture, config.Created)
	}
	layers, err := i.Layers()
	if err != nil || len(layers) != 2 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	first, _ := list(t, layers[0])
	if diff := cmp.Diff([]string{"d755 usr/", "d755 usr/lib/", "d755 usr/lib/lab/", "f755 usr/lib/lab/run"}, first); diff != "" {
		t.Error(diff)
	}
	second, content := list(t, layers[1])
	want := []string{
		"d755 a/", "d755 a/deep/", "f644 a/deep/file", "d755 bin/", "l777 bin/stored -> /usr/lib/lab/run",
		"d1777 data/", "d755 dev/", "d755 etc/", "f644 etc/group", "f644 etc/passwd", "f644 etc/store.conf", "d755 home/",
		"d755 proc/", "d755 root/", "d755 run/", "d755 sys/", "d1777 tmp/", "l777 top -> /usr/lib/lab/run", "d755 usr/",
		"d755 usr/bin/", "d755 usr/lib/", "d755 usr/lib/lab/", "f644 usr/lib/lab/image", "d755 usr/local/",
		"d755 usr/local/bin/", "l777 usr/local/bin/entry.sh -> /usr/lib/lab/run", "d755 var/", "d755 var/run/",
	}
	if diff := cmp.Diff(want, second); diff != "" {
		t.Error(diff)
	}
	for file, want := range map[string]string{
		"usr/lib/lab/image": "store\n", "etc/store.conf": "port 1\n", "etc/passwd": store().Files["/etc/passwd"],
	} {
		if content[file] != want {
			t.Errorf("%s is %q", file, content[file])
		}
	}
}

// list shows what is in a layer, in order.
func list(t *testing.T, l v1.Layer) (names []string, content map[string]string) {
	t.Helper()
	r, err := l.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	content = map[string]string{}
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return names, content
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(made) {
			t.Errorf("%s: user %d:%d, %v", h.Name, h.Uid, h.Gid, h.ModTime)
		}
		line := map[byte]string{tar.TypeDir: "d", tar.TypeReg: "f", tar.TypeSymlink: "l"}[h.Typeflag]
		line += strconv.FormatInt(h.Mode, 8) + " " + h.Name
		if h.Typeflag == tar.TypeSymlink {
			line += " -> " + h.Linkname
		}
		names = append(names, line)
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		content[h.Name] = string(data)
	}
}

func TestImages(t *testing.T) {
	s := build(t, fakeBinary(t, elf.EM_AARCH64))
	images, err := s.Images()
	if err != nil || s.Platforms() != "linux/arm64" {
		t.Fatalf("%s, %v", s.Platforms(), err)
	}
	var refs []string
	for _, i := range images {
		refs = append(refs, i.Ref)
		if !strings.HasPrefix(i.Digest, "sha256:") {
			t.Errorf("digest %s", i.Digest)
		}
	}
	want := []string{"docker.io/example/plain:v1", "docker.io/library/store:1.2", "docker.io/library/store:1.3"}
	if diff := cmp.Diff(want, refs); diff != "" {
		t.Error(diff)
	}
}

func TestRefused(t *testing.T) {
	good := fakeBinary(t, elf.EM_X86_64)
	withFile := func(name string) kit.Image {
		return kit.Image{Names: []string{"bad"}, Files: map[string]string{name: "x"}}
	}
	withProgram := func(name string) kit.Image {
		return kit.Image{
			Names: []string{"bad"}, Programs: map[string]kit.Program{name: nothing},
			Files: map[string]string{"/etc/file": "x", "/var/dir/": ""},
		}
	}
	for _, tt := range []struct {
		name   string
		binary string
		image  kit.Image
		ref    string
		want   string
	}{
		{name: "no file", binary: "/nosuch", want: "no such file"},
		{name: "a script", binary: writeFile(t, []byte("#!/bin/sh\n")), want: "is no program for Linux; build one with GOOS=linux"},
		{name: "another machine", binary: fakeBinary(t, elf.EM_RISCV), want: "is for EM_RISCV; images are made for amd64 and arm64"},
		{
			name: "a program that needs libraries", binary: fakeBinary(t, elf.EM_X86_64, elf.Prog64{Type: uint32(elf.PT_INTERP)}),
			want: "build it with CGO_ENABLED=0",
		},
		{name: "no such image", ref: "nosuch:1", want: "docker.io/library/nosuch:1: repository does not exist"},
		{name: "no such tag", ref: "bad:2", image: kit.Image{Tags: "1"}, want: "manifest unknown"},
		{name: "no name", ref: "UPPER", want: "invalid reference format"},
		{name: "a digest", ref: "bad@sha256:" + strings.Repeat("a", 64), want: "an image is made by its tag"},
		{name: "a file outside", image: withFile("/../etc/cron.d/evil"), want: `"/../etc/cron.d/evil" is no absolute path`},
		{name: "a file outside, later", image: withFile("/a/../../x"), want: "is no absolute path"},
		{name: "a relative file", image: withFile("etc/x"), want: "is no absolute path"},
		{name: "no name at all", image: withFile(""), want: "is no absolute path"},
		{name: "the root", image: withFile("/"), want: "is no absolute path"},
		{name: "a name that ends early", image: withFile("/etc/x\x00y"), want: "is no absolute path"},
		{name: "two slashes", image: withFile("/etc//x"), want: "is no absolute path"},
		{name: "the marker", image: withFile(inside.Marker), want: "is where the lab's own files are"},
		{name: "the program", image: withProgram(inside.Program), want: "is where the lab's own files are"},
		{name: "a file that is a directory", image: withFile("/tmp"), want: "/tmp is a directory and a file"},
		{name: "a file in a file", image: withFile("/etc/passwd/x"), want: "/etc/passwd/x cannot be in /etc/passwd, which is a file"},
		{name: "a program in a file", image: withProgram("/etc/file/x"), want: "cannot be in /etc/file, which is a file"},
		{name: "a program that is a file", image: withProgram("/etc/file"), want: "/etc/file is a program and a file"},
		{name: "a program that is a directory", image: withProgram("/var/dir"), want: "/var/dir is a program and a directory"},
		{name: "a program outside", image: withProgram("/bin/../../x"), want: "is no absolute path"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.image.Names == nil {
				tt.image.Names = []string{"bad"}
			}
			if tt.binary == "" {
				tt.binary = good
			}
			if tt.ref == "" {
				tt.ref = "bad:1"
			}
			_, err := Build(tt.binary, kit.NewRegistry(tt.image), []string{tt.ref})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := Build(good, images(), nil); err == nil {
		t.Error("no images are no error")
	}
}

// TestManifestNamesFiles shows that an archive has every file that its manifest names.
func TestManifestNamesFiles(t *testing.T) {
	files := map[string][]byte{}
	in := tar.NewReader(bytes.NewReader(archiveOf(t, build(t, fakeBinary(t, elf.EM_X86_64)))))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name] != nil {
			t.Errorf("%s is there twice", h.Name)
		}
		if files[h.Name], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
	}
	var manifest tarball.Manifest
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	for _, d := range manifest {
		for _, f := range append(d.Layers, d.Config) {
			if len(files[f]) == 0 {
				t.Errorf("no %s", f)
			}
		}
	}
}

// TestProgram: the image of the program itself runs it by its name, as no user in particular, and has nothing that would
// make it a program of another image.
func TestProgram(t *testing.T) {
	s, err := Program(fakeBinary(t, elf.EM_X86_64))
	if err != nil {
		t.Fatal(err)
	}
	infos, err := s.Images()
	if err != nil || len(infos) != 1 || infos[0].Ref != "docker.io/aiopslab/aiopslab:latest" {
		t.Fatalf("%v, %v", infos, err)
	}
	i := s.images[0].Image
	if err := validate.Image(i); err != nil {
		t.Error(err)
	}
	config, err := i.ConfigFile()
	if err != nil || config.Config.User != "65532:65532" || config.Config.Entrypoint[0] != "/usr/bin/aiopslab" {
		t.Errorf("%+v, %v", config, err)
	}
	layers, err := i.Layers()
	if err != nil || len(layers) != 2 {
		t.Fatalf("%v, %v", layers, err)
	}
	names, content := list(t, layers[1])
	if !slices.Contains(names, "l777 usr/bin/aiopslab -> "+inside.Program) {
		t.Errorf("there is no aiopslab among %q", names)
	}
	if _, marked := content[inside.Marker[1:]]; marked {
		t.Error("it says that it is another image")
	}
}
