package campaign

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/aiopslab/aiopslab/campaign/local"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/session"
)

// What is packed comes out as it was; where there is nothing, nothing is packed.
func TestPack(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	want := map[string]string{"telemetry.json": "{}", "metrics/cpu.csv.gz": "cpu", "logs/a/b.csv.gz": ""}
	for name, text := range want {
		file := filepath.Join(from, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	data, err := Pack(from)
	if err == nil {
		err = unpack(data, to)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(os.DirFS(to), "telemetry.json", "metrics/cpu.csv.gz", "logs/a/b.csv.gz"); err != nil {
		t.Error(err)
	}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if data, err := Pack(filepath.Join(from, "nowhere")); data != nil || err != nil {
		t.Errorf("of nothing: %q, %v", data, err)
	}
}

// Whatever a pod hands out, nothing is written but files below the directory.
func TestUnpackHostile(t *testing.T) {
	for name, headers := range map[string][]tar.Header{
		"above":       {{Name: "../escaped", Typeflag: tar.TypeReg}},
		"absolute":    {{Name: "/escaped", Typeflag: tar.TypeReg}},
		"link":        {{Name: "link", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "link/escaped", Typeflag: tar.TypeReg}},
		"hard link":   {{Name: "link", Typeflag: tar.TypeLink, Linkname: "../outside"}},
		"twice":       {{Name: "a", Typeflag: tar.TypeReg}, {Name: "a", Typeflag: tar.TypeReg}},
		"device":      {{Name: "null", Typeflag: tar.TypeChar}},
		"above, dirs": {{Name: "../escaped", Typeflag: tar.TypeDir}},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			for _, h := range headers {
				if err := w.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			top := t.TempDir()
			dir := filepath.Join(top, "dir")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := unpack(b.Bytes(), dir); err == nil {
				t.Error("it is taken")
			}
			err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
				if strings.Contains(name, "escaped") || d.Type()&fs.ModeSymlink != 0 {
					t.Errorf("%s is there", name)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	if err := unpack([]byte("no archive"), t.TempDir()); err == nil {
		t.Error("what is no archive is taken")
	}
}

// The telemetry of a run that was killed before its record was written is not taken for that of the run that was.
func TestTelemetryOfAnotherTry(t *testing.T) {
	a, b := []byte("one record"), []byte("another record")
	if telemetryName(3, a) == telemetryName(3, b) {
		t.Error("a name does not tell of which record it is")
	}
	for _, r := range [][]byte{a, b} {
		if _, ok := recorded(telemetryName(3, r)); ok {
			t.Error("it passes for a record")
		}
	}
}

// Telemetry that is too large to be gathered is left behind, and the run is not lost for it.
func TestWorkerTelemetry(t *testing.T) {
	plan := somePlan(1)
	for _, c := range []struct {
		size    int
		files   int
		printed string
	}{
		{0, 1, "00000.jsonl recorded"},
		{10, 2, "00000.jsonl recorded"},
		{maxRecord + 1, 1, "the telemetry takes 64 MiB; there is room for 64: it is not kept"},
	} {
		x := newPod(t, plan, indexes{0})
		x.env.Vars[indexVariable] = "0"
		w := Worker{Run: func(_ context.Context, _ *kit.Env, _ *Plan, r local.Run) (left Leavings, err error) {
			left.Record = aRecord(t, r, session.Solved)
			if c.size > 0 {
				left.Telemetry = make([]byte, c.size)
			}
			return left, nil
		}}
		if code := x.run(t.Context(), w.Main); code != 0 || !strings.Contains(x.out.String(), c.printed) {
			t.Errorf("%d bytes: status %d: %s", c.size, code, x.out)
		}
		records := filepath.Join(x.dir, "records")
		if list, err := os.ReadDir(records); err != nil || len(list) != c.files {
			t.Errorf("%d bytes: kept are %v, %v", c.size, list, err)
		}
		if _, err := os.Stat(filepath.Join(records, RecordName(0))); err != nil {
			t.Errorf("%d bytes: %v", c.size, err)
		}
	}
}
