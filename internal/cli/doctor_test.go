package cli

import (
	"slices"
	"testing"
)

// TestNeedOf: what a run on a cluster pulls is looked for, the load generator's image included.
func TestNeedOf(t *testing.T) {
	for registry, want := range map[string]string{"": "aiopslab/load:v1", "registry.example/lab": "registry.example/lab/aiopslab/load:v1"} {
		s := &State{registry: registry}
		need, err := needOf(s, "hotel-reservation")
		if err != nil {
			t.Fatal(err)
		}
		if len(need.Apps) != 1 || need.Apps[0].Name != "hotel-reservation" || len(need.Apps[0].Objects) == 0 {
			t.Errorf("the applications are %v", need.Apps)
		}
		if !slices.Contains(need.Images, want) {
			t.Errorf("%s is not among %q", want, need.Images)
		}
	}
}
