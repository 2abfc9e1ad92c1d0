package kit

import (
	"context"
	"errors"
	"strings"
	"testing"
)

const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func TestResolve(t *testing.T) {
	r := NewRegistry(
		Image{Names: []string{"busybox", "registry.k8s.io/e2e-test-images/busybox"}, Tags: `latest|1\.3\d`},
		Image{Names: []string{"curlimages/curl"}},
		Image{Names: []string{"localhost:5000/tool"}, Tags: "v1"},
	)
	tests := []struct {
		ref, full, image string
		err              error
	}{
		{"busybox", "docker.io/library/busybox:latest", "busybox", nil},
		{"busybox:1.36", "docker.io/library/busybox:1.36", "busybox", nil},
		{"library/busybox", "docker.io/library/busybox:latest", "busybox", nil},
		{"docker.io/busybox:1.36", "docker.io/library/busybox:1.36", "busybox", nil},
		{"index.docker.io/library/busybox", "docker.io/library/busybox:latest", "busybox", nil},
		{"registry.k8s.io/e2e-test-images/busybox:1.37", "registry.k8s.io/e2e-test-images/busybox:1.37", "busybox", nil},
		{"curlimages/curl:anything", "docker.io/curlimages/curl:anything", "curlimages/curl", nil},
		{"localhost:5000/tool:v1", "localhost:5000/tool:v1", "localhost:5000/tool", nil},
		// A digest says which version, whatever the tag.
		{"busybox" + digest, "docker.io/library/busybox" + digest, "busybox", nil},
		{"busybox:1.36" + digest, "docker.io/library/busybox:1.36" + digest, "busybox", nil},

		// There are other versions of it.
		{"busybox:2.0", "docker.io/library/busybox:2.0", "busybox", ErrNoSuchVersion},
		// The expression matches whole tags.
		{"busybox:1.36-musl", "docker.io/library/busybox:1.36-musl", "busybox", ErrNoSuchVersion},
		{"localhost:5000/tool", "localhost:5000/tool:latest", "localhost:5000/tool", ErrNoSuchVersion},
		{"busybux", "docker.io/library/busybux:latest", "", ErrNoSuchImage},
		{"quay.io/library/busybox", "quay.io/library/busybox:latest", "", ErrNoSuchImage},
		{"someone/busybox", "docker.io/someone/busybox:latest", "", ErrNoSuchImage},
		{"", "", "", ErrInvalidImage},
		{"busy box", "", "", ErrInvalidImage},
		{"BusyBox", "", "", ErrInvalidImage},
		{"busybox:", "", "", ErrInvalidImage},
		{"busybox@sha256:12", "", "", ErrInvalidImage},
	}
	for _, tt := range tests {
		full, image, err := r.Resolve(tt.ref)
		if full != tt.full || !errors.Is(err, tt.err) || (image == nil) != (tt.image == "") {
			t.Errorf("%q: %q, %v, %v", tt.ref, full, image, err)
			continue
		}
		if image != nil && image.Names[0] != tt.image {
			t.Errorf("%q: image %q", tt.ref, image.Names[0])
		}
		if err != nil && strings.Count(err.Error(), tt.err.Error()) != 1 {
			t.Errorf("%q: the error repeats itself: %v", tt.ref, err)
		}
	}
	if len(r.Images()) != 3 {
		t.Errorf("%d images", len(r.Images()))
	}
	if _, _, err := new(Registry).Resolve("busybox"); !errors.Is(err, ErrNoSuchImage) {
		t.Errorf("the zero registry: %v", err)
	}
}

// TestSharedName has images of one repository that differ in their tags.
func TestSharedName(t *testing.T) {
	r := NewRegistry(
		Image{Names: []string{"ghcr.io/shop/demo"}, Tags: `2\.2\.0-cart`},
		Image{Names: []string{"apache/kafka", "ghcr.io/shop/demo"}, Tags: `3\.9\.\d|2\.2\.0-kafka`},
		Image{Names: []string{"ghcr.io/shop/demo"}, Tags: `2\.2\.0-ad`},
	)
	ids := map[string]bool{}
	for ref, id := range map[string]string{
		"ghcr.io/shop/demo:2.2.0-cart":  `ghcr.io/shop/demo:2\.2\.0-cart`,
		"ghcr.io/shop/demo:2.2.0-ad":    `ghcr.io/shop/demo:2\.2\.0-ad`,
		"ghcr.io/shop/demo:2.2.0-kafka": "apache/kafka",
		"apache/kafka:3.9.1":            "apache/kafka",
	} {
		_, image, err := r.Resolve(ref)
		if err != nil || image.ID() != id || r.ByID(id) != image {
			t.Errorf("%s: %v, %v", ref, image, err)
			continue
		}
		ids[image.ID()] = true
	}
	if len(ids) != 3 || r.ByID("ghcr.io/shop/demo") != nil {
		t.Errorf("the images are not told apart: %v", ids)
	}
	if _, image, err := r.Resolve("ghcr.io/shop/demo:2.2.0-quote"); !errors.Is(err, ErrNoSuchVersion) || image == nil {
		t.Errorf("%v, %v", image, err)
	}
	if got, want := r.Tags("ghcr.io/shop/demo"), `2\.2\.0-cart|3\.9\.\d|2\.2\.0-kafka|2\.2\.0-ad`; got != want {
		t.Errorf("tags %s, want %s", got, want)
	}
	for _, tags := range []string{"", `2\.2\.0-ad`} {
		if err := r.Register(Image{Names: []string{"ghcr.io/shop/demo"}, Tags: tags}); err == nil {
			t.Errorf("an image is registered twice, with tags %q", tags)
		}
	}
}

