package shell

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/shell/internal/shelltest"
)

// toolTest is a command line, run in a directory with some files, and what comes of it.
type toolTest struct {
	cmd   string
	stdin string
	out   string
	err   string
	code  int
	// own marks what GNU's tools do differently, so that the host's are no judge.
	own bool
}

// toolFiles are in the directory that commands run in.
var toolFiles = map[string]string{
	"abc":      "a\nb\nc\n",
	"nums":     "10\n9\n2\n1\n",
	"fruit":    "banana 3\napple 10\ncherry 2\nApple 1\n",
	"words":    "the quick brown fox\njumps over\nthe lazy dog\n",
	"passwd":   "root:x:0:0:root:/root:/bin/sh\nbin:x:1:1::/bin:\n",
	"log":      "10:00 INFO start\n10:01 ERROR disk full\n10:02 INFO retry\n10:03 ERROR disk full\n10:04 WARN slow\n",
	"csv":      "name,age,city\nann,30,oslo\nbob,25,rome\n",
	"nonl":     "x\ny",
	"empty":    "",
	"blank":    "a\n\n\nb\n",
	"dup":      "a\na\nb\nc\nc\nc\n",
	"other":    "a\nB\nc\nd\n",
	"tabs":     "1\tone\n2\ttwo\n",
	"d/one":    "needle in one\n",
	"d/two":    "nothing\nneedle two\n",
	"d/e/deep": "deep needle\n",
	"json":     `{"level":"error","ms":12}` + "\n" + `{"level":"info","ms":7}` + "\n",
}

func runTools(t *testing.T, tests []toolTest) {
	runToolsIn(t, tests, false)
	// The host's tools are asked on demand only: they are not the same everywhere.
	if os.Getenv("SHELL_TEST_HOST") == "" {
		return
	}
	for _, tt := range tests {
		if tt.own || tt.err != "" {
			continue
		}
		t.Run("host/"+tt.cmd, func(t *testing.T) { compareWithHost(t, tt) })
	}
}

// runToolsIn runs commands, with interpreters in cells or not.
func runToolsIn(t *testing.T, tests []toolTest, cells bool) {
	for _, tt := range tests {
		t.Run(tt.cmd, func(t *testing.T) {
			t.Parallel()
			m := shelltest.New(t, Tools())
			m.Procs.Cells = cells
			for name, content := range toolFiles {
				m.Write("/w/"+name, content)
			}
			m.Dir = "/w"
			got := m.RunWith(tt.stdin, "sh", "-c", tt.cmd)
			want := shelltest.Result{Stdout: tt.out, Stderr: tt.err, Code: tt.code}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\n%s", tt.cmd, diff)
			}
		})
	}
}

// compareWithHost wants the host's own tools to agree with what the test expects.
func compareWithHost(t *testing.T, tt toolTest) {
	dir := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(toolFiles)) {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(toolFiles[name]), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("bash", "-c", tt.cmd)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(tt.stdin)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var out bytes.Buffer
	cmd.Stdout = &out
	cmd.Run()
	if diff := cmp.Diff(tt.out, out.String()); diff != "" {
		t.Errorf("the host disagrees: %s", diff)
	}
	if code := cmd.ProcessState.ExitCode(); code != tt.code {
		t.Errorf("the host's exit code is %d, ours %d", code, tt.code)
	}
}
