package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/record/index"
)

// TestKnown: a comparison is the same whether records are read for it, or the index is asked that has read them before.
func TestKnown(t *testing.T) {
	t.Chdir(t.TempDir())
	var files []string
	for _, a := range some {
		files = append(files, a.write(t))
	}
	var read, known []*Run
	for r, err := range Read(files) {
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, r)
	}
	x, err := index.Open(".", index.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range x.Runs {
		r, err := Known(&x.Runs[i])
		if err != nil {
			t.Fatal(err)
		}
		known = append(known, r)
	}
	sides := func(all []*Run) (s [2][]*Run) {
		for _, r := range all {
			for i, agent := range []string{"react", "flash"} {
				if r.Agent == agent || i == 1 && r.Agent == "react" { // So there are pairs.
					s[i] = append(s[i], r)
				}
			}
		}
		return s
	}
	a, b := sides(read), sides(known)
	want, got := Compare("react", "both", a[0], a[1]), Compare("react", "both", b[0], b[1])
	if diff := cmp.Diff(want, got); diff != "" || want.Paired.Of() == 0 || len(want.Measures) < 5 {
		t.Errorf("%+v\n%s", want, diff)
	}
	for i := range read {
		if read[i].Contestant() != known[i].Contestant() || read[i].File != known[i].File {
			t.Errorf("%+v is known as %+v", read[i], known[i])
		}
	}
	if r, err := Known(&index.Run{Class: "solved"}); err == nil {
		t.Errorf("a run of no problem: %+v", r)
	}
}
