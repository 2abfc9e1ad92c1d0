package stats

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What R says: quantile(c(1, 2, 4, 8, 16), c(0, .1, .5, .9, 1)), whose default is definition 7.
func TestQuantile(t *testing.T) {
	sorted := []float64{1, 2, 4, 8, 16}
	for p, want := range map[float64]float64{0: 1, 0.1: 1.4, 0.5: 4, 0.9: 12.8, 1: 16} {
		if got := Quantile(sorted, p); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v: %v, want %v", p, got, want)
		}
	}
	if got := Quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("of nothing: %v", got)
	}
}

func TestSpreadOf(t *testing.T) {
	values := []float64{16, 1, 4, 2, 7}
	want := &Spread{Of: 5, Mean: 6, Least: 1, P10: 1.4, Median: 4, P90: 12.4, Most: 16}
	if diff := cmp.Diff(want, SpreadOf(values)); diff != "" {
		t.Error(diff)
	}
	if values[0] != 16 {
		t.Error("the values were sorted in place")
	}
	if got := SpreadOf(nil); got != nil {
		t.Errorf("of nothing: %+v", got)
	}
}
