package shell

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aiopslab/aiopslab/shell/internal/shelltest"
)

func TestSysctl(t *testing.T) {
	m := shelltest.New(t, Tools())
	m.Write("/proc/sys/kernel/shm_rmid_forced", "1\n")
	m.Write("/proc/sys/net/core/somaxconn", "4096\n")
	for _, tt := range []struct {
		args []string
		want shelltest.Result
	}{
		{[]string{"sysctl", "kernel.shm_rmid_forced"}, shelltest.Result{Stdout: "kernel.shm_rmid_forced = 1\n"}},
		{[]string{"sysctl", "-n", "net.core.somaxconn"}, shelltest.Result{Stdout: "4096\n"}},
		{[]string{"sysctl", "-a"}, shelltest.Result{Stdout: "kernel.shm_rmid_forced = 1\nnet.core.somaxconn = 4096\n"}},
		{[]string{"sysctl", "kernel.nope"}, shelltest.Result{Stderr: "sysctl: error: 'kernel.nope' is an unknown key\n", Code: 1}},
		{[]string{"sysctl", "-e", "kernel.nope"}, shelltest.Result{}},
		{[]string{"sysctl", "-w", "net.core.somaxconn=128"}, shelltest.Result{Stdout: "net.core.somaxconn = 128\n"}},
		{[]string{"cat", "/proc/sys/net/core/somaxconn"}, shelltest.Result{Stdout: "128\n"}},
	} {
		if diff := cmp.Diff(tt.want, m.Run(tt.args...)); diff != "" {
			t.Errorf("%q:\n%s", tt.args, diff)
		}
	}
}
