package world

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/aiopslab/aiopslab/world/change"
)

// buildAnnotation tells which build a template was released as.
const buildAnnotation = "app.kubernetes.io/build"

// earlier returns what takes a template one release back, and another one each time that it is called. Releases differ
// in what those of the present differ in. An image becomes older in order.
func (c *chronicle) earlier(r *rand.Rand, namespace string) func(*v1.PodTemplateSpec) error {
	w := &change.World{
		Namespace: namespace, Services: c.servicesOf(namespace), Program: c.Program,
		OtherImage: func(image string) string {
			if images := change.Earlier(image, c.HasImage); len(images) > 0 {
				return images[0]
			}
			return ""
		},
	}
	return func(t *v1.PodTemplateSpec) error {
		template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t)
		if err != nil {
			return fmt.Errorf("read a template: %w", err)
		}
		w.Release(r, template, 0)
		*t = v1.PodTemplateSpec{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, t); err != nil {
			return fmt.Errorf("write a template: %w", err)
		}
		annotations := maps.Clone(t.Annotations)
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[buildAnnotation] = fmt.Sprintf("%08x", r.Uint32())
		t.Annotations = annotations
		return nil
	}
}

// servicesOf are the Services of a namespace.
func (c *chronicle) servicesOf(namespace string) (names []string) {
	for _, o := range c.Objects {
		if s, ok := o.(*v1.Service); ok && s.Namespace == namespace {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}
