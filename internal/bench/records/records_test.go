package records

import (
	"testing"

	"github.com/aiopslab/aiopslab/record/index"
)

// What is made can be read, and tells of runs that differ.
func TestFill(t *testing.T) {
	dir := t.TempDir()
	if err := Fill(dir, 3); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(dir, index.Options{})
	if err != nil || len(x.Runs) != 3 || len(x.Unreadable) != 0 {
		t.Fatalf("%+v, %v", x, err)
	}
	if a, b := x.Runs[0], x.Runs[1]; a.ID == b.ID || a.Class != "solved" || b.Class != "agent" || a.Steps != steps ||
		!a.Begun.Equal(Begun) {
		t.Errorf("%+v\n%+v", a, b)
	}
}
