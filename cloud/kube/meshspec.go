package kube

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/aiopslab/aiopslab/cloud"
)

// charms are what Chaos Mesh must be asked for, so that a pod that runs is disturbed to a degree. Their names tell what
// they depend on beside the pod. Target has the pods that traffic is disturbed with, or is nil for anybody.
func charms(d cloud.Disturbance, p *v1.Pod, degree float64, target map[string]any) ([]*charm, error) {
	switch {
	case d.Network != nil:
		return networkCharms(d.Network, p, degree, target)
	case d.IO != nil:
		return ioCharms(d.IO, p, degree)
	}
	var list []*charm
	if d.Pod != nil && d.Pod.Action == cloud.PodFailure {
		return append(list, &charm{body: chosen(p, map[string]any{"action": string(cloud.PodFailure)})}), nil
	}
	for _, s := range running(p) {
		c := &charm{name: s.ContainerID, body: chosen(p, map[string]any{"containerNames": []any{s.Name}})}
		switch {
		case d.Stress != nil:
			c.body["stressors"] = stressors(d.Stress, degree)
		case len(d.Pod.Containers) > 0 && !slices.Contains(d.Pod.Containers, s.Name):
			continue
		default:
			c.once, c.body["action"] = true, string(cloud.ContainerKill)
		}
		list = append(list, c)
	}
	return list, nil
}

// running are the containers of a pod that run.
func running(p *v1.Pod) []v1.ContainerStatus {
	return slices.DeleteFunc(slices.Clone(p.Status.ContainerStatuses), func(s v1.ContainerStatus) bool {
		return s.State.Running == nil || s.ContainerID == ""
	})
}

// chosen adds to a spec that it is for a pod.
func chosen(p *v1.Pod, spec map[string]any) map[string]any {
	spec["mode"], spec["selector"] = "all", named(map[string]any{p.Namespace: []any{p.Name}})
	return spec
}

