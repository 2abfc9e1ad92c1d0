package report

import (
	"math"
	"testing"
)

// Two problems with five tries each, of which two and five were solved, and one that was tried once.
func TestTries(t *testing.T) {
	var b Builder
	for _, r := range ran("a", "ssaaasssss"+"a", 5, 1) {
		b.Add(r)
	}
	r := b.Report()
	if len(r.Tries) != 1 {
		t.Fatalf("%+v", r.Tries)
	}
	got := r.Tries[0]
	if got.Problems != 2 || len(got.At) != 5 || len(got.All) != 5 {
		t.Fatalf("%+v", got)
	}
	for _, tt := range []struct {
		what      string
		got, want float64
	}{
		{"pass@1", got.At[0], 0.7},
		{"pass@2", got.At[1], (0.7 + 1) / 2},
		{"pass^2", got.All[1], (0.1 + 1) / 2},
		{"pass^5", got.All[4], 0.5},
	} {
		if math.Abs(tt.got-tt.want) > 1e-12 {
			t.Errorf("%s is %v, want %v", tt.what, tt.got, tt.want)
		}
	}
	// Eleven runs of three problems are not worth eleven problems.
	alike, apart := r.Overall[0].Accuracy, NewShare(7, 11)
	if alike.Value != apart.Value || alike.High-alike.Low <= apart.High-apart.Low {
		t.Errorf("%+v, want a wider interval than %+v", alike, apart)
	}
}
