package agnhost

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
)

// volume mounts a file system on a machine.
func volume(t *testing.T, m *kittest.Machine, at string, opts vfs.Options) {
	t.Helper()
	if err := m.Namespace.Mount(at, vfs.NewTree(opts), vfs.MountOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestMounttest(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
		code int
	}{
		{"file system in memory", []string{"--fs_type=/test-volume"}, "mount type of \"/test-volume\": tmpfs\n", 0},
		{"another file system", []string{"--fs_type=/"}, "mount type of \"/\": overlay\n", 0},
		{"hyphens", []string{"--fs-type=/test-volume"}, "mount type of \"/test-volume\": tmpfs\n", 0},
		{
			"new file",
			[]string{"--fs_type=/test-volume", "--new_file_0666=/test-volume/f", "--file_perm=/test-volume/f", "--file_mode=/test-volume/f"},
			`mount type of "/test-volume": tmpfs
content of file "/test-volume/f": mount-tester new file

mode of file "/test-volume/f": -rw-rw-rw-
perms of file "/test-volume/f": -rw-rw-rw-
`, 0,
		},
		{"directory", []string{"--file_perm=/test-volume", "--file_mode=/test-volume"}, "mode of file \"/test-volume\": drwxrwxrwx\nperms of file \"/test-volume\": -rwxrwxrwx\n", 0},
		{"owner", []string{"--file_owner=/etc/owned"}, "owner UID of \"/etc/owned\": 1001\nowner GID of \"/etc/owned\": 2002\n", 0},
		{"content", []string{"--file_content=/etc/owned"}, "content of file \"/etc/owned\": data\n\n", 0},
		{"nothing to do", nil, "", 0},
		{
			"missing file",
			[]string{"--file_mode=/none", "--file_owner=/none", "--file_content=/none", "--fs_type=/none"},
			"", 1,
		},
		{"missing directory", []string{"--new_file_0644=/none/f"}, "", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := pod(t)
			volume(t, m, "/test-volume", vfs.Options{Type: "tmpfs", Mode: 0o777})
			m.Write("/etc/owned", "data\n")
			if err := m.Env().FS.Chown("/etc/owned", 1001, 2002); err != nil {
				t.Fatal(err)
			}
			stdout, stderr, code := output(m, append([]string{"mounttest"}, tt.args...)...)
			if diff := cmp.Diff(tt.want, stdout); diff != "" || code != tt.code {
				t.Errorf("exit %d, want %d (-want +got):\n%s%s", code, tt.code, diff, stderr)
			}
		})
	}
}

func TestMounttestObeysPermissions(t *testing.T) {
	m := pod(t)
	volume(t, m, "/test-volume", vfs.Options{Type: "tmpfs", Mode: 0o755})
	m.User = kit.User{UID: 1001, GID: 123}
	_, stderr, code := output(m, "mounttest", "--new_file_0644=/test-volume/f")
	if want := "Error: new_file_0644: open /test-volume/f: permission denied\n"; stderr != want || code != 1 {
		t.Errorf("exit %d, printed %q", code, stderr)
	}
}

func TestMounttestKeepsTheModeOfWhatExists(t *testing.T) {
	m := pod(t)
	m.Write("/etc/f", "old")
	if stdout, _, _ := output(m, "mounttest", "--new_file_0777=/etc/f", "--file_perm=/etc/f"); !strings.HasSuffix(stdout, "perms of file \"/etc/f\": -rw-r--r--\n") {
		t.Error(stdout)
	}
}

// A projected volume changes while the program looks at it.
func TestMounttestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := pod(t)
		r := start(m, "mounttest", "--break_on_expected_content=false", "--retry_time=10", "--file_content_in_loop=/etc/data-1")
		time.Sleep(3 * time.Second)
		m.Write("/etc/data-1", "value-1")
		time.Sleep(4 * time.Second)
		m.Write("/etc/data-1", "value-2")
		if code := r.Wait(); code != 0 {
			t.Errorf("exit %d", code)
		}
		want := "Error reading file /etc/data-1: open /etc/data-1: no such file or directory\n"
		want += want + `content of file "/etc/data-1": value-1
content of file "/etc/data-1": value-1
content of file "/etc/data-1": value-2
`
		if diff := cmp.Diff(want, r.Stdout.String()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestMounttestLoopEndsWithTheContentItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := pod(t)
		m.Write("/etc/f", "other")
		r := start(m, "mounttest", "--file_content_in_loop=/etc/f")
		time.Sleep(time.Second)
		m.Write("/etc/f", newContent)
		if code := r.Wait(); code != 0 || !strings.HasSuffix(r.Stdout.String(), newContent+"\n") {
			t.Errorf("exit %d, %s", code, r.Stdout)
		}
	})
}
