package session

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestRestarted holds what a restart may change of a template, and what it may not.
func TestRestarted(t *testing.T) {
	template := func() v1.PodTemplateSpec {
		p := v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "shop:2"}}}}
		p.Labels = map[string]string{"name": "catalogue"}
		p.Annotations = map[string]string{"build": "7", restartedAt: "2026-01-01T00:00:00Z"}
		return p
	}
	for name, tt := range map[string]struct {
		change func(*v1.PodTemplateSpec)
		want   bool
	}{
		"nothing":                 {func(*v1.PodTemplateSpec) {}, false},
		"restarted by kubectl":    {func(p *v1.PodTemplateSpec) { p.Annotations[restartedAt] = "2026-02-02T00:00:00Z" }, false},
		"restarted by a patch":    {func(p *v1.PodTemplateSpec) { p.Annotations["again"] = "now" }, false},
		"rolled back to an image": {func(p *v1.PodTemplateSpec) { p.Spec.Containers[0].Image = "shop:1" }, true},
		"rolled back to a build":  {func(p *v1.PodTemplateSpec) { p.Annotations["build"] = "6" }, true},
		"rolled back to a note":   {func(p *v1.PodTemplateSpec) { p.Annotations["ticket"] = "12" }, true},
		"without what it had":     {func(p *v1.PodTemplateSpec) { p.Annotations = nil }, true},
		"another label":           {func(p *v1.PodTemplateSpec) { p.Labels["name"] = "other" }, true},
		"another limit": {func(p *v1.PodTemplateSpec) {
			p.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceCPU: {}}
		}, true},
	} {
		now, older := template(), template()
		older.Annotations["ticket"] = "12"
		tt.change(&now)
		if got := (makings{template(), []v1.PodTemplateSpec{older}}).others(now); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
