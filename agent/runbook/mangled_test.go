package runbook

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestMangled goes through recorded incidents in which observations are cut off, mixed up or damaged.
// Whatever the agent makes of that, it ends with a submission.
func TestMangled(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			mangled := make([]txtar.File, len(a.Files))
			for i, f := range a.Files {
				mangled[i] = txtar.File{Name: f.Name, Data: mangle(r, f.Data, a.Files)}
			}
			got := play(t, tasks[r.IntN(len(tasks))], mangled)
			if !strings.Contains(got, "submit(") {
				t.Errorf("no submission in %s", got)
			}
		}
	}
}

// mangle does one thing to an observation, or nothing.
func mangle(r *rand.Rand, data []byte, others []txtar.File) []byte {
	if len(data) == 0 {
		return data
	}
	switch r.IntN(6) {
	case 0:
		return data[:r.IntN(len(data))]
	case 1:
		return data[r.IntN(len(data)):]
	case 2:
		return others[r.IntN(len(others))].Data
	case 3:
		b := []byte(string(data))
		for range 1 + len(b)/50 {
			b[r.IntN(len(b))] = byte(r.IntN(256))
		}
		return b
	case 4:
		return []byte("Error: the command timed out")
	}
	return data
}
