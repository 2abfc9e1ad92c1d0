package node

import (
	"context"
	"fmt"
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

const (
	kubeletDir = "/var/lib/kubelet"
	hostsFile  = "/etc/hosts"
)

// podDir is where a node keeps a pod's volumes.
func podDir(uid types.UID) string { return kubeletDir + "/pods/" + string(uid) }

// runtimeHelper answers what the kubelet's runtime manager asks about a pod's surroundings.
type runtimeHelper struct{ kubelet *kubelet }

var _ kubecontainer.RuntimeHelper = (*runtimeHelper)(nil)

// GenerateRunContainerOptions returns a container's environment and mounts.
func (h *runtimeHelper) GenerateRunContainerOptions(ctx context.Context, pod *v1.Pod, c *v1.Container, podIP string,
	podIPs []string, images kubecontainer.ImageVolumes,
) (*kubecontainer.RunContainerOptions, func(), error) {
	k := h.kubelet
	w := k.worker(pod.UID)
	if w == nil {
		return nil, nil, fmt.Errorf("pod %s/%s is gone", pod.Namespace, pod.Name)
	}
	if pod.Spec.HostNetwork && podIP == "" {
		podIP = k.node.spec.Address.String()
		podIPs = []string{podIP}
	}
	opts := &kubecontainer.RunContainerOptions{}
	var err error
	if opts.Envs, err = k.environment(pod, c, podIP, podIPs); err != nil {
		return nil, nil, err
	}
	if opts.Mounts, err = w.volumes.mountsFor(c, opts.Envs, images); err != nil {
		return nil, nil, err
	}
	own := false
	for _, m := range c.VolumeMounts {
		own = own || m.MountPath == hostsFile
	}
	if !own && len(podIPs) > 0 {
		m, err := h.hosts(pod, podIPs)
		if err != nil {
			return nil, nil, err
		}
		opts.Mounts = append(opts.Mounts, *m)
	}
	if c.TerminationMessagePath != "" {
		opts.PodContainerDir = path.Join(podDir(pod.UID), "containers", c.Name)
		if err := k.machine.env().MkdirAll(opts.PodContainerDir, 0o750); err != nil {
			return nil, nil, err
		}
	}
	return opts, nil, nil
}

// hosts writes a pod's /etc/hosts.
func (h *runtimeHelper) hosts(pod *v1.Pod, podIPs []string) (*kubecontainer.Mount, error) {
	n := h.kubelet.machine
	hostname, domain, err := h.GeneratePodHostNameAndDomain(h.kubelet.logger, pod)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	if pod.Spec.HostNetwork {
		node, err := n.env().ReadFile(hostsFile)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "# Kubernetes-managed hosts file (host network).\n%s", node)
	} else {
		b.WriteString("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost " +
			"ip6-localhost ip6-loopback\n" +
			"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n")
		for _, ip := range podIPs {
			if domain != "" {
				fmt.Fprintf(&b, "%s\t%s.%s\t%s\n", ip, hostname, domain, hostname)
			} else {
				fmt.Fprintf(&b, "%s\t%s\n", ip, hostname)
			}
		}
	}
	if len(pod.Spec.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
		for _, a := range pod.Spec.HostAliases {
			fmt.Fprintf(&b, "%s\t%s\n", a.IP, strings.Join(a.Hostnames, "\t"))
		}
	}
	file := podDir(pod.UID) + "/etc-hosts"
	if err := n.env().MkdirAll(podDir(pod.UID), 0o750); err != nil {
		return nil, err
	}
	if err := n.env().WriteFile(file, []byte(b.String()), 0o644); err != nil {
		return nil, err
	}
	return &kubecontainer.Mount{Name: "k8s-managed-etc-hosts", ContainerPath: hostsFile, HostPath: file}, nil
}

// GetPodDNS returns what goes into a pod's /etc/resolv.conf.
func (h *runtimeHelper) GetPodDNS(_ context.Context, pod *v1.Pod) (*runtimeapi.DNSConfig, error) {
	cfg := h.kubelet.node.fleet.cfg
	d := &runtimeapi.DNSConfig{}
	policy := pod.Spec.DNSPolicy
	cluster := policy == v1.DNSClusterFirstWithHostNet || policy == v1.DNSClusterFirst && !pod.Spec.HostNetwork
	switch {
	case cluster:
		domain := cfg.ClusterDomain
		d.Servers = []string{cfg.ClusterDNS.String()}
		d.Searches = []string{pod.Namespace + ".svc." + domain, "svc." + domain, domain}
		d.Options = []string{"ndots:5"}
	case policy == v1.DNSNone:
	default:
		d.Servers = []string{cfg.ClusterDNS.String()} // The node's own resolver.
	}
	if c := pod.Spec.DNSConfig; c != nil {
		d.Servers = unique(append(d.Servers, c.Nameservers...))
		d.Searches = unique(append(d.Searches, c.Searches...))
		d.Options = mergeOptions(d.Options, c.Options)
	}
	return d, nil
}

