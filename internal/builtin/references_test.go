package builtin

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/distribution/reference"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/kit"
)

func TestReferences(t *testing.T) {
	for _, tt := range []struct {
		name  string
		parts Parts
		want  []string
		not   []string
	}{
		{
			name: "built in",
			want: []string{
				"docker.io/aiopslab/hotel-reservation:v1", "docker.io/aiopslab/social-network:v1",
				"docker.io/library/mongo:4.4.6", "docker.io/library/redis:6.2.4", "docker.io/prom/prometheus:v3.15.0",
				"registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.17.0",
				"docker.io/library/mongo:4.4.5",     // an earlier release
				"docker.io/yinfangchen/geo:app3",    // a fault
				"docker.io/aiopslab/load:v1",        // what sends load
				"docker.io/library/busybox:1.36",    // a job, and somebody who looks
				"docker.io/library/memcached:1.6.4", // the oldest release
			},
			not: []string{"docker.io/library/memcached:1.6.3", "docker.io/library/busybox:latest"},
		},
		{
			name: "one's own",
			parts: Parts{
				Images: []kit.Image{{Names: []string{"example/mine"}, Tags: "v2"}, {Names: []string{"example/other"}}},
				Apps:   []*app.App{{Name: "my-app", Manifests: fstest.MapFS{"a.yaml": {Data: []byte(ownManifest)}}}},
			},
			want: []string{"docker.io/example/mine:v2", "docker.io/example/other:1", "docker.io/example/other:0"},
			not:  []string{"docker.io/example/absent:v1", "docker.io/example/mine:v1"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := tt.parts.Library()
			if err != nil {
				t.Fatal(err)
			}
			refs, err := References(l, tt.parts.AllImages())
			if err != nil || !slices.IsSorted(refs) {
				t.Fatalf("%v, %v", refs, err)
			}
			for _, want := range tt.want {
				if !slices.Contains(refs, want) {
					t.Errorf("%s is not among %s", want, strings.Join(refs, " "))
				}
			}
			for _, not := range tt.not {
				if slices.Contains(refs, not) {
					t.Errorf("%s is among them", not)
				}
			}
		})
	}
}

const ownManifest = `apiVersion: batch/v1
kind: CronJob
metadata: {name: mine}
spec:
  jobTemplate:
    spec:
      template:
        spec:
          initContainers: [{name: a, image: "example/other:1"}]
          containers: [{name: b, image: "example/mine:v2"}, {name: c, image: "example/absent:v1"}]
`

// TestManifestsAreOurs shows that there is an image for every container of the built-in applications, and that each is of a
// version: what is latest nodes pull anew for each container.
func TestManifestsAreOurs(t *testing.T) {
	registry := Parts{}.AllImages()
	for _, a := range (Parts{}).AllApps() {
		objects, err := manifest.Read(a.Manifests)
		if err != nil {
			t.Fatal(err)
		}
		refs := imagesIn(objects)
		if len(refs) < len(a.Services) {
			t.Errorf("%s: %d images for %d services", a.Name, len(refs), len(a.Services))
		}
		for _, ref := range refs {
			if _, _, err := registry.Resolve(ref); err != nil {
				t.Errorf("%s: %v", a.Name, err)
			}
			named, err := reference.ParseDockerRef(ref)
			if err != nil || strings.HasSuffix(named.String(), ":latest") {
				t.Errorf("%s: %s is not a version: %v, %v", a.Name, ref, named, err)
			}
		}
	}
}
