package noise

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/app/astronomy"
	"github.com/aiopslab/aiopslab/fault"
)

// dressed is a service's Deployment as a release with a seed has it. Change is what a fault makes of it, or nil.
func dressed(t *testing.T, a *app.App, name string, seed uint64, change func(spec map[string]any) error) (was, is *unstructured.Unstructured) {
	t.Helper()
	parts, err := partsOf(a)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(parts, func(p *part) bool { return p.service == name })
	was = parts[i].deployment
	is = was.DeepCopy()
	if change != nil {
		spec, _, err := unstructured.NestedMap(is.Object, "spec", "template", "spec")
		if err == nil {
			err = change(spec)
		}
		if err == nil {
			err = unstructured.SetNestedMap(is.Object, spec, "spec", "template", "spec")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	l := &Life{Env: &fault.Env{App: a}, Seed: seed, build: fmt.Sprintf("%08x", seed), parts: parts}
	l.dress(is)
	return was, is
}

// A service is released with differences, the same for one seed and others for another, besides the build. If a fault
// has made one, it is one of them, and stays.
func TestDifferencesOfAService(t *testing.T) {
	counts := map[bool]map[int]int{true: {}, false: {}}
	for seed := range uint64(200) {
		for _, faulty := range []bool{false, true} {
			change := func(spec map[string]any) error { return fault.SetContainer(spec, "workingDir", "/wrong") }
			if !faulty {
				change = nil
			}
			was, is := dressed(t, shop(), "cart", seed, change)
			if _, again := dressed(t, shop(), "cart", seed, change); !cmp.Equal(is.Object, again.Object) {
				t.Fatalf("seed %d has two releases", seed)
			}
			if faulty != strings.Contains(fmt.Sprint(is.Object), "/wrong") {
				t.Fatalf("seed %d: %v", seed, is.Object)
			}
			changed := templatePaths(t, was, is)
			counts[faulty][len(changed)]++
			if was.GetKind() != is.GetKind() || was.GetName() != is.GetName() || !cmp.Equal(was.Object["spec"].(map[string]any)["selector"], is.Object["spec"].(map[string]any)["selector"]) {
				t.Fatal(cmp.Diff(was.Object, is.Object))
			}
		}
	}
	if diff := cmp.Diff(counts[false], counts[true]); diff != "" || len(counts[true]) != 3 {
		t.Errorf("by how much differs, without a fault and with one: %s", diff)
	}
}

// templatePaths are where the templates of two Deployments differ, but for the build: a container's field, or one of
// the pod's.
func templatePaths(t *testing.T, was, is *unstructured.Unstructured) (list []string) {
	t.Helper()
	flat := func(u *unstructured.Unstructured) map[string]any {
		template, _, _ := unstructured.NestedMap(u.DeepCopy().Object, "spec", "template")
		unstructured.RemoveNestedField(template, "metadata", "annotations", buildAnnotation)
		spec := template["spec"].(map[string]any)
		spec["container"] = spec["containers"].([]any)[0]
		delete(spec, "containers")
		if annotations, _, _ := unstructured.NestedMap(template, "metadata", "annotations"); len(annotations) == 0 {
			unstructured.RemoveNestedField(template, "metadata", "annotations")
		}
		return template
	}
	return paths(flat(was), flat(is), "")
}

// Flags that no program asks for are on and off in the file of an application's flags, beside its own, which stay.
func TestToggle(t *testing.T) {
	parts, err := partsOf(astronomy.App())
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, p := range parts {
		for _, u := range p.objects {
			if f, _, _ := unstructured.NestedString(u.Object, "data", "demo.flagd.json"); f != "" {
				text = f
			}
		}
	}
	type file struct {
		Schema string                    `json:"$schema"`
		Flags  map[string]map[string]any `json:"flags"`
	}
	var was file
	if err := json.Unmarshal([]byte(text), &was); err != nil || len(was.Flags) == 0 {
		t.Fatal(err)
	}
	states := map[any]int{}
	for seed := range uint64(50) {
		var is file
		if err := json.Unmarshal([]byte(toggle(rand.New(rand.NewPCG(seed, 1)), text)), &is); err != nil {
			t.Fatal(err)
		}
		for _, name := range toggles {
			if f := is.Flags[name]; f != nil {
				states[f["defaultVariant"]]++
				delete(is.Flags, name)
			}
		}
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("its own flags: %s", diff)
		}
	}
	if len(states) != 2 || states["on"] < 30 || states["off"] < 30 {
		t.Errorf("flags by what they are: %v", states)
	}
	for _, other := range []string{`{"flags": {}}`, `{"in": 64}`, `no JSON "flags": {"a"`, ""} {
		if got := toggle(rand.New(rand.NewPCG(1, 1)), other); got != other {
			t.Errorf("%q became %q", other, got)
		}
	}
}

// A Service names a port of its pods that it has the number of, in some releases. A port that there is none of stays.
func TestSpellPorts(t *testing.T) {
	a := astronomy.App()
	parts, err := partsOf(a)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(parts, func(p *part) bool { return p.service == "cart" })
	j := slices.IndexFunc(parts[i].objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "Service" })
	seen := map[any]int{}
	for seed := range uint64(40) {
		for _, port := range []int64{8080, 9999} {
			l := &Life{Env: &fault.Env{App: a}, Seed: seed, build: "1", parts: parts}
			u := parts[i].objects[j].DeepCopy()
			ports := []any{map[string]any{"port": int64(8080), "targetPort": port}}
			if err := unstructured.SetNestedSlice(u.Object, ports, "spec", "ports"); err != nil {
				t.Fatal(err)
			}
			l.dress(u)
			ports, _, _ = unstructured.NestedSlice(u.Object, "spec", "ports")
			seen[ports[0].(map[string]any)["targetPort"]]++
		}
	}
	if len(seen) != 3 || seen[int64(9999)] != 40 || seen["tcp-service"] < 8 || seen[int64(8080)] < 8 {
		t.Errorf("ports %v", seen)
	}
}
