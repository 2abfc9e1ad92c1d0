package embedded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aiopslab/aiopslab/cloud"
)

// nodeDebugger is the pod that kubectl debug node makes.
const nodeDebugger = `
apiVersion: v1
kind: Pod
metadata: {name: node-debugger}
spec:
  nodeName: %s
  hostPID: true
  hostNetwork: true
  hostIPC: true
  restartPolicy: Never
  tolerations: [{operator: Exists}]
  containers:
  - {name: debugger, image: busybox, command: [sleep, 1h], volumeMounts: [{name: host-root, mountPath: /host}]}
  volumes: [{name: host-root, hostPath: {path: /}}]
`

// From a pod on a node one sees the node: its files, logs and processes. One sees neither the
// machine that all of it runs on nor what is done to a pod. No other test runs beside it: some have
// pods of the lab's own program.
func TestDebugNode(t *testing.T) {
	c := shared(t)
	p := c.victim(t)
	web := p.ready()
	c.apply(t, p.namespace, fmt.Sprintf(nodeDebugger, web.Spec.NodeName))
	c.awaitPod(t, p.namespace, "node-debugger", "ready", isReady)
	run := func(script string) string {
		t.Helper()
		return c.exec(t, p.namespace, "node-debugger", "chroot", "/host", "sh", "-c", script)
	}
	log := "/var/log/containers/" + web.Name + "_" + p.namespace + "_web-*.log"
	for _, tt := range []struct{ script, want string }{
		{"cat /etc/hostname /proc/sys/kernel/hostname", web.Spec.NodeName + "\n" + web.Spec.NodeName},
		{". /etc/os-release; echo $ID", "debian\n"},
		{"pwd; ls /", "/\nbin\ndev\netc\nhome\nlib\nmnt\nopt\nproc\nroot\nrun\nsbin\nsrv\nsys\ntmp\nusr\nvar\n"},
		{"ls /etc/kubernetes; ls /var/lib/kubelet", "kubelet.conf\nmanifests\npki\nconfig.yaml\npods\n"},
		{"crictl ps 2>&1; echo $?", "sh: crictl: not found\n127\n"},
		{"grep -c ' stdout F ' " + log + " >/dev/null && readlink " + log, "/var/log/pods/" + p.namespace + "_" + web.Name + "_" + string(web.UID) + "/web/0.log"},
		{"ps -o args", "/usr/bin/kubelet"},
		{"ps -o args", "/docker-entrypoint.sh nginx -g daemon off;"},
		{"journalctl -u kubelet -o cat", `pod="` + p.namespace + "/" + web.Name + `"`},
		{"echo left > /tmp/note; cat /tmp/note", "left\n"},
		{"for p in $(pgrep -f 'nginx -g'); do cat /proc/$p/root/etc/hostname; done", web.Name + "\n"},
		{"cd /var/lib/kubelet/pods/" + string(web.UID) + "/volumes && ls", "kubernetes.io~empty-dir\n"},
	} {
		if got := run(tt.script); !strings.Contains(got, tt.want) {
			t.Errorf("%s:\n%s\nwant %q", tt.script, got, tt.want)
		}
	}

	const look = `ps -o ppid,user,args | grep -v ps; find / -path /proc -prune -o -print; cat /proc/mounts /proc/cpuinfo /proc/version
		for f in /proc/[0-9]*; do cat $f/cmdline $f/mounts $f/environ; done
		for f in $(find /etc /home /mnt /opt /root /srv /tmp /var/log /var/lib/kubelet -type f); do cat $f; done`
	before := run(look)
	p.disturb(cloud.Disturbance{Pod: &cloud.PodChaos{Action: cloud.PodFailure}})
	during := run(look)
	self, err := os.Executable()
	must(t, err)
	here, err := os.Getwd()
	must(t, err)
	secrets := []string{filepath.Base(self), here, "aiopslab"}
	if host, err := os.Hostname(); err == nil && len(host) > len("localhost") {
		secrets = append(secrets, host)
	}
	for _, secret := range secrets {
		for when, text := range map[string]string{"before": before, "during": during} {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("the node shows %q %s a disturbance: %q", secret, when, text[max(0, i-200):min(len(text), i+200)])
			}
		}
	}
	for line := range strings.Lines(during) {
		own := strings.Contains(line, p.namespace) || strings.Contains(line, web.Name)
		if found := telltale.FindString(strings.ReplaceAll(line, p.namespace, "")); own && found != "" && !strings.Contains(before, line) {
			t.Errorf("the node says %q: %s", found, line)
		}
	}
}
