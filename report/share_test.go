package report

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestShare(t *testing.T) {
	// Low and high are those of Wilson's formula as others compute it, to three digits.
	for _, tt := range []struct {
		n, of     int
		low, high float64
	}{
		{0, 10, 0, 0.278}, {10, 10, 0.722, 1}, {7, 10, 0.397, 0.892}, {50, 100, 0.404, 0.596}, {1, 1, 0.207, 1}, {0, 0, 0, 1},
	} {
		s := NewShare(tt.n, tt.of)
		if math.Abs(s.Low-tt.low) > 5e-4 || math.Abs(s.High-tt.high) > 5e-4 {
			t.Errorf("%d of %d: %.3f to %.3f, want %.3f to %.3f", tt.n, tt.of, s.Low, s.High, tt.low, tt.high)
		}
	}
}

func TestShareHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.IntRange(1, 10000).Draw(t, "of")
		n := rapid.IntRange(0, of).Draw(t, "n")
		s, mirror := NewShare(n, of), NewShare(of-n, of)
		const slack = 1e-9 // of floating point
		if s.Low < 0 || s.Low > s.Value+slack || s.Value > s.High+slack || s.High > 1 {
			t.Errorf("%+v", s)
		}
		if math.Abs(s.Low-(1-mirror.High)) > slack {
			t.Errorf("%+v is not the mirror of %+v", s, mirror)
		}
		if more := NewShare(10*n, 10*of); more.High-more.Low > s.High-s.Low+slack {
			t.Errorf("more runs make it less sure: %+v, %+v", s, more)
		}
	})
}
