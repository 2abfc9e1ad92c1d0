package cloud

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"
)

// IOMethods are the file operations an IOChaos can name.
var IOMethods = []string{
	"open", "create", "read", "write", "fsync", "flush", "getattr", "setattr", "opendir", "readdir", "readlink",
	"mkdir", "unlink", "rmdir", "rename", "link", "symlink", "statfs", "setlk",
}

// KernelCalls are the calls a KernelChaos can name. Reading and writing are those of sockets, for
// files there is IOChaos; mmap and brk are a program's growth.
var KernelCalls = []string{
	"socket", "connect", "bind", "listen", "accept", "send", "recv", "write", "read", "open",
	"openat", "mmap", "brk",
}

// Validate says all that is wrong with d, in one line.
func (d Disturbance) Validate() error {
	var p problems
	d.Selector.check(&p, "selector")
	d.Schedule.check(&p)
	kinds := 0
	if c := d.Pod; c != nil {
		kinds++
		c.check(&p)
	}
	if c := d.Network; c != nil {
		kinds++
		c.check(&p)
	}
	if c := d.Stress; c != nil {
		kinds++
		c.check(&p)
	}
	if c := d.IO; c != nil {
		kinds++
		c.check(&p)
	}
	if c := d.Kernel; c != nil {
		kinds++
		c.check(&p)
	}
	if kinds != 1 {
		p.add("kind", "set exactly one of pod, network, stress, io and kernel, not %d", kinds)
	}
	return p.err()
}

// problems collects what is wrong, field by field.
type problems []string

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, field+": "+fmt.Sprintf(format, args...))
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return errors.New("disturbance: " + strings.Join(p, "; "))
}

// oneOf checks a word.
func (p *problems) oneOf(field, value string, accepted []string) {
	if !slices.Contains(accepted, value) {
		p.add(field, "%q is not one of %s", value, strings.Join(accepted, ", "))
	}
}

// within checks a number.
func (p *problems) within(field string, value, low, high float64) {
	switch {
	case value >= low && value <= high:
	case math.IsInf(high, 1):
		p.add(field, "%v is not a number from %v up", value, low)
	default:
		p.add(field, "%v is not a number from %v to %v", value, low, high)
	}
}

func (p *problems) notNegative(field string, value time.Duration) {
	if value < 0 {
		p.add(field, "%v is negative", value)
	}
}

func (s Selector) check(p *problems, field string) {
	switch {
	case s.Namespace == "" && len(s.Labels) == 0 && s.Pod == "" && s.Service == "" && s.Node == "":
		p.add(field, "set at least one of namespace, labels, pod, service and node")
	case s.Namespace == "" && s.Pod != "":
		p.add(field+".namespace", "say which namespace pod %q is in", s.Pod)
	case s.Namespace == "" && s.Service != "":
		p.add(field+".namespace", "say which namespace service %q is in", s.Service)
	}
}

func (s Schedule) check(p *problems) {
	p.notNegative("schedule.every", s.Every)
	p.notNegative("schedule.for", s.For)
	p.notNegative("schedule.ramp", s.Ramp)
	switch {
	case s.Every == 0 && s.For > 0:
		p.add("schedule.every", "is required with for: how often %v of effect begin", s.For)
	case s.Every > 0 && s.For == 0:
		p.add("schedule.for", "is required with every: how much of each %v has effect", s.Every)
	case s.For > s.Every:
		p.add("schedule.for", "%v is more than every, %v", s.For, s.Every)
	}
}

func (c *PodChaos) check(p *problems) {
	p.oneOf("pod.action", string(c.Action), []string{string(PodKill), string(PodFailure), string(ContainerKill)})
	if len(c.Containers) > 0 && c.Action != ContainerKill {
		p.add("pod.containers", "only %s chooses containers", ContainerKill)
	}
}

func (c *NetworkChaos) check(p *problems) {
	p.within("network.loss", c.Loss, 0, 1)
	p.within("network.duplicate", c.Duplicate, 0, 1)
	p.within("network.corrupt", c.Corrupt, 0, 1)
	p.notNegative("network.delay", c.Delay)
	p.notNegative("network.jitter", c.Jitter)
	p.within("network.bandwidth", float64(c.Bandwidth), 0, math.Inf(1))
	if c.Loss == 0 && c.Duplicate == 0 && c.Corrupt == 0 && c.Delay == 0 && c.Jitter == 0 && c.Bandwidth == 0 &&
		!c.Partition {
		p.add("network", "set at least one of loss, delay, jitter, duplicate, corrupt, bandwidth and partition")
	}
	if c.Direction != "" {
		p.oneOf("network.direction", string(c.Direction), []string{string(To), string(From), string(Both)})
	}
	if c.Target != nil {
		c.Target.check(p, "network.target")
	}
}

func (c *StressChaos) check(p *problems) {
	p.within("stress.cpu", c.CPU, 0, math.Inf(1))
	p.within("stress.memory", float64(c.Memory), 0, math.Inf(1))
	if c.CPU == 0 && c.Memory == 0 {
		p.add("stress", "set cpu (cores), memory (bytes) or both")
	}
}

func (c *IOChaos) check(p *problems) {
	if !path.IsAbs(c.Path) {
		p.add("io.path", "%q is not an absolute path; \"/\" is all files", c.Path)
	}
	for _, m := range c.Methods {
		p.oneOf("io.methods", m, IOMethods)
	}
	if c.Errno != "" {
		p.oneOf("io.errno", c.Errno, errnoNames())
	}
	p.within("io.percent", c.Percent, 0, 100)
	p.notNegative("io.latency", c.Latency)
	if c.Errno == "" && c.Latency == 0 {
		p.add("io", "set errno, latency or both")
	}
}

func (c *KernelChaos) check(p *problems) {
	p.oneOf("kernel.call", c.Call, KernelCalls)
	p.oneOf("kernel.errno", c.Errno, errnoNames())
	p.within("kernel.percent", c.Percent, 0, 100)
}
