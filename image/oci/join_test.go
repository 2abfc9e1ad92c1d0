package oci

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func joined(t *testing.T) *Set {
	t.Helper()
	s, err := Join(build(t, fakeBinary(t, elf.EM_X86_64)), build(t, fakeBinary(t, elf.EM_AARCH64)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestJoinedArchive reads an archive for two architectures with the library that others read it with.
func TestJoinedArchive(t *testing.T) {
	data := archiveOf(t, joined(t))
	if !bytes.Equal(data, archiveOf(t, joined(t))) {
		t.Error("two archives of the same binaries differ")
	}
	dir := t.TempDir()
	for in := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, h.Name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range m.Manifests {
		names = append(names, d.Annotations["io.containerd.image.name"])
		child, err := index.ImageIndex(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkPlatforms(t, child)
	}
	want := []string{"docker.io/example/plain:v1", "docker.io/library/store:1.2", "docker.io/library/store:1.3"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// checkPlatforms looks whether an image has what it says of either architecture.
func checkPlatforms(t *testing.T, index v1.ImageIndex) {
	t.Helper()
	m, err := index.IndexManifest()
	if err != nil || len(m.Manifests) != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	for n, architecture := range []string{"amd64", "arm64"} {
		d := m.Manifests[n]
		i, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := i.ConfigFile()
		if err != nil || config.Architecture != architecture || d.Platform.String() != "linux/"+architecture {
			t.Errorf("%s for %s, %v", config.Architecture, d.Platform, err)
		}
	}
}

func TestPushJoined(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	defer remote.DefaultTransport.(*http.Transport).CloseIdleConnections()
	host := strings.TrimPrefix(server.URL, "http://")
	s := joined(t)
	if err := s.Push(t.Context(), host+"/lab", false, func(string) {}); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(host + "/lab/library/store:1.3")
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	checkPlatforms(t, index)
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	images, err := s.Images()
	if err != nil || images[2].Digest != digest.String() || s.Platforms() != "linux/amd64 and linux/arm64" {
		t.Errorf("pushed as %s, for %s, %v", digest, s.Platforms(), err)
	}
}

func TestJoinRefused(t *testing.T) {
	one := build(t, fakeBinary(t, elf.EM_X86_64))
	if s, err := Join(one); err != nil || s != one {
		t.Errorf("one set: %v", err)
	}
	other, err := Build(fakeBinary(t, elf.EM_AARCH64), images(), []string{"store:1.2"})
	if err != nil {
		t.Fatal(err)
	}
	for want, sets := range map[string][]*Set{
		"two programs are for amd64": {one, build(t, fakeBinary(t, elf.EM_X86_64))},
		"different images":           {one, other},
		"no set":                     nil,
	} {
		if _, err := Join(sets...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
