package campaign

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
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
