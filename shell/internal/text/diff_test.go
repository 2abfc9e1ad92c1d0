package text

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestDiffLines applies what diffLines finds, and wants to get from one text to the other.
func TestDiffLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 12)
		x, y := text.Draw(t, "x"), text.Draw(t, "y")
		var gotX, gotY []string
		changes := 0
		for _, e := range diffLines(x, y) {
			if e.op != '+' {
				gotX = append(gotX, x[e.a])
			}
			if e.op != '-' {
				gotY = append(gotY, y[e.b])
			}
			if e.op == ' ' && x[e.a] != y[e.b] {
				t.Fatalf("%q is not %q", x[e.a], y[e.b])
			}
			if e.op != ' ' {
				changes++
			}
		}
		if !slices.Equal(gotX, x) || !slices.Equal(gotY, y) {
			t.Fatalf("%v to %v became %v to %v", x, y, gotX, gotY)
		}
		if want := len(x) + len(y) - 2*common(x, y); changes != want {
			t.Fatalf("%d changes from %v to %v, %d would do", changes, x, y, want)
		}
	})
}

// common is the length of the longest common subsequence.
func common(x, y []string) int {
	table := make([][]int, len(x)+1)
	for i := range table {
		table[i] = make([]int, len(y)+1)
	}
	for i, a := range x {
		for j, b := range y {
			if a == b {
				table[i+1][j+1] = table[i][j] + 1
			} else {
				table[i+1][j+1] = max(table[i][j+1], table[i+1][j])
			}
		}
	}
	return table[len(x)][len(y)]
}
