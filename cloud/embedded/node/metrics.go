package node

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
)

// exposition writes metrics in Prometheus' text format.
type exposition struct {
	w    *bufio.Writer
	last string
}

// sample writes one value. Samples of a metric must follow each other. Labels are name, value, ...
func (e *exposition) sample(name, kind, help string, value float64, labels ...string) {
	if name != e.last {
		fmt.Fprintf(e.w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
		e.last = name
	}
	e.w.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		sep := byte(',')
		if i == 0 {
			sep = '{'
		}
		e.w.WriteByte(sep)
		fmt.Fprintf(e.w, "%s=%s", labels[i], strconv.Quote(labels[i+1]))
	}
	if len(labels) > 0 {
		e.w.WriteByte('}')
	}
	fmt.Fprintf(e.w, " %s\n", strconv.FormatFloat(value, 'g', -1, 64))
}

func (k *kubelet) serveMetrics(write func(*exposition)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		e := &exposition{w: bufio.NewWriter(io.Writer(w))}
		write(e)
		_ = e.w.Flush()
	}
}

const (
	counter = "counter"
	gauge   = "gauge"
)

// containerMetric is one cAdvisor metric of a container.
type containerMetric struct {
	name, kind, help string
	value            func(*cri.ContainerStats) float64
	labels           []string
}

var cadvisor = []containerMetric{
	{
		"container_cpu_usage_seconds_total", counter, "Cumulative cpu time consumed in seconds.",
		func(c *cri.ContainerStats) float64 { return c.CPU.Seconds() },
		[]string{"cpu", "total"},
	},
	{
		"container_cpu_user_seconds_total", counter, "Cumulative user cpu time consumed in seconds.",
		func(c *cri.ContainerStats) float64 { return c.CPU.Seconds() }, nil,
	},
	{
		"container_cpu_system_seconds_total", counter, "Cumulative system cpu time consumed in seconds.",
		func(*cri.ContainerStats) float64 { return 0 }, nil,
	},
	{
		"container_cpu_cfs_periods_total", counter, "Number of elapsed enforcement period intervals.",
		func(c *cri.ContainerStats) float64 { return float64(c.Periods) }, nil,
	},
	{
		"container_cpu_cfs_throttled_periods_total", counter, "Number of throttled period intervals.",
		func(c *cri.ContainerStats) float64 { return float64(c.ThrottledPeriods) }, nil,
	},
	{
		"container_cpu_cfs_throttled_seconds_total", counter, "Total time duration the container has been throttled.",
		func(c *cri.ContainerStats) float64 { return c.Throttled.Seconds() }, nil,
	},
	{
		"container_cpu_load_average_10s", gauge, "Value of container cpu load average over the last 10 seconds.",
		func(*cri.ContainerStats) float64 { return 0 }, nil,
	}, // The kernel does not tell by default.
	{
		"container_memory_usage_bytes", gauge,
		"Current memory usage in bytes, including all memory regardless of when it was accessed",
		func(c *cri.ContainerStats) float64 { return float64(c.Memory) }, nil,
	},
	{"container_memory_working_set_bytes", gauge, "Current working set in bytes.", func(c *cri.ContainerStats) float64 {
		return float64(c.Memory)
	}, nil},
	{"container_memory_rss", gauge, "Size of RSS in bytes.", func(c *cri.ContainerStats) float64 {
		return float64(c.Memory)
	}, nil},
	{"container_memory_cache", gauge, "Number of bytes of page cache memory.", func(*cri.ContainerStats) float64 {
		return 0
	}, nil},
	{"container_memory_mapped_file", gauge, "Size of memory mapped files in bytes.", func(*cri.ContainerStats) float64 {
		return 0
	}, nil},
	{"container_memory_failcnt", counter, "Number of memory usage hits limits", func(c *cri.ContainerStats) float64 {
		return float64(c.OOMKills)
	}, nil},
	{
		"container_oom_events_total", counter, "Count of out of memory events observed for the container",
		func(c *cri.ContainerStats) float64 { return float64(c.OOMKills) }, nil,
	},
	{"container_spec_cpu_period", gauge, "CPU period of the container.", func(*cri.ContainerStats) float64 {
		return 100000
	}, nil},
	{"container_spec_cpu_quota", gauge, "CPU quota of the container.", func(c *cri.ContainerStats) float64 {
		return c.CPULimit * 100000
	}, nil},
	{"container_spec_cpu_shares", gauge, "CPU share of the container.", func(c *cri.ContainerStats) float64 {
		return float64(c.CPUShares)
	}, nil},
	{
		"container_spec_memory_limit_bytes", gauge, "Memory limit for the container.",
		func(c *cri.ContainerStats) float64 { return float64(c.MemoryLimit) }, nil,
	},
	{
		"container_fs_usage_bytes", gauge, "Number of bytes that are consumed by the container on this filesystem.",
		func(c *cri.ContainerStats) float64 { return float64(c.Files) },
		[]string{"device", "/dev/vda1"},
	},
	{
		"container_processes", gauge, "Number of processes running inside the container.",
		func(c *cri.ContainerStats) float64 { return float64(c.Processes) }, nil,
	},
	{"container_threads", gauge, "Number of threads running inside the container", func(c *cri.ContainerStats) float64 {
		return float64(c.Processes)
	}, nil},
	{
		"container_threads_max", gauge,
		"Maximum number of threads allowed inside the container, infinity if value is zero",
		func(*cri.ContainerStats) float64 { return 0 }, nil,
	},
	{
		"container_start_time_seconds", gauge, "Start time of the container since unix epoch in seconds.",
		func(c *cri.ContainerStats) float64 { return float64(c.Started.UnixMilli()) / 1000 }, nil,
	},
}

