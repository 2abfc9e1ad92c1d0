package toll

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/record"
	"github.com/aiopslab/aiopslab/session"
)

const key = "-0123456789abcdef"

// leave writes a record, and its session file if it is whole.
func leave(t *testing.T, file, problem string, class session.Class, whole bool) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	l, cerr := record.Create(file+".jsonl", record.Run{ID: "x", Agent: "oracle"})
	if err = errors.Join(err, cerr); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		l.Append(record.ProblemEvent, map[string]any{"id": problem, "seed": 1}),
		l.Append(record.VerdictEvent, session.Verdict{Class: class}), l.Close())
	if whole {
		err = errors.Join(err, os.WriteFile(file+".json", []byte("{}"), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestToll(t *testing.T) {
	const running = ".running/1/"
	move := func(t *testing.T, dir, from, to string) {
		for _, end := range []string{".json", ".jsonl"} {
			if err := os.Rename(filepath.Join(dir, from+end), filepath.Join(dir, to+end)); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(t *testing.T, dir, file string) {
		if err := os.Remove(filepath.Join(dir, file+".jsonl")); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		// before the look, and after it
		before, after func(t *testing.T, dir string)
		want          Toll
	}{
		{
			"all is well",
			func(t *testing.T, dir string) { leave(t, filepath.Join(dir, running+"a"), "p", session.Solved, true) },
			func(t *testing.T, dir string) {
				move(t, dir, running+"a", "a"+key)
				leave(t, filepath.Join(dir, "b"+key), "q", session.AgentFailed, true)
			},
			Toll{},
		},
		{
			"a finished run that nobody took is run again",
			func(t *testing.T, dir string) { leave(t, filepath.Join(dir, running+"a"), "p", session.Solved, true) },
			func(t *testing.T, dir string) {
				remove(t, dir, running+"a")
				leave(t, filepath.Join(dir, "c"+key), "p", session.Solved, true)
				leave(t, filepath.Join(dir, "b"+key), "q", session.Solved, true)
			},
			Toll{Lost: 1, Again: 1},
		},
		{
			"one that was taken is gone",
			func(t *testing.T, dir string) { leave(t, filepath.Join(dir, "a"+key), "p", session.Solved, true) },
			func(t *testing.T, dir string) {
				remove(t, dir, "a"+key)
				leave(t, filepath.Join(dir, "b"+key), "q", session.Solved, true)
			},
			Toll{Lost: 1, Absent: 1},
		},
		{
			"one is there twice",
			func(t *testing.T, dir string) { leave(t, filepath.Join(dir, "a"+key), "p", session.Solved, true) },
			func(t *testing.T, dir string) {
				leave(t, filepath.Join(dir, "c"+key), "p", session.Solved, true)
				leave(t, filepath.Join(dir, "b"+key), "q", session.Solved, true)
			},
			Toll{Again: 1, Twice: 1},
		},
		{
			"what says nothing, or was cut off, may be run again",
			func(t *testing.T, dir string) {
				leave(t, filepath.Join(dir, running+"a"), "p", session.Infra, true)
				leave(t, filepath.Join(dir, ".running/2/b"), "q", session.Solved, false)
			},
			func(t *testing.T, dir string) {
				move(t, dir, running+"a", "a"+key)
				remove(t, dir, ".running/2/b")
				leave(t, filepath.Join(dir, "c"+key), "p", session.Solved, true)
				leave(t, filepath.Join(dir, "d"+key), "q", session.Solved, true)
			},
			Toll{},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, s := t.TempDir(), &Seen{}
			tt.before(t, dir)
			if err := s.Look(dir); err != nil {
				t.Fatal(err)
			}
			tt.after(t, dir)
			got, err := s.Toll(dir, 2)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

// TestQuiet: who has the folder is waited for.
func TestQuiet(t *testing.T) {
	dir := t.TempDir()
	if err := Quiet(dir, 0); err != nil {
		t.Error(err)
	}
	if err := Quiet(filepath.Join(dir, "none"), 0); err == nil {
		t.Error("a folder that is not there is quiet")
	}
}
