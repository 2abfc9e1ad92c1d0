package chaos

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded/cri"
)

// containerKind does something to the containers of pods.
type containerKind struct {
	engine *Engine
	effect func(pod string, degree float64) cri.Effect

	degree    float64
	disturbed map[string]*v1.Pod // by UID
	names     map[string]string  // by UID, of all pods there have been
	born      map[string]int     // how many of a kind
}

func (k *containerKind) apply(_ context.Context, pods []*v1.Pod, degree float64) (time.Duration, error) {
	if degree == 0 {
		k.end()
		return 0, nil
	}
	now := map[string]*v1.Pod{}
	var changed []string
	for _, p := range pods {
		k.count(p)
		uid := string(p.UID)
		now[uid] = p
		if k.disturbed[uid] == nil || degree != k.degree {
			changed = append(changed, uid)
		}
	}
	if len(changed) > 0 {
		k.engine.setEffect(k, func(uid string) cri.Effect { return k.effect(k.names[uid], degree) }, changed)
	}
	var left []string
	cluster := k.engine.current()
	for uid, p := range k.disturbed {
		switch {
		case now[uid] != nil:
		case cluster.exists(p):
			left = append(left, uid)
		default: // What is being torn down is left as it is.
			now[uid] = p
		}
	}
	k.engine.setEffect(k, nil, left)
	k.disturbed, k.degree = now, degree
	return 0, nil
}

// count gives a pod a name that is the same in another run, where controllers make up other ones: what
// it is one of, and which one.
func (k *containerKind) count(p *v1.Pod) {
	if k.names == nil {
		k.names, k.born = map[string]string{}, map[string]int{}
	}
	if k.names[string(p.UID)] == "" {
		kind := p.Namespace + "/" + cmp.Or(p.GenerateName, p.Name)
		k.names[string(p.UID)] = fmt.Sprint(kind, "#", k.born[kind])
		k.born[kind]++
	}
}

func (k *containerKind) end() {
	uids := make([]string, 0, len(k.disturbed))
	for uid := range k.disturbed {
		uids = append(uids, uid)
	}
	k.disturbed = nil
	k.engine.setEffect(k, nil, uids)
}

// effectOf returns what a disturbance does to a pod's containers, to a degree.
func (e *Engine) effectOf(s cloud.Disturbance) func(pod string, degree float64) cri.Effect {
	switch {
	case s.Pod != nil && s.Pod.Action == cloud.PodFailure:
		return func(string, float64) cri.Effect { return cri.Effect{Hang: true} }
	case s.Pod != nil:
		return func(string, float64) cri.Effect { return cri.Effect{Kill: true, Containers: s.Pod.Containers} }
	case s.Stress != nil:
		return func(_ string, degree float64) cri.Effect {
			return cri.Effect{CPU: s.Stress.CPU * degree, Memory: int64(float64(s.Stress.Memory) * degree)}
		}
	case s.IO != nil:
		return func(pod string, degree float64) cri.Effect { return e.ioEffect(s.IO, pod, degree) }
	}
	return func(pod string, degree float64) cri.Effect { return e.kernelEffect(s.Kernel, pod, degree) }
}

// part turns a percentage of which 0 means all into a part.
func part(percent, degree float64) float64 {
	if percent == 0 {
		percent = 100
	}
	return percent / 100 * degree
}

func (e *Engine) ioEffect(c *cloud.IOChaos, pod string, degree float64) cri.Effect {
	hits, errno, wait, root := e.chance(pod, part(c.Percent, degree)), errnoOf(c.Errno), scale(c.Latency, degree),
		path.Clean(c.Path)
	below := func(name string) bool {
		return root == "/" || name == root || strings.HasPrefix(name, root+"/")
	}
	return cri.Effect{Files: func(method string, paths ...string) (time.Duration, syscall.Errno) {
		if len(c.Methods) > 0 && !slices.Contains(c.Methods, method) || !slices.ContainsFunc(paths, below) ||
			!hits("io "+method) {
			return 0, 0
		}
		return wait, errno
	}}
}

// synonyms are calls that come to the same.
var synonyms = map[string]string{"send": "write", "recv": "read", "open": "openat", "brk": "mmap"}

func (e *Engine) kernelEffect(c *cloud.KernelChaos, pod string, degree float64) cri.Effect {
	hits, errno, call := e.chance(pod, part(c.Percent, degree)), errnoOf(c.Errno), c.Call
	if s, ok := synonyms[call]; ok {
		call = s
	}
	return cri.Effect{Calls: func(name string) syscall.Errno {
		if name != call || !hits("call "+name) {
			return 0
		}
		return errno
	}}
}

func errnoOf(name string) syscall.Errno {
	errno, _ := cloud.Errno(name) // The name is valid.
	return errno
}