// podMetric is one cAdvisor metric of a pod's network.
type podMetric struct {
	name, help string
	value      func(*cri.PodStats) uint64
}

var podNetwork = []podMetric{
	{"container_network_receive_bytes_total", "Cumulative count of bytes received", func(p *cri.PodStats) uint64 {
		return p.Network.ReceivedBytes.Load()
	}},
	{
		"container_network_receive_errors_total", "Cumulative count of errors encountered while receiving",
		func(*cri.PodStats) uint64 { return 0 },
	},
	{"container_network_receive_packets_total", "Cumulative count of packets received", func(p *cri.PodStats) uint64 {
		return p.Network.ReceivedPackets.Load()
	}},
	{
		"container_network_receive_packets_dropped_total", "Cumulative count of packets dropped while receiving",
		func(p *cri.PodStats) uint64 { return p.Network.ReceivedDropped.Load() },
	},
	{"container_network_transmit_bytes_total", "Cumulative count of bytes transmitted", func(p *cri.PodStats) uint64 {
		return p.Network.SentBytes.Load()
	}},
	{
		"container_network_transmit_errors_total", "Cumulative count of errors encountered while transmitting",
		func(*cri.PodStats) uint64 { return 0 },
	},
	{
		"container_network_transmit_packets_total", "Cumulative count of packets transmitted",
		func(p *cri.PodStats) uint64 { return p.Network.SentPackets.Load() },
	},
	{
		"container_network_transmit_packets_dropped_total", "Cumulative count of packets dropped while transmitting",
		func(p *cri.PodStats) uint64 { return p.Network.SentDropped.Load() },
	},
}

// cadvisorMetrics are the containers' figures under cAdvisor's names.
func (k *kubelet) cadvisorMetrics(e *exposition) {
	pods := k.machine.runtime.Stats()
	for _, m := range cadvisor {
		for i := range pods {
			for j := range pods[i].Containers {
				c := &pods[i].Containers[j]
				labels := append([]string{
					"container", c.Name, "id", "/kubepods/pod" + c.PodUID + "/" + c.ID, "image",
					c.Image, "name", c.ID, "namespace", c.Namespace, "pod", c.Pod,
				}, m.labels...)
				e.sample(m.name, m.kind, m.help, m.value(c), labels...)
			}
		}
	}
	for _, m := range podNetwork {
		for i := range pods {
			if p := &pods[i]; !p.HostNetwork {
				e.sample(m.name, counter, m.help, float64(m.value(p)), "container", "", "id", "/kubepods/pod"+p.UID,
					"image", "", "interface", "eth0", "name", "", "namespace", p.Namespace, "pod", p.Name)
			}
		}
	}
	e.sample("machine_cpu_cores", gauge, "Number of logical CPU cores.", float64(k.node.spec.Cores))
	e.sample("machine_memory_bytes", gauge, "Amount of memory installed on the machine.", float64(k.node.spec.Memory))
}

