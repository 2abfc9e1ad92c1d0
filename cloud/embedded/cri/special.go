package cri

import (
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
)

// generated is a file whose content is made when it is opened, as in /proc.
func generated(content func() string) vfs.Device {
	return vfs.Device{
		Open: func(int) (vfs.Stream, error) { return &readOnly{strings.NewReader(content())}, nil },
		Size: func() int64 { return 0 },
	}
}

type readOnly struct{ io.Reader }

func (readOnly) Write([]byte) (int, error) { return 0, syscall.EACCES }

// stream adapts functions to an open device.
type stream struct {
	read  func([]byte) (int, error)
	write func([]byte) (int, error)
}

func (s stream) Read(p []byte) (int, error)  { return s.read(p) }
func (s stream) Write(p []byte) (int, error) { return s.write(p) }

func device(read, write func([]byte) (int, error)) vfs.Device {
	return vfs.Device{Open: func(int) (vfs.Stream, error) { return stream{read, write}, nil }}
}

func discard(p []byte) (int, error) { return len(p), nil }

func noInput([]byte) (int, error) { return 0, io.EOF }

func zeros(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// What /dev with /dev/shm holds, as containerd mounts it, and /proc, in which nobody should write.
const (
	sharedMemory = 64 << 20
	procFiles    = 64 << 10
)

// devTree is a container's /dev.
func (c *Container) devTree() (*vfs.Tree, error) { return devTree(c.stdout, c.stderr) }

func devTree(stdout, stderr io.Writer) (*vfs.Tree, error) {
	t := vfs.NewTree(vfs.Options{Type: "tmpfs", Disk: &vfs.Disk{Name: "tmpfs", Total: sharedMemory}})
	for _, dir := range []string{"/shm", "/pts", "/mqueue"} {
		if err := t.Root().Mkdir(dir, 0o777); err != nil {
			return nil, err
		}
	}
	for name, d := range map[string]vfs.Device{
		"/null":    device(noInput, discard),
		"/zero":    device(zeros, discard),
		"/full":    device(zeros, func([]byte) (int, error) { return 0, syscall.ENOSPC }),
		"/random":  device(rand.Read, discard),
		"/urandom": device(rand.Read, discard),
		"/tty":     device(noInput, discard),
		"/stdin":   device(noInput, discard),
		"/stdout":  device(noInput, stdout.Write),
		"/stderr":  device(noInput, stderr.Write),
	} {
		if err := t.AddDevice(name, 0o666, d); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// sysTree is a container's /sys.
func sysTree() (*vfs.Tree, error) {
	t := vfs.NewTree(vfs.Options{Type: "sysfs", Mode: 0o555})
	for _, dir := range []string{"/fs", "/fs/cgroup"} {
		if err := t.Root().Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// groupTree is a container's view of its control group, version 2.
func (c *Container) groupTree() (*vfs.Tree, error) {
	t := vfs.NewTree(vfs.Options{Type: "cgroup2", Mode: 0o555})
	g := c.group
	snapshot := func() (limits, groupStats, int64) {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.limits, g.lived(), g.shown()
	}
	orMax := func(n int64) string {
		if n == 0 {
			return "max"
		}
		return fmt.Sprint(n)
	}
	for name, content := range map[string]func(limits, groupStats, int64) string{
		"memory.max":     func(l limits, _ groupStats, _ int64) string { return orMax(l.memory) + "\n" },
		"memory.current": func(_ limits, _ groupStats, m int64) string { return fmt.Sprintln(m) },
		"memory.events": func(_ limits, s groupStats, _ int64) string {
			return fmt.Sprintf("oom %d\noom_kill %d\n", s.oomKills, s.oomKills)
		},
		"cpu.max": func(l limits, _ groupStats, _ int64) string {
			return fmt.Sprintf("%s %d\n", orMax(l.quota.Microseconds()), cfsPeriod.Microseconds())
		},
		// The kernel's mapping of cgroup v1 shares to v2 weights.
		"cpu.weight": func(l limits, _ groupStats, _ int64) string {
			return fmt.Sprintln(1 + (l.shares-2)*9999/262142)
		},
		"cpu.stat": func(_ limits, s groupStats, _ int64) string {
			return fmt.Sprintf("usage_usec %d\nuser_usec %d\nsystem_usec 0\nnr_periods %d\nnr_throttled %d\n"+
				"throttled_usec %d\n",
				s.used.Microseconds(), s.used.Microseconds(), s.periods, s.throttledPeriods, s.throttled.Microseconds())
		},
	} {
		if err := t.AddDevice("/"+name, 0o444, generated(func() string { return content(snapshot()) })); err != nil {
			return nil, err
		}
	}
	return t, nil
}
