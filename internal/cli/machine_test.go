package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/aiopslab/aiopslab/cloud/kube"
)

func TestAvailableMemory(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  int64 // MB; -1 if it is not known
	}{
		"nothing known": {nil, -1},
		"a machine":     {map[string]string{"proc/meminfo": "MemTotal:  8192 kB\nMemAvailable:  4096 kB\n", "proc/self/cgroup": "0::/\n"}, 4},
		"a container": {map[string]string{
			"proc/meminfo": "MemAvailable: 99999 kB\n", "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "10485760\n",
			"sys/fs/cgroup/memory.current": "4194304\n", "sys/fs/cgroup/memory.stat": "anon 1\ninactive_file 1048576\nx 1\n",
		}, 7},
		"no limit": {map[string]string{
			"proc/meminfo": "MemAvailable: 2048 kB\n", "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
		}, 2},
		"the limit of a group above": {map[string]string{
			"proc/meminfo": "MemAvailable: 99999 kB\n", "proc/self/cgroup": "3:cpu:/x\n0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "9999999999\n", "sys/fs/cgroup/a/memory.max": "3145728\n",
		}, 3},
		"more than the limit": {map[string]string{
			"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "5\n", "sys/fs/cgroup/a/memory.current": "9\n",
		}, 0},
	} {
		files := fstest.MapFS{}
		for file, text := range test.files {
			files[file] = &fstest.MapFile{Data: []byte(text)}
		}
		got, known := availableMemory(files)
		if got >>= 20; known != (test.want >= 0) || known && got != test.want {
			t.Errorf("%s: %d MB, known %v", name, got, known)
		}
	}
}

func TestMachineFindings(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		found kube.Finding
		want  kube.Level
		text  string
	}{
		{checkSpace(dir), kube.OK, "has room"},
		{checkSpace(filepath.Join(dir, "absent")), kube.Problem, "no such file or directory. Choose another directory with AIOPSLAB_TMPDIR."},
		{checkMemory(8<<30, true), kube.OK, "8192 MB can be had"},
		{checkMemory(700<<20, true), kube.Warning, "700 MB can be had, and an environment may take 1024. Run one at a time."},
		{checkMemory(100<<20, true), kube.Problem, "100 MB can be had, and an environment takes more than 512. End"},
		{checkMemory(0, false), kube.Warning, "not known"},
		{checkProcessors(4), kube.OK, "4, for"},
		{checkProcessors(1), kube.Warning, "one"},
		{checkConfinement(""), kube.OK, "can be confined"},
		{checkConfinement("unconfined: no Landlock"), kube.Warning, "unconfined: no Landlock. Their verdicts say so"},
		{checkWorlds(""), kube.OK, "not kept"},
		{checkWorlds(filepath.Join(dir, "a", "b")), kube.OK, "are kept in " + dir},
		{checkWorlds(filepath.Join(file, "b")), kube.Warning, "cannot be kept in " + file + "/b: "},
	} {
		line := listFindings(nil).line(test.found)
		if test.found.Level != test.want || !strings.Contains(line, test.text) {
			t.Errorf("want %s and %q, got: %s", test.want, test.text, line)
		}
	}
}
