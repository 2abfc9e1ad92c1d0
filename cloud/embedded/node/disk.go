package node

import (
	"fmt"

	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/kit"
)

// The kubelet's own files. Its credentials are not among them: the kubelets of the embedded cloud
// have none that could be taken.
const (
	kubeletConfig = kubeletDir + "/config.yaml"
	kubeconfig    = "/etc/kubernetes/kubelet.conf"
	serverCA      = "/etc/kubernetes/pki/ca.crt"
)

// newDisk returns a disk with what a node's operating system has on it.
func newDisk(cfg Config, spec Spec) (*vfs.Tree, error) {
	t := vfs.NewTree(vfs.Options{Type: "ext4"})
	env := &kit.Env{FS: t.Root(), Dir: "/"}
	for _, dir := range []string{
		"/etc/kubernetes/manifests", "/etc/kubernetes/pki", "/home", "/mnt", "/opt", "/root", "/run/containerd", "/srv",
		"/tmp", "/usr/bin", "/usr/lib", "/usr/sbin", kubeletDir + "/pods", "/var/lib/containerd", "/var/log/pods",
		"/var/log/containers", "/var/tmp",
	} {
		if err := env.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	for name, target := range map[string]string{
		"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib",
		"/var/run": "/run",
	} {
		if err := env.FS.Symlink(target, name); err != nil {
			return nil, err
		}
	}
	for name, content := range diskFiles(cfg, spec) {
		if err := env.WriteFile(name, []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	programs := map[string]kit.Program{}
	for name, p := range cfg.Commands {
		programs["/usr/bin/"+name] = p
	}
	return t, cfg.Images.Install(env, "node", programs)
}

func diskFiles(cfg Config, spec Spec) map[string]string {
	files := map[string]string{
		"/etc/hostname":   spec.Name + "\n",
		"/etc/hosts":      fmt.Sprintf("127.0.0.1\tlocalhost\n%s\t%s\n", spec.Address, spec.Name),
		"/etc/machine-id": machineID(spec.Name) + "\n",
		"/etc/os-release": "PRETTY_NAME=\"" + osImage +
			"\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"13\"\nVERSION=\"13 (trixie)\"\n" +
			"VERSION_CODENAME=trixie\nID=debian\nHOME_URL=\"https://www.debian.org/\"\n",
		"/etc/debian_version": "13.1\n",
		"/etc/passwd": "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n" +
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"/etc/group":       "root:x:0:\ndaemon:x:1:\nadm:x:4:\nnogroup:x:65534:\n",
		"/etc/crictl.yaml": "runtime-endpoint: unix://" + cri.Endpoint + "\n",
		serverCA:           string(cfg.CA),
		kubeletConfig: fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: 0.0.0.0
port: %d
authentication:
  anonymous:
    enabled: false
  webhook:
    enabled: true
  x509:
    clientCAFile: %s
authorization:
  mode: Webhook
clusterDNS:
- %s
clusterDomain: %s
containerRuntimeEndpoint: unix://%s
enableSystemLogHandler: true
enableSystemLogQuery: true
maxPods: %d
staticPodPath: /etc/kubernetes/manifests
`, KubeletPort, serverCA, cfg.ClusterDNS, cfg.ClusterDomain, cri.Endpoint, maxPods),
		kubeconfig: fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: default-cluster
  cluster:
    certificate-authority: %s
    server: %s
contexts:
- name: default-context
  context:
    cluster: default-cluster
    user: default-auth
current-context: default-context
users:
- name: default-auth
  user:
    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem
    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem
`, serverCA, cfg.Server),
	}
	if cfg.ClusterDNS.IsValid() {
		files["/etc/resolv.conf"] = fmt.Sprintf("nameserver %s\n", cfg.ClusterDNS)
	}
	return files
}
