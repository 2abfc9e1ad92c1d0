package cri

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/kit"
)

// proc is a /proc: the files people and programs look at.
type proc struct {
	runtime  *Runtime
	space    *pidSpace // whose programs it shows
	files    *vfs.Namespace
	hostname string
	sysctls  map[string]string
}

// tree builds the file system.
func (p proc) tree() (*vfs.Tree, error) {
	t := vfs.NewTree(vfs.Options{Type: "proc", Mode: 0o555, Disk: &vfs.Disk{Name: "proc", Total: procFiles}})
	for _, dir := range []string{"/self", "/sys", "/sys/kernel", "/net"} {
		if err := t.Root().Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	machine := p.runtime.cfg.Machine
	mounts := func() string { return mountTable(p.files) }
	for name, content := range map[string]func() string{
		"/cpuinfo": func() string {
			var b strings.Builder
			for i := range machine.Cores {
				fmt.Fprintf(&b, "processor\t: %d\nvendor_id\t: GenuineIntel\nmodel name\t: Virtual CPU\ncpu "+
					"MHz\t\t: 2400.000\n\n", i)
			}
			return b.String()
		},
		"/meminfo": func() string {
			total, used := machine.Memory>>10, machine.MemoryUsed()>>10
			return fmt.Sprintf("MemTotal:       %8d kB\nMemFree:        %8d kB\nMemAvailable:   %8d kB\nSwapTotal:   "+
				"          0 kB\nSwapFree:              0 kB\n", total, total-used, total-used)
		},
		"/uptime": func() string {
			up := time.Since(p.runtime.Booted()).Seconds()
			return fmt.Sprintf("%.2f %.2f\n", up, up)
		},
		"/loadavg":             func() string { return fmt.Sprintf("0.00 0.00 0.00 1/%d 1\n", len(p.space.list())) },
		"/version":             func() string { return "Linux version " + KernelVersion + "\n" },
		"/filesystems":         func() string { return "nodev\tproc\nnodev\ttmpfs\nnodev\toverlay\n\text4\n" },
		"/mounts":              mounts,
		"/self/mounts":         mounts,
		"/self/cgroup":         func() string { return "0::/\n" },
		"/sys/kernel/hostname": func() string { return p.hostname + "\n" },
	} {
		if err := t.AddDevice(name, 0o444, generated(content)); err != nil {
			return nil, err
		}
	}
	if err := addParameters(t, p.sysctls); err != nil {
		return nil, err
	}
	t.MakeLive(vfs.Live{List: p.names, Open: p.open})
	return t, nil
}

// mountTable writes what is mounted, as /proc/mounts has it.
func mountTable(files *vfs.Namespace) string {
	var b strings.Builder
	for _, m := range files.Mounts() {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		fmt.Fprintf(&b, "%s %s %s %s,relatime 0 0\n", m.Source, m.Mount, m.Type, mode)
	}
	return b.String()
}

// names returns the IDs of the programs.
func (p proc) names() (list []string) {
	for _, info := range p.space.List() {
		list = append(list, strconv.Itoa(info.PID))
	}
	return list
}

// open returns the directory of a program.
func (p proc) open(name string) *vfs.LiveDir {
	pid, err := strconv.Atoi(name)
	if err != nil || strconv.Itoa(pid) != name {
		return nil
	}
	target, info := p.space.Get(pid)
	if target == nil {
		return nil
	}
	at, files := placeOf(target), p.runtime.cfg.Files
	if at.container != nil {
		files = at.container.files
	}
	d := &vfs.LiveDir{User: info.User, Files: map[string]vfs.LiveFile{}}
	for name, content := range map[string]func() string{
		"cmdline": func() string { return strings.Join(info.Args, "\x00") + "\x00" },
		"comm":    func() string { return comm(info) + "\n" },
		"status":  func() string { return at.status(info) },
		"stat": func() string {
			return fmt.Sprintf("%d (%s) S %d %d %d 0 -1\n", pid, comm(info), info.Parent, pid, pid)
		},
		"cgroup": func() string { return "0::/\n" },
		"mounts": func() string { return mountTable(files) },
	} {
		d.Files[name] = vfs.LiveFile{Device: generated(content), Mode: 0o444}
	}
	environ := func() string { return strings.Join(target.Environ, "\x00") + "\x00" }
	d.Files["environ"] = vfs.LiveFile{Device: generated(environ), Mode: 0o400}
	d.Jumps = map[string]vfs.Jump{"root": func(u kit.User) (*vfs.Namespace, error) {
		if u.UID != 0 && u.UID != info.User.UID {
			return nil, syscall.EACCES
		}
		return files, nil
	}}
	if c := at.container; c != nil && at.main {
		d.Files["fd/1"] = vfs.LiveFile{Device: device(noInput, c.stdout.Write), Mode: 0o666}
		d.Files["fd/2"] = vfs.LiveFile{Device: device(noInput, c.stderr.Write), Mode: 0o666}
	}
	return d
}

// comm is the name of a program as the kernel keeps it.
func comm(p kit.ProcessInfo) string {
	if len(p.Args) == 0 {
		return ""
	}
	name := path.Base(p.Args[0])
	return name[:min(len(name), 15)]
}

// status is what /proc tells of a program in words.
func (at place) status(info kit.ProcessInfo) string {
	uid, gid := info.User.UID, info.User.GID
	var groups strings.Builder
	for _, g := range info.User.Groups {
		fmt.Fprintf(&groups, "%d ", g)
	}
	s := fmt.Sprintf("Name:\t%s\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t%d\nPid:\t%d\nPPid:\t%d\n"+
		"Uid:\t%d\t%d\t%d\t%d\nGid:\t%d\t%d\t%d\t%d\nGroups:\t%s\n",
		comm(info), info.PID, info.PID, info.Parent, uid, uid, uid, uid, gid, gid, gid, gid, groups.String())
	if at.main {
		s += fmt.Sprintf("VmRSS:\t%8d kB\n", groupMemory{group: at.container.group}.Info().Used>>10)
	}
	return s + "Threads:\t1\n"
}