// named selects pods by name. The namespaces would be that of the object otherwise.
func named(pods map[string]any) map[string]any {
	var spaces []any
	for space := range pods {
		spaces = append(spaces, space)
	}
	slices.SortFunc(spaces, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return map[string]any{"namespaces": spaces, "pods": pods}
}

// networkCharms: a partition leaves nothing to disturb; bandwidth goes beside the other magnitudes, not with them.
func networkCharms(n *cloud.NetworkChaos, p *v1.Pod, degree float64, target map[string]any) ([]*charm, error) {
	if p.Spec.HostNetwork {
		return nil, fmt.Errorf("pod %s has the network of its node, which others use", p.Name)
	}
	spec := func(action string) map[string]any {
		s := chosen(p, map[string]any{"action": action, "direction": string(cloud.To)})
		if n.Direction != "" {
			s["direction"] = string(n.Direction)
		}
		if target != nil {
			s["target"] = map[string]any{"mode": "all", "selector": named(target)}
		}
		return s
	}
	if n.Partition {
		return []*charm{{body: spec("partition")}}, nil
	}
	var list []*charm
	netem := map[string]any{}
	for name, part := range map[string]float64{"loss": n.Loss, "duplicate": n.Duplicate, "corrupt": n.Corrupt} {
		if part > 0 {
			netem[name] = map[string]any{name: percentage(part * degree), "correlation": "0"}
		}
	}
	if n.Delay > 0 || n.Jitter > 0 {
		netem["delay"] = map[string]any{
			"latency": scaled(n.Delay, degree), "jitter": scaled(n.Jitter, degree), "correlation": "0",
		}
	}
	if len(netem) > 0 {
		s := spec("netem")
		for name, v := range netem {
			if s[name] = v; len(netem) == 1 {
				s["action"] = name
			}
		}
		list = append(list, &charm{body: s})
	}
	if n.Bandwidth > 0 {
		s := spec("bandwidth")
		s["bandwidth"] = bandwidth(n.Bandwidth, degree)
		list = append(list, &charm{body: s})
	}
	return list, nil
}

// percentage is a part of all as Chaos Mesh reads it.
func percentage(part float64) string {
	return strconv.FormatFloat(math.Round(part*1e6)/1e4, 'f', -1, 64)
}

func scaled(d time.Duration, degree float64) string {
	return time.Duration(float64(d) * degree).Round(time.Microsecond).String()
}

const (
	// leastBurst is how many bytes may be sent at once: a few packets. One that is longer would never be sent.
	leastBurst = 4096
	// queued is how many bytes may wait to be sent.
	queued = 1 << 20
)

// bandwidth is a limit. To a lower degree it is a higher one. Chaos Mesh's "bps" are bytes a second.
func bandwidth(rate int64, degree float64) map[string]any {
	r := max(1, int64(float64(rate)/degree))
	return map[string]any{"rate": fmt.Sprintf("%dbps", r), "limit": int64(queued), "buffer": max(leastBurst, r/100)}
}

// maxWorkers is how many Chaos Mesh has of a kind.
const maxWorkers = 8192

// stressors keep cores busy with as few workers as do, and hold memory with one.
func stressors(s *cloud.StressChaos, degree float64) map[string]any {
	all := map[string]any{}
	if cores := s.CPU * degree; cores > 0 {
		workers := min(maxWorkers, math.Ceil(cores))
		load := min(100, max(1, math.Round(100*cores/workers)))
		all["cpu"] = map[string]any{"workers": int64(workers), "load": int64(load)}
	}
	if bytes := int64(float64(s.Memory) * degree); bytes > 0 {
		all["memory"] = map[string]any{"workers": int64(1), "size": fmt.Sprintf("%dB", bytes)}
	}
	return all
}

// ioCharms: what fails and what takes longer are two.
func ioCharms(io *cloud.IOChaos, p *v1.Pod, degree float64) ([]*charm, error) {
	container, volume, err := volumeAt(p, path.Clean(io.Path))
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(running(p), func(s v1.ContainerStatus) bool { return s.Name == container })
	if i < 0 {
		return nil, nil
	}
	percent := io.Percent
	if percent == 0 {
		percent = 100
	}
	spec := func(action string) map[string]any {
		s := chosen(p, map[string]any{
			"action": action, "containerNames": []any{container}, "volumePath": volume,
			"percent": int64(max(1, math.Round(percent*degree))),
		})
		if clean := path.Clean(io.Path); clean != volume {
			s["path"] = clean + "/**/*"
		}
		if len(io.Methods) > 0 {
			var methods []any
			for _, m := range io.Methods {
				methods = append(methods, m)
			}
			s["methods"] = methods
		}
		return s
	}
	var list []*charm
	id := running(p)[i].ContainerID
	if io.Errno != "" {
		s := spec("fault")
		s["errno"] = linuxErrnos[io.Errno]
		list = append(list, &charm{name: id, body: s})
	}
	if io.Latency > 0 {
		s := spec("latency")
		s["delay"] = scaled(io.Latency, degree)
		list = append(list, &charm{name: id, body: s})
	}
	return list, nil
}

// volumeAt finds the container of a pod that has a volume which a path is on, and where the volume is mounted.
func volumeAt(p *v1.Pod, at string) (container, volume string, err error) {
	for _, c := range p.Spec.Containers {
		found := ""
		for _, m := range c.VolumeMounts {
			mount := path.Clean(m.MountPath)
			if (at == mount || strings.HasPrefix(at, mount+"/")) && len(mount) > len(found) {
				found = mount
			}
		}
		switch {
		case found == "":
		case container != "":
			return "", "", fmt.Errorf("%s is on volumes of %s and of %s in pod %s, and Chaos Mesh disturbs the files "+
				"of one container of a pod", at, container, c.Name, p.Name)
		default:
			container, volume = c.Name, found
		}
	}
	if container == "" {
		return "", "", fmt.Errorf("%s of pod %s is on no volume, and Chaos Mesh disturbs the files of volumes only", at,
			p.Name)
	}
	return container, volume, nil
}

// linuxErrnos are the numbers of errors on the machines that pods run on, whatever this one has.
var linuxErrnos = map[string]int64{
	"EPERM": 1, "ENOENT": 2, "EINTR": 4, "EIO": 5, "ENXIO": 6, "EBADF": 9, "EAGAIN": 11, "ENOMEM": 12, "EACCES": 13,
	"EFAULT": 14, "EBUSY": 16, "EEXIST": 17, "ENODEV": 19, "ENOTDIR": 20, "EISDIR": 21, "EINVAL": 22, "ENFILE": 23,
	"EMFILE": 24, "EFBIG": 27, "ENOSPC": 28, "EROFS": 30, "EPIPE": 32, "ENOSYS": 38, "EADDRINUSE": 98,
	"EADDRNOTAVAIL": 99, "ENETDOWN": 100, "ENETUNREACH": 101, "ECONNABORTED": 103, "ECONNRESET": 104, "ENOBUFS": 105,
	"ENOTCONN": 107, "ETIMEDOUT": 110, "ECONNREFUSED": 111, "EHOSTUNREACH": 113, "ESTALE": 116, "EDQUOT": 122,
}