func TestRegisterRefuses(t *testing.T) {
	tests := []struct {
		image Image
		text  string
	}{
		{Image{}, "needs a name"},
		{Image{Names: []string{"busybox:1.36"}}, "not the name of an image"},
		{Image{Names: []string{"Busy"}}, "not the name of an image"},
		{Image{Names: []string{"docker.io/library/nginx"}}, "already"},
		{Image{Names: []string{"a", "library/a"}}, "already"},
		{Image{Names: []string{"b"}, Tags: "("}, "missing closing )"},
	}
	for _, tt := range tests {
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.Contains(text, tt.text) {
					t.Errorf("%v: panic %q", tt.image.Names, text)
				}
			}()
			NewRegistry(Image{Names: []string{"nginx"}}, tt.image)
		}()
	}
}

func TestUnder(t *testing.T) {
	for ref, want := range map[string]string{
		"mongo:4.4.6": "r.example/lab/library/mongo:4.4.6", "registry.k8s.io/pause:3.10": "r.example/lab/pause:3.10",
		"prom/prometheus": "r.example/lab/prom/prometheus:latest", "localhost:5000/a/b:1": "r.example/lab/a/b:1",
		"a" + digest: "r.example/lab/library/a" + digest,
	} {
		for _, prefix := range []string{"r.example/lab", "r.example/lab/"} {
			if got, err := Under(prefix, ref); err != nil || got != want {
				t.Errorf("%s is %s, %v", ref, got, err)
			}
		}
	}
	for _, prefix := range []string{"", "lab", "/lab", "r.example/LAB", "r.example/lab:v1", "https://r.example/lab", "r.example//lab"} {
		if got, err := Under(prefix, "mongo"); err == nil {
			t.Errorf("prefix %q gives %s", prefix, got)
		}
	}
	if _, err := Under("r.example", "NO"); err == nil {
		t.Error("no name is no error")
	}
}

func FuzzResolve(f *testing.F) {
	for _, s := range []string{"busybox", "a/b:c", "x@y", "localhost:5000/x:1" + digest} {
		f.Add(s)
	}
	r := NewRegistry(Image{Names: []string{"busybox"}})
	f.Fuzz(func(t *testing.T, ref string) {
		full, _, err := r.Resolve(ref)
		if errors.Is(err, ErrInvalidImage) {
			return
		}
		// A full name is its own full name.
		if again, err := FullName(full); err != nil || again != full {
			t.Errorf("%q: %q, then %q, %v", ref, full, again, err)
		}
	})
}

// A program is found in the directories of its image's PATH, in their order, and in no image that is not there.
func TestProgram(t *testing.T) {
	run := func(context.Context, *Env) error { return nil }
	r := NewRegistry(
		Image{Names: []string{"shop"}, Tags: "v1", Vars: map[string]string{"PATH": "/app:/bin"}, Programs: map[string]Program{"/bin/cart": run, "/app/cart": run, "/etc/cart2": run}},
		Image{Names: []string{"plain"}, Programs: map[string]Program{"/usr/bin/sh": run}},
	)
	for _, c := range [][3]string{
		{"shop:v1", "cart", "/app/cart"},
		{"docker.io/library/shop:v1", "cart", "/app/cart"},
		{"shop:v1", "cart2", ""},
		{"shop:v2", "cart", ""},
		{"plain", "sh", "/usr/bin/sh"},
		{"none", "sh", ""},
		{"NO", "sh", ""},
	} {
		if got := r.Program(c[0], c[1]); got != c[2] {
			t.Errorf("%s has %s at %q, want %q", c[0], c[1], got, c[2])
		}
		if has := r.Has(c[0]); has == (c[0] == "shop:v2" || c[0] == "none" || c[0] == "NO") {
			t.Errorf("%s is there: %v", c[0], has)
		}
	}
}
