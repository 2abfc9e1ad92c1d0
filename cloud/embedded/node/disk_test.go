package node

import (
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/image/busybox"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/shell"
)

// Who has the node's root mounted can change into it, and is on the node, not on the host.
func TestChrootToNode(t *testing.T) {
	k := testKubelet(t)
	cfg := k.node.fleet.cfg
	cfg.Images = cri.NewImages(kit.NewRegistry(busybox.Image(shell.Tools())))
	cfg.Commands, cfg.ClusterDomain, cfg.ClusterDNS = shell.Node(), "cluster.local", netip.MustParseAddr("10.96.0.10")
	cfg.Server, cfg.CA = "https://192.168.0.9:6443", []byte("certificate\n")
	k.node.fleet.cfg = cfg
	disk, err := newDisk(cfg, k.node.spec)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMachine(k.node, disk)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.runtime.Shutdown)
	r := m.runtime
	ctx := t.Context()
	node := &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_NODE, Network: runtimeapi.NamespaceMode_NODE}
	pod, err := r.RunPodSandbox(ctx, &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "debug", Namespace: "shop", Uid: "u"}, LogDirectory: "/var/log/pods/shop_debug_u",
		Linux: &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: node}},
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.PullImage(ctx, &runtimeapi.ImageSpec{Image: "busybox"}, nil, nil); err != nil {
		t.Fatal(err)
	}
	start := func(user int64) string {
		id, err := r.CreateContainer(ctx, pod, &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Image: &runtimeapi.ImageSpec{Image: "busybox"}, LogPath: "c/" + string('0'+rune(user%7)) + ".log",
			Command: []string{"sh", "-c", "echo said; sleep 1h"}, Mounts: []*runtimeapi.Mount{{ContainerPath: "/host", HostPath: "/"}},
			Linux: &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: node, RunAsUser: &runtimeapi.Int64Value{Value: user}}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.StartContainer(ctx, id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	root, user := start(0), start(1000)
	run := func(id, script string) string {
		t.Helper()
		out, errOut, _ := r.ExecSync(ctx, id, []string{"sh", "-c", script}, 0)
		return string(out) + string(errOut)
	}
	for run(root, "grep -c said /host/var/log/pods/shop_debug_u/c/0.log") != "1\n" { // As soon as it has said it.
		if ctx.Err() != nil {
			t.Fatal("the log is not there")
		}
	}
	m.journal.add(time.Now(), kubeletUnit, "one")
	m.journal.add(time.Now(), kubeletUnit, "two")
	for _, tt := range []struct{ script, want string }{
		{"chroot /host journalctl -u kubelet -o cat", "one\ntwo\n"},
		{"chroot /host journalctl -u kubelet.service --no-pager -n 1 | sed 's/.*:[0-9][0-9] //'", "n1 kubelet[655]: two\n"},
		{"chroot /host journalctl -o cat -g ONE; chroot /host journalctl -o cat --since '1 hour ago' -g one", "-- No entries --\none\n"},
		{"chroot /host journalctl -u sshd; chroot /host journalctl --since tomorrow", "-- No entries --\n-- No entries --\n"},
		{"chroot /host journalctl -f", "journalctl: the journal cannot be followed here; use -n and ask again\n"},
		{"journalctl", "sh: journalctl: not found\n"},
		{"chroot /host cat /etc/hostname", "n1\n"},
		{"chroot /host sh -c 'pwd; ls; cat /proc/sys/kernel/hostname'", "/\nbin\ndev\netc\nhome\nlib\nmnt\nopt\nproc\nroot\nrun\nsbin\nsrv\nsys\ntmp\nusr\nvar\nn1\n"},
		{"echo 'cd /etc/kubernetes; ls; exit 3' | chroot /host; echo $?", "kubelet.conf\nmanifests\npki\n3\n"},
		{"chroot /host crictl ps; echo $?", "127\nchroot: can't execute 'crictl': No such file or directory\n"},
		{"chroot /host sh -c 'crictl ps'; echo $?", "127\nsh: crictl: not found\n"},
		{"chroot /nowhere ls", "chroot: can't change root directory to '/nowhere': No such file or directory\n"},
		{"chroot /host ls /host /etc/../../host", "ls: /host: No such file or directory\nls: /etc/../../host: No such file or directory\n"},
		{"chroot /host sh -c 'ls /var/log; echo x 2>/dev/null >/tmp/x'; cat /host/tmp/x", "containers\npods\nx\n"},
		{"chroot /host stat -c '%F %s' /var/log/pods/shop_debug_u/c/0.log", "regular file 45\n"},
		{"chroot /host ps -o args | grep -c '^/usr/bin/kubelet '", "1\n"},
	} {
		if got := run(root, tt.script); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.script, got, tt.want)
		}
	}
	// What one writes on a node is on its disk, or nowhere.
	for _, dir := range []string{"/dev", "/dev/shm", "/proc", "/proc/1", "/sys", "/var/log/pods", "/run/log/journal", "/tmp"} {
		if got := run(root, "truncate -s 2G /host"+dir+"/big && echo fits"); strings.Contains(got, "fits") {
			t.Errorf("2 GiB fit into %s of a node: %s", dir, got)
		}
	}
	if got, want := run(user, "chroot /host ls"), "chroot: can't change root directory to '/host': Operation not permitted\n"; got != want {
		t.Errorf("as a user: %q", got)
	}
	everything := run(root, "find /host -path /host/proc -prune -o -print; ps -o args; cat /host/proc/[0-9]*/cmdline /proc/mounts /host/proc/version")
	secrets := []string{m.dir, os.Args[0]}
	if host, err := os.Hostname(); err == nil && len(host) > len("localhost") {
		secrets = append(secrets, host)
	}
	for _, secret := range secrets {
		if strings.Contains(everything, secret) {
			t.Errorf("the node shows %q", secret)
		}
	}
}
