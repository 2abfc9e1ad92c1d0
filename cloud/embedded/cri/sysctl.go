package cri

import (
	"maps"
	"path"
	"strings"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
)

// kernelParameters are those a pod has of its own, at the kernel's and containerd's defaults. Nothing
// here obeys them; programs and people read them.
var kernelParameters = map[string]string{
	"kernel.shm_rmid_forced":              "0",
	"net.core.somaxconn":                  "4096",
	"net.ipv4.ip_local_port_range":        "32768\t60999",
	"net.ipv4.ip_local_reserved_ports":    "",
	"net.ipv4.ip_unprivileged_port_start": "0",
	"net.ipv4.ping_group_range":           "0\t2147483647",
	"net.ipv4.tcp_fin_timeout":            "60",
	"net.ipv4.tcp_keepalive_intvl":        "75",
	"net.ipv4.tcp_keepalive_probes":       "9",
	"net.ipv4.tcp_keepalive_time":         "7200",
	"net.ipv4.tcp_notsent_lowat":          "4294967295",
	"net.ipv4.tcp_rmem":                   "4096\t131072\t6291456",
	"net.ipv4.tcp_slow_start_after_idle":  "1",
	"net.ipv4.tcp_syncookies":             "1",
	"net.ipv4.tcp_wmem":                   "4096\t16384\t4194304",
}

// addParameters fills /proc/sys of a pod that may have settings of its own.
func addParameters(proc *vfs.Tree, own map[string]string) error {
	all := maps.Clone(kernelParameters)
	maps.Copy(all, own)
	made := map[string]bool{}
	for name, value := range all {
		file := "/sys/" + strings.ReplaceAll(name, ".", "/")
		for _, dir := range parents(file) {
			if _, err := proc.Root().Stat(dir); err != nil && !made[dir] {
				if err := proc.Root().Mkdir(dir, 0o555); err != nil {
					return err
				}
			}
			made[dir] = true
		}
		if err := proc.AddDevice(file, 0o444, generated(func() string { return value + "\n" })); err != nil {
			return err
		}
	}
	return nil
}

// parents are the directories above a file, the outermost first.
func parents(file string) (dirs []string) {
	for dir := path.Dir(file); dir != "/"; dir = path.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
	}
	return dirs
}
