package builtin

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/everytest"
	"github.com/aiopslab/aiopslab/internal/manifest"
)

// The images of built-in applications come from a registry, also those that repair a fault. Somebody's own application
// says itself where its images are.
func TestLibraryFrom(t *testing.T) {
	const prefix = "registry.example/lab"
	own := &app.App{Name: "my-app", Manifests: fstest.MapFS{"a.yaml": {Data: []byte(ownManifest)}}}
	l, err := Parts{Apps: []*app.App{own}}.LibraryFrom(prefix)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Apps) != 1+len(everytest.Apps()) {
		t.Fatalf("%d applications", len(l.Apps))
	}
	for _, a := range l.Apps {
		objects, err := manifest.Read(a.Manifests)
		if err != nil {
			t.Fatal(err)
		}
		for _, image := range imagesIn(objects) {
			if strings.HasPrefix(image, prefix+"/") != (a != own) {
				t.Errorf("%s: %s", a.Name, image)
			}
		}
	}
	p, err := l.Find("misconfig_app_hotel_res-mitigation-1")
	if err != nil {
		t.Fatal(err)
	}
	steps, err := p.Solution()
	if err != nil || !strings.Contains(strings.Join(steps, "\n"), "="+prefix+"/aiopslab/hotel-reservation:v1") {
		t.Errorf("%q, %v", steps, err)
	}
	if _, err := (Parts{}).LibraryFrom("nowhere"); err == nil {
		t.Error("a prefix without a registry is one")
	}
}