// resourceMetrics are the figures metrics-server reads.
func (k *kubelet) resourceMetrics(e *exposition) {
	s := k.summary()
	pods := k.machine.runtime.Stats()
	type family struct {
		name, kind, help string
		value            func(*cri.ContainerStats) float64
	}
	for _, f := range []family{
		{
			"container_cpu_usage_seconds_total", counter,
			"[STABLE] Cumulative cpu time consumed by the container in core-seconds",
			func(c *cri.ContainerStats) float64 { return c.CPU.Seconds() },
		},
		{
			"container_memory_working_set_bytes", gauge, "[STABLE] Current working set of the container in bytes",
			func(c *cri.ContainerStats) float64 { return float64(c.Memory) },
		},
		{
			"container_start_time_seconds", gauge, "[STABLE] Start time of the container since unix epoch in seconds",
			func(c *cri.ContainerStats) float64 { return float64(c.Started.UnixMilli()) / 1000 },
		},
	} {
		for i := range pods {
			for j := range pods[i].Containers {
				c := &pods[i].Containers[j]
				e.sample(f.name, f.kind, f.help, f.value(c), "container", c.Name, "namespace", c.Namespace, "pod",
					c.Pod)
			}
		}
	}
	e.sample("node_cpu_usage_seconds_total", counter,
		"[STABLE] Cumulative cpu time consumed by the node in core-seconds",
		float64(*s.Node.CPU.UsageCoreNanoSeconds)/1e9)
	e.sample("node_memory_working_set_bytes", gauge, "[STABLE] Current working set of the node in bytes",
		float64(*s.Node.Memory.WorkingSetBytes))
	for _, p := range s.Pods {
		e.sample("pod_cpu_usage_seconds_total", counter,
			"[STABLE] Cumulative cpu time consumed by the pod in core-seconds",
			float64(*p.CPU.UsageCoreNanoSeconds)/1e9, "namespace", p.PodRef.Namespace, "pod", p.PodRef.Name)
	}
	for _, p := range s.Pods {
		e.sample("pod_memory_working_set_bytes", gauge, "[STABLE] Current working set of the pod in bytes",
			float64(*p.Memory.WorkingSetBytes), "namespace", p.PodRef.Namespace, "pod", p.PodRef.Name)
	}
	e.sample("resource_scrape_error", gauge,
		"[STABLE] 1 if there was an error while getting container metrics, 0 otherwise", 0)
}

// kubeletMetrics are the kubelet's own figures.
func (k *kubelet) kubeletMetrics(e *exposition) {
	pods := k.machine.runtime.Stats()
	running := 0
	for _, p := range pods {
		running += len(p.Containers)
	}
	e.sample("kubelet_node_name", gauge, "[ALPHA] The node's name. The count is always 1.", 1, "node", k.node.spec.Name)
	e.sample("kubelet_running_pods", gauge, "[ALPHA] Number of pods that have a running pod sandbox",
		float64(len(pods)))
	e.sample("kubelet_running_containers", gauge, "[ALPHA] Number of containers currently running", float64(running),
		"container_state", "running")
	for _, m := range []struct {
		name, help string
		value      func(capacity, used, available uint64) uint64
	}{
		{"kubelet_volume_stats_capacity_bytes", "[ALPHA] Capacity in bytes of the volume", func(c, _, _ uint64) uint64 {
			return c
		}},
		{"kubelet_volume_stats_used_bytes", "[ALPHA] Number of used bytes in the volume", func(_, u, _ uint64) uint64 {
			return u
		}},
		{
			"kubelet_volume_stats_available_bytes", "[ALPHA] Number of available bytes in the volume",
			func(_, _, a uint64) uint64 { return a },
		},
	} {
		for _, p := range k.summary().Pods {
			for _, v := range p.VolumeStats {
				if v.PVCRef != nil {
					e.sample(m.name, gauge, m.help, float64(m.value(*v.CapacityBytes, *v.UsedBytes, *v.AvailableBytes)),
						"namespace", v.PVCRef.Namespace, "persistentvolumeclaim", v.PVCRef.Name)
				}
			}
		}
	}
	e.sample("kubernetes_build_info", gauge, "[BETA] A metric with a constant '1' value", 1, "git_version",
		k.node.fleet.cfg.Version, "major", "1", "minor", strings.Split(k.node.fleet.cfg.Version+"..", ".")[1])
}
