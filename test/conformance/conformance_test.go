package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSelectGroups(t *testing.T) {
	if got, err := selectGroups(nil); err != nil || !slices.Equal(got, groups) {
		t.Errorf("no name: %v, %v; want all groups", got, err)
	}
	if got, err := selectGroups([]string{"sig-cli"}); err != nil || !slices.Equal(got, []string{"sig-cli"}) {
		t.Errorf("sig-cli: %v, %v", got, err)
	}
}

func TestUnknownGroup(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"sig-none"}, &stdout, &stderr); code != exitUsage {
		t.Errorf("exit status %d, want %d", code, exitUsage)
	}
	if got := stderr.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"sig-none"`) {
		t.Errorf("stderr is %q, want one line that names the group", got)
	}
}

func TestStamp(t *testing.T) {
	const want = "-X k8s.io/component-base/version.gitVersion=v1.37.1 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"
	if got := stamp("v1.37.1"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReadReport(t *testing.T) {
	const focus = `\[sig-cli\].*\[Conformance\]`
	spec := func(kind, text, state string) string {
		return `{"ContainerHierarchyTexts":["[sig-cli] Kubectl"],"LeafNodeType":"` + kind + `","LeafNodeText":"` + text + `","State":"` + state + `"}`
	}
	tests := []struct {
		name  string
		specs []string
		want  summary
		ok    bool
		err   string
	}{
		{name: "all pass", specs: []string{spec("It", "a [Conformance]", "passed")}, want: summary{passed: 1}, ok: true},
		// Ginkgo reports what the focus leaves out as skipped.
		{name: "others do not count", specs: []string{spec("It", "a [Conformance]", "passed"), spec("It", "b", "skipped")}, want: summary{passed: 1}, ok: true},
		{name: "a spec that skips itself has not passed", specs: []string{spec("It", "a [Conformance]", "passed"), spec("It", "b [Conformance]", "skipped")}, want: summary{passed: 1, skipped: 1}},
		{
			name: "failures by name", specs: []string{spec("It", "b [Conformance]", "timedout"), spec("It", "a [Conformance]", "failed"), spec("It", "c [Conformance]", "panicked")},
			want: summary{failed: []string{"[sig-cli] Kubectl a [Conformance]", "[sig-cli] Kubectl b [Conformance]", "[sig-cli] Kubectl c [Conformance]"}},
		},
		{name: "nothing ran", want: summary{}},
		{name: "the suite itself fails", specs: []string{spec("SynchronizedBeforeSuite", "", "failed")}, err: "SynchronizedBeforeSuite failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.json")
			if err := os.WriteFile(file, []byte(`[{"SpecReports":[`+strings.Join(tt.specs, ",")+`]}]`), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readReport(file, focus)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error is %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.passed != tt.want.passed || got.skipped != tt.want.skipped || !slices.Equal(got.failed, tt.want.failed) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if got.ok() != tt.ok {
				t.Errorf("ok is %t", got.ok())
			}
		})
	}
}