func unique(list []string) (out []string) {
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// mergeOptions lets a pod's resolver options override the defaults of the same name.
func mergeOptions(defaults []string, own []v1.PodDNSConfigOption) []string {
	var out []string
	named := map[string]bool{}
	for _, o := range own {
		named[o.Name] = true
	}
	for _, d := range defaults {
		if name, _, _ := strings.Cut(d, ":"); !named[name] {
			out = append(out, d)
		}
	}
	for _, o := range own {
		if o.Value != nil && *o.Value != "" {
			out = append(out, o.Name+":"+*o.Value)
		} else {
			out = append(out, o.Name)
		}
	}
	return out
}

// GeneratePodHostNameAndDomain returns a pod's hostname and, if it has a subdomain, its domain.
func (h *runtimeHelper) GeneratePodHostNameAndDomain(_ klog.Logger, pod *v1.Pod) (hostname, domain string, err error) {
	if o := pod.Spec.HostnameOverride; o != nil {
		return *o, "", nil
	}
	hostname = pod.Name
	if pod.Spec.Hostname != "" {
		if msgs := validation.IsDNS1123Label(pod.Spec.Hostname); len(msgs) != 0 {
			return "", "", fmt.Errorf("pod Hostname %q is not a valid DNS label: %s", pod.Spec.Hostname,
				strings.Join(msgs, ";"))
		}
		hostname = pod.Spec.Hostname
	}
	if len(hostname) > 63 {
		hostname = strings.TrimRight(hostname[:63], "-.")
	}
	if s := pod.Spec.Subdomain; s != "" {
		if msgs := validation.IsDNS1123Label(s); len(msgs) != 0 {
			return "", "", fmt.Errorf("pod Subdomain %q is not a valid DNS label: %s", s, strings.Join(msgs, ";"))
		}
		domain = fmt.Sprintf("%s.%s.svc.%s", s, pod.Namespace, h.kubelet.node.fleet.cfg.ClusterDomain)
	}
	return hostname, domain, nil
}

// GetPodDir returns where a node keeps a pod's data.
func (h *runtimeHelper) GetPodDir(uid types.UID) string { return podDir(uid) }

// GetPodCgroupParent returns a name; nothing is looked up by it.
func (h *runtimeHelper) GetPodCgroupParent(pod *v1.Pod) string {
	return "/kubepods/pod" + string(pod.UID)
}

// GetExtraSupplementalGroupsForPod returns the groups that own a pod's volumes; none here.
func (h *runtimeHelper) GetExtraSupplementalGroupsForPod(*v1.Pod) []int64 { return nil }

// GetOrCreateUserNamespaceMappings: pods run in the node's user namespace.
func (h *runtimeHelper) GetOrCreateUserNamespaceMappings(_ klog.Logger, pod *v1.Pod,
	_ string,
) (*runtimeapi.UserNamespace, error) {
	return nil, nil
}

// PrepareDynamicResources: the nodes have no devices to claim.
func (h *runtimeHelper) PrepareDynamicResources(_ context.Context, pod *v1.Pod) error {
	if len(pod.Spec.ResourceClaims) > 0 {
		return fmt.Errorf("node %s has no device drivers", h.kubelet.node.spec.Name)
	}
	return nil
}

// UnprepareDynamicResources has nothing to undo.
func (h *runtimeHelper) UnprepareDynamicResources(context.Context, *v1.Pod) error { return nil }

// RequestPodReinspect makes the pod's worker look again.
func (h *runtimeHelper) RequestPodReinspect(uid types.UID) { h.kubelet.wake(uid) }

// OnPodSandboxReady lets the status show that a pod has its network.
func (h *runtimeHelper) OnPodSandboxReady(_ context.Context, pod *v1.Pod) error { return nil }

// PodCPUAndMemoryStats returns what a pod uses, by which a shrinking of its memory is judged.
func (h *runtimeHelper) PodCPUAndMemoryStats(_ context.Context, pod *v1.Pod,
	_ *kubecontainer.PodStatus,
) (*statsapi.PodStats, error) {
	return h.kubelet.podStats(pod), nil
}

// ResizeEphemeralVolume changes the size limit of an emptyDir in memory.
func (h *runtimeHelper) ResizeEphemeralVolume(pod *v1.Pod, name string, size *resource.Quantity) error {
	if w := h.kubelet.worker(pod.UID); w != nil {
		return w.volumes.resize(name, size)
	}
	return nil
}
