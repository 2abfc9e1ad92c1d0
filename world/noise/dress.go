package noise

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/world/change"
)

// buildAnnotation tells which build is deployed.
const buildAnnotation = "app.kubernetes.io/build"

// wear has everything that is applied from now on dressed for the release, on top of what it wears already, and
// remembers it.
func (l *Life) wear() {
	l.applied = map[string]*unstructured.Unstructured{}
	l.Env.Applied = func(u *unstructured.Unstructured) {
		if u.GetKind() == "Deployment" {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.applied[u.GetName()] = u.DeepCopy()
		}
	}
	under := l.Env.Dress
	l.Env.Dress = func(u *unstructured.Unstructured) {
		if under != nil {
			under(u)
		}
		l.dress(u)
	}
}

// dress gives an object what the release has of it: the build, of pods as well if they can be replaced, and differences
// that make none to users. There are as many of them whether or not one of them is a mistake: one that was made
// already, by a fault, takes the place of another. So who looks for what differs from the release before finds
// something everywhere, of the kinds that faults make, too.
func (l *Life) dress(u *unstructured.Unstructured) {
	r, already := l.drawFor(u), 0
	was := l.released(u)
	if was != nil && !reflect.DeepEqual(was.Object["spec"], u.Object["spec"]) {
		already = 1
	}
	annotate := func(path ...string) {
		_ = unstructured.SetNestedField(u.Object, l.build, append(path, "annotations", buildAnnotation)...)
	}
	annotate("metadata")
	switch kind := u.GetKind(); kind {
	case "Deployment":
		if l.rolls(u.GetName()) {
			template, ok, _ := unstructured.NestedMap(u.Object, "spec", "template")
			if ok {
				l.world().Release(r, template, already)
				_ = unstructured.SetNestedMap(u.Object, template, "spec", "template")
			}
			annotate("spec", "template", "metadata")
		}
	case "Service":
		l.spellPorts(r, u)
	case "ConfigMap":
		files, _, _ := unstructured.NestedStringMap(u.Object, "data")
		for name, text := range files {
			if path.Ext(name) == ".json" {
				files[name] = toggle(r, text)
			} else {
				files[name] = remark(name, text, "build "+l.build)
			}
		}
		_ = unstructured.SetNestedStringMap(u.Object, files, "data")
	default:
		differ(r, u, already)
	}
}

// drawFor returns the random numbers for an object of the release.
func (l *Life) drawFor(u *unstructured.Unstructured) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, l.build, u.GetKind(), "/", u.GetName())
	return rand.New(rand.NewPCG(l.Seed, h.Sum64()))
}

// released is an object as its application has it, or nil.
func (l *Life) released(u *unstructured.Unstructured) *unstructured.Unstructured {
	for _, p := range l.parts {
		for _, o := range p.objects {
			if o.GetKind() == u.GetKind() && o.GetName() == u.GetName() {
				return o
			}
		}
	}
	return nil
}

// world is what the differences of a release must hold in.
func (l *Life) world() *change.World {
	w := &change.World{Namespace: l.Env.App.Namespace, Tight: l.Env.Guest}
	for _, p := range l.parts {
		for _, u := range p.objects {
			if u.GetKind() == "Service" {
				w.Services = append(w.Services, u.GetName())
			}
		}
	}
	if l.Library != nil {
		w.Program = l.Library.Program
		w.OtherImage = func(image string) string { return change.Later(image, l.Library.HasImage) }
	}
	return w
}

// spellPorts has a Service name the port of its pods that it has the number of, here and there.
func (l *Life) spellPorts(r *rand.Rand, u *unstructured.Unstructured) {
	ports, _, _ := unstructured.NestedSlice(u.Object, "spec", "ports")
	for _, v := range ports {
		port, ok := v.(map[string]any)
		if !ok || r.IntN(2) == 0 {
			continue
		}
		if name := l.portName(u.GetName(), port["targetPort"]); name != "" {
			port["targetPort"] = name
		}
	}
	_ = unstructured.SetNestedSlice(u.Object, ports, "spec", "ports")
}

// portName is the name of a port of a service's pods, or "".
func (l *Life) portName(service string, number any) string {
	i := slices.IndexFunc(l.parts, func(p *part) bool { return p.service == service && p.deployment != nil })
	if i < 0 {
		return ""
	}
	containers, _, _ := unstructured.NestedSlice(l.parts[i].deployment.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		c, _ := c.(map[string]any)
		ports, _ := c["ports"].([]any)
		for _, p := range ports {
			if p, _ := p.(map[string]any); p["containerPort"] == number && number != nil {
				name, _ := p["name"].(string)
				return name
			}
		}
	}
	return ""
}

// comments are how a comment begins in files, by their extension.
var comments = map[string]string{".js": "// ", ".conf": "# ", ".yaml": "# ", ".sh": "# ", ".lua": "-- "}

// remark puts a comment at the end of a file, if it is of a kind that has comments.
func remark(name, text, comment string) string {
	begin, ok := comments[path.Ext(name)]
	if !ok {
		return text
	}
	return strings.TrimSuffix(text, "\n") + "\n" + begin + comment + "\n"
}

// rolls reports whether a release replaces the pods of a service.
func (l *Life) rolls(service string) bool {
	return slices.ContainsFunc(l.parts, func(p *part) bool { return p.service == service && p.rolls })
}
