package runbook

import (
	"slices"
	"testing"
)

func TestConclude(t *testing.T) {
	// front calls middle, middle calls back and store, other calls store.
	calls := &system{calls: map[string][]string{"front": {"middle"}, "middle": {"back", "store"}, "other": {"store"}}}
	for _, c := range []struct {
		name string
		in   []finding
		want []string
	}{
		{"nothing", nil, nil},
		{"one symptom", []finding{{kind: failing, component: "middle"}}, []string{"middle"}},
		{"the deepest symptom", []finding{{kind: failing, component: "front"}, {kind: failing, component: "middle"}, {kind: failing, component: "back"}}, []string{"back"}},
		// Callers wait for a slow service, and fail when they give up: the service itself only is slow.
		{"slow below failing", []finding{{kind: failing, component: "front"}, {kind: networkFailing, component: "back"}}, []string{"back"}},
		{"configuration beats symptoms", []finding{{kind: silent, component: "middle"}, {kind: wrongPort, component: "back"}}, []string{"back"}},
		{"configuration of others beats symptoms", []finding{{kind: silent, component: "elsewhere"}, {kind: wrongPort, component: "back"}}, []string{"back"}},
		{"the best of one component", []finding{{kind: silent, component: "back"}, {kind: changed, component: "back"}, {kind: crashing, component: "back"}}, []string{"back"}},
		{"two causes", []finding{{kind: changed, component: "middle"}, {kind: scaledToZero, component: "back"}}, []string{"back", "middle"}},
		{"a store and its client", []finding{{kind: crashing, component: "middle"}, {kind: loginRefused, component: "store"}}, []string{"store"}},
		{"one disturbance of several", []finding{{kind: cpuStarved, component: "front"}, {kind: networkFailing, component: "back"}}, []string{"back"}},
		{"a killed container below a silent one", []finding{{kind: silent, component: "front"}, {kind: killed, component: "back"}}, []string{"back"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range conclude(c.in, calls.dependsOn) {
				got = append(got, f.component)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Every kind of finding has a rank and a meaning.
func TestKinds(t *testing.T) {
	for k := volumeUnbound; k <= slow; k++ {
		if rank[k] == 0 || causes[k] == (cause{}) {
			t.Errorf("kind %d: rank %d, cause %v", k, rank[k], causes[k])
		}
	}
}

// Calls may go round in circles.
func TestDependsOn(t *testing.T) {
	s := newSystem("n")
	s.called("a", "b")
	s.called("b", "a")
	s.called("b", "c")
	s.called("c", "c")
	if !s.dependsOn("a", "c") || s.dependsOn("c", "a") || s.dependsOn("a", "d") {
		t.Error("wrong dependencies")
	}
}
