package oci

import (
	"debug/elf"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/aiopslab/aiopslab/kit"
)

func TestPush(t *testing.T) {
	var blobs atomic.Int64
	quiet := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/") {
			blobs.Add(1)
		}
		quiet.ServeHTTP(w, r)
	}))
	defer server.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	defer remote.DefaultTransport.(*http.Transport).CloseIdleConnections()
	host := strings.TrimPrefix(server.URL, "http://")
	s := build(t, fakeBinary(t, elf.EM_X86_64))
	var pushed []string
	if err := s.Push(t.Context(), host+"/lab", false, func(ref string) { pushed = append(pushed, ref) }); err != nil {
		t.Fatal(err)
	}
	want := []string{host + "/lab/example/plain:v1", host + "/lab/library/store:1.2", host + "/lab/library/store:1.3"}
	if diff := cmp.Diff(want, pushed); diff != "" {
		t.Error(diff)
	}
	tag, err := name.NewTag(host + "/lab/library/store:1.3")
	if err != nil {
		t.Fatal(err)
	}
	i, err := remote.Image(tag)
	if err != nil {
		t.Fatal(err)
	}
	checkStore(t, i)
	digest, err := i.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if images, err := s.Images(); err != nil || images[2].Digest != digest.String() {
		t.Errorf("pushed as %s, %v", digest, err)
	}
	before := blobs.Load()
	if err := s.Push(t.Context(), host+"/lab/", false, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if after := blobs.Load(); after != before {
		t.Errorf("pushing once more sent %d blobs", after-before)
	}
}

func TestPushRefused(t *testing.T) {
	s := build(t, fakeBinary(t, elf.EM_X86_64))
	clash, err := Build(fakeBinary(t, elf.EM_X86_64), kit.NewRegistry(
		kit.Image{Names: []string{"a.example/x"}}, kit.Image{Names: []string{"b.example/x"}},
	), []string{"a.example/x:1", "b.example/x:1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		set    *Set
		prefix string
		want   string
	}{
		{"no registry", s, "lab", "names no registry; write it with its host"},
		{"nothing", s, "", "names no registry"},
		{"no name", s, "localhost:5000/La b", "is no place in a registry"},
		{"two of one name", clash, "localhost:5000", "a.example/x:1 and b.example/x:1 would both become localhost:5000/x:1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.set.Push(t.Context(), tt.prefix, false, func(string) {})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestPlainHTTP(t *testing.T) {
	s := build(t, fakeBinary(t, elf.EM_X86_64))
	for plain, want := range map[bool]string{true: "http", false: "https"} {
		list, err := s.targets("registry.example/lab", plain)
		if err != nil || list[0].tag.Scheme() != want {
			t.Errorf("plain %v: %v, %v", plain, list, err)
		}
	}
}
