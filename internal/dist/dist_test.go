package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

var at = time.Date(2026, time.May, 4, 3, 2, 1, 0, time.UTC)

// stamp is what a program of a release says of itself, with some of it changed.
func stamp(arch string, change ...string) *debug.BuildInfo {
	settings := map[string]string{
		"GOOS": "linux", "GOARCH": arch, "-trimpath": "true", "vcs.time": at.Format(time.RFC3339), "vcs.modified": "false",
	}
	for i := 0; i < len(change); i += 2 {
		settings[change[i]] = change[i+1]
	}
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: module, Version: "v1.2.3-rc.1"},
		Deps: []*debug.Module{
			{Path: "example.com/b", Version: "v2.0.0+incompatible", Sum: "h1:b"},
			{Path: "example.com/a", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/c", Version: "v1.1.0"}},
		},
	}
	for key, value := range settings {
		info.Settings = append(info.Settings, debug.BuildSetting{Key: key, Value: value})
	}
	return info
}

func made(t *testing.T) *release {
	t.Helper()
	r := &release{builds: map[string]map[string]*debug.BuildInfo{}}
	for _, arch := range []string{"arm64", "amd64"} {
		for _, program := range []string{product, container} {
			if err := r.add(arch, program, stamp(arch)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r
}

// inputs are small stand-ins for what a release is made of, new ones each time.
func inputs(t *testing.T) files {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"LICENSE": "be nice\n", "README.md": "# Lab\n", "amd64/aiopslab": "the lab", "amd64/labapp": "an app",
		"arm64/aiopslab": "the lab, too", "arm64/labapp": "an app, too", "aiopslab.bash": "complete\n",
		"_aiopslab": "#compdef\n", "aiopslab.fish": "complete -c\n", "man/aiopslab.1": ".TH LAB 1\n", "man/aiopslab-run.1": ".TH RUN 1\n",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return files{root: dir, programs: dir, docs: dir}
}

// TestSameBytes makes a release twice, of files that are the same and newer.
func TestSameBytes(t *testing.T) {
	var dirs []string
	var names []string
	for range 2 {
		out := t.TempDir()
		list, err := write(made(t), inputs(t), out)
		if err != nil {
			t.Fatal(err)
		}
		if err := writeSums(out, list); err != nil {
			t.Fatal(err)
		}
		dirs, names = append(dirs, out), append(list, sumsFile)
	}
	want := []string{
		"aiopslab_1.2.3-rc.1_linux_amd64.tar.gz", "aiopslab_1.2.3~rc.1_amd64.deb", "aiopslab_1.2.3-rc.1_linux_amd64.cdx.json",
		"aiopslab_1.2.3-rc.1_linux_arm64.tar.gz", "aiopslab_1.2.3~rc.1_arm64.deb", "aiopslab_1.2.3-rc.1_linux_arm64.cdx.json",
		"SHA256SUMS",
	}
	if !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
	for _, name := range names {
		a, err := os.ReadFile(filepath.Join(dirs[0], name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dirs[1], name))
		if err != nil || len(a) == 0 || !bytes.Equal(a, b) {
			t.Errorf("%s differs: %v", name, err)
		}
	}
	if sha256sum, err := exec.LookPath("sha256sum"); err == nil {
		c := exec.Command(sha256sum, "--strict", "-c", sumsFile)
		c.Dir = dirs[0]
		if text, err := c.CombinedOutput(); err != nil || bytes.Count(text, []byte(": OK\n")) != 6 {
			t.Errorf("%s, %v", text, err)
		}
	}
}

func TestArchive(t *testing.T) {
	var b bytes.Buffer
	if err := writeArchive(&b, made(t), inputs(t), "arm64", "lab"); err != nil {
		t.Fatal(err)
	}
	want := `drwxr-xr-x lab/
-rw-r--r-- lab/LICENSE "be nice\n"
-rw-r--r-- lab/README.md "# Lab\n"
-rwxr-xr-x lab/aiopslab "the lab, too"
drwxr-xr-x lab/completions/
-rw-r--r-- lab/completions/_aiopslab "#compdef\n"
-rw-r--r-- lab/completions/aiopslab.bash "complete\n"
-rw-r--r-- lab/completions/aiopslab.fish "complete -c\n"
-rwxr-xr-x lab/labapp "an app, too"
drwxr-xr-x lab/man/
drwxr-xr-x lab/man/man1/
-rw-r--r-- lab/man/man1/aiopslab-run.1 ".TH RUN 1\n"
-rw-r--r-- lab/man/man1/aiopslab.1 ".TH LAB 1\n"
`
	if got := listing(t, &b); got != want {
		t.Errorf("got\n%s", got)
	}
}

// listing shows what is in an archive, in order.
func listing(t *testing.T, r io.Reader) string {
	t.Helper()
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for in := tar.NewReader(unpacked); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "root" || !h.ModTime.Equal(at) {
			t.Errorf("%s: %s %d:%d, %v", h.Name, h.Uname, h.Uid, h.Gid, h.ModTime)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(h.FileInfo().Mode().String() + " " + h.Name)
		if h.Typeflag == tar.TypeReg {
			quoted, err := json.Marshal(string(content))
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString(" " + string(quoted))
		}
		text.WriteString("\n")
	}
}

// TestPackage has dpkg read a package.
func TestPackage(t *testing.T) {
	dpkg, err := exec.LookPath("dpkg-deb")
	if err != nil {
		t.Skip("there is no dpkg-deb")
	}
	file := filepath.Join(t.TempDir(), "lab.deb")
	err = create(file, func(w io.Writer) error { return writePackage(w, made(t), inputs(t), "amd64") })
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		how  string
		want []string
	}{
		{"--field", []string{"Package: aiopslab\n", "Version: 1.2.3~rc.1\n", "Architecture: amd64\n", "Installed-Size: 1\n"}},
		{"--contents", []string{
			"-rwxr-xr-x root/root         7 2026-05-04 03:02 ./usr/bin/aiopslab\n", "./usr/share/man/man1/aiopslab-run.1.gz\n",
			"./usr/share/bash-completion/completions/aiopslab\n", "./usr/share/zsh/vendor-completions/_aiopslab\n",
			"./usr/share/fish/vendor_completions.d/aiopslab.fish\n", "./usr/share/doc/aiopslab/copyright\n",
		}},
	} {
		c := exec.Command(dpkg, tt.how, file)
		c.Env = []string{"TZ=UTC", "PATH=" + os.Getenv("PATH")}
		text, err := c.CombinedOutput()
		for _, want := range tt.want {
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("dpkg-deb %s: no %q: %v\n%s", tt.how, want, err, text)
			}
		}
	}
	root := t.TempDir()
	if text, err := exec.Command(dpkg, "--extract", file, root).CombinedOutput(); err != nil {
		t.Fatalf("%s, %v", text, err)
	}
	if got, err := os.ReadFile(filepath.Join(root, "usr/bin/labapp")); err != nil || string(got) != "an app" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestModules(t *testing.T) {
	var b bytes.Buffer
	if err := writeModules(&b, made(t), "amd64"); err != nil {
		t.Fatal(err)
	}
	var got struct {
		BomFormat string
		Metadata  struct {
			Timestamp string
			Component struct{ Name, Version, Purl string }
		}
		Components []struct{ Purl string }
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	var purls []string
	for _, c := range got.Components {
		purls = append(purls, c.Purl)
	}
	want := []string{
		"pkg:golang/std@1.26.8", "pkg:golang/example.com/b@v2.0.0%2Bincompatible", "pkg:golang/example.com/c@v1.1.0",
	}
	if !slices.Equal(purls, want) {
		t.Errorf("%v", purls)
	}
	c := got.Metadata.Component
	if got.BomFormat != "CycloneDX" || got.Metadata.Timestamp != "2026-05-04T03:02:01Z" || c.Name != product || c.Version != "v1.2.3-rc.1" {
		t.Errorf("%+v", got)
	}
}

// What others could not build again is no release.
func TestRefused(t *testing.T) {
	for want, info := range map[string]*debug.BuildInfo{
		"not committed":   stamp("amd64", "vcs.modified", "true"),
		"of which commit": stamp("amd64", "vcs.time", ""),
		"-trimpath":       stamp("amd64", "-trimpath", ""),
		"linux/arm64":     stamp("arm64"),
		"and another is":  stamp("amd64", "vcs.time", at.Add(time.Hour).Format(time.RFC3339)),
	} {
		r := made(t)
		if err := r.add("amd64", product, info); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := readRelease(t.TempDir()); err == nil {
		t.Error("nothing is a release")
	}
}

// A version before a release is older than it, also for Debian.
func TestDebianVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3-rc.1": "1.2.3~rc.1",
		"v0.0.0-20261117112233-0123456789ab": "0.0.0~20261117112233.0123456789ab",
	} {
		if got := (&release{version: version}).debian(); got != want {
			t.Errorf("%s is %s", version, got)
		}
	}
}
