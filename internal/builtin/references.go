package builtin

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/fault"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/observe"
	"github.com/aiopslab/aiopslab/problem"
	"github.com/aiopslab/aiopslab/workload/remote"
	"github.com/aiopslab/aiopslab/world"
	"github.com/aiopslab/aiopslab/world/change"
	"github.com/aiopslab/aiopslab/world/noise"
)

// References are the images that a cluster may be asked to run, in full and sorted: those of the applications and of
// the telemetry, their earlier releases, the load generator's, and those that faults, jobs and checks use. What a
// registry does not have is left out: it comes from elsewhere, or a fault means it not to be there.
func References(l *problem.Library, registry *kit.Registry) ([]string, error) {
	found := map[string]bool{}
	exists := func(ref string) bool {
		full, _, err := registry.Resolve(ref)
		if err == nil {
			found[full] = true
		}
		return err == nil
	}
	telemetry, err := manifest.Read(observe.Manifests())
	if err != nil {
		return nil, err
	}
	for _, ref := range imagesIn(telemetry) {
		exists(ref)
	}
	for _, a := range l.Apps {
		objects, err := manifest.Read(a.Manifests)
		if err != nil {
			return nil, fmt.Errorf("application %s: %w", a.Name, err)
		}
		for _, ref := range imagesIn(objects) {
			exists(ref)
			change.Earlier(ref, exists)
		}
	}
	for _, p := range l.Problems {
		for _, s := range p.Faults() {
			var params struct {
				Image string `yaml:"image"`
			}
			if s.Params.Decode(&params) == nil && params.Image != "" {
				exists(params.Image)
			}
		}
	}
	for _, ref := range append(fault.Builds(), world.JobImage, noise.CheckImage, remote.ImageName) {
		exists(ref)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// imagesIn are the images of the containers in objects.
func imagesIn(objects []*unstructured.Unstructured) (list []string) {
	manifest.EachImage(objects, func(image string, _ func(string)) { list = append(list, image) })
	return list
}
