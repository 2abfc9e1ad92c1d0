package app_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/app/hotel"
	"github.com/aiopslab/aiopslab/internal/manifest"
)

// An application from another registry is the same but for the places of its images, all of them.
func TestFrom(t *testing.T) {
	const prefix = "registry.example:5000/lab"
	a := hotel.App()
	from, err := a.From(prefix)
	if err != nil {
		t.Fatal(err)
	}
	want, err := manifest.Read(a.Manifests)
	if err != nil {
		t.Fatal(err)
	}
	got, err := manifest.Read(from.Manifests)
	if err != nil {
		t.Fatal(err)
	}
	images := func(objects []*unstructured.Unstructured) (list []string) {
		manifest.EachImage(objects, func(image string, _ func(string)) { list = append(list, image) })
		return list
	}
	old, moved := images(want), images(got)
	if len(moved) != len(old) || len(old) != len(a.Services) {
		t.Fatalf("%d images of %d", len(moved), len(old))
	}
	for i, image := range moved {
		if image != from.Image(old[i]) || image[:len(prefix)+1] != prefix+"/" {
			t.Errorf("%s becomes %s", old[i], image)
		}
	}
	if err := manifest.Under(prefix, want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if a.Registry != "" || a.Image("busybox:1.36") != "busybox:1.36" {
		t.Error("the application itself has another registry now")
	}
	if from.Image("busybox:1.36") != prefix+"/library/busybox:1.36" || from.Image("NO") != "NO" {
		t.Errorf("%s, %s", from.Image("busybox:1.36"), from.Image("NO"))
	}
	if _, err := a.From("nowhere"); err == nil {
		t.Error("a prefix without a registry is one")
	}
}
