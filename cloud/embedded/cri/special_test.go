package cri

import (
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Programs tell the version of control groups by the type of the mount.
func TestControlGroupFiles(t *testing.T) {
	l := newLab(t)
	pod := l.pod("p")
	limits := func(cfg *runtimeapi.ContainerConfig) {
		cfg.Linux.Resources = &runtimeapi.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: 20_000, CpuShares: 1024, MemoryLimitInBytes: 64 << 20}
	}
	for _, tt := range []struct{ file, want string }{
		{"/proc/self/mounts", "cgroup /sys/fs/cgroup cgroup2 ro,relatime 0 0\n"},
		{"/sys/fs/cgroup/cpu.max", "20000 100000\n"},
		{"/sys/fs/cgroup/cpu.weight", "39\n"},
		{"/sys/fs/cgroup/memory.max", "67108864\n"},
	} {
		id := l.run(pod, []string{"cat", tt.file}, limits)
		l.ended(id)
		if got := l.logs(id); !strings.Contains(got, tt.want) {
			t.Errorf("%s is %q, want %q in it", tt.file, got, tt.want)
		}
		if err := l.RemoveContainer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
}

// A pod's own kernel parameters stand beside the kernel's defaults.
func TestKernelParameters(t *testing.T) {
	l := newLab(t)
	pod, err := l.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Namespace: "default", Uid: "uid-p"},
		Linux:    &runtimeapi.LinuxPodSandboxConfig{Sysctls: map[string]string{"kernel.shm_rmid_forced": "1"}},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ file, want string }{
		{"/proc/sys/kernel/shm_rmid_forced", "1\n"},
		{"/proc/sys/net/ipv4/tcp_keepalive_time", "7200\n"},
	} {
		id := l.run(pod, []string{"cat", tt.file}, nil)
		l.ended(id)
		if got := l.logs(id); got != tt.want {
			t.Errorf("%s is %q, want %q", tt.file, got, tt.want)
		}
		if err := l.RemoveContainer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
}
