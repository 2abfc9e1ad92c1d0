package node

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/events"
	volumevalidation "k8s.io/kubernetes/pkg/volume/validation"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
)

// How long the kubelet waits before it tries to mount a volume again.
const (
	mountRetryInitial = 500 * time.Millisecond
	mountRetryMax     = 2*time.Minute + 2*time.Second
)

// volumeError is a volume that could not be mounted yet.
type volumeError struct {
	err   error
	retry time.Duration
}

func (e *volumeError) Error() string { return e.err.Error() }

// podVolumes are the volumes of one pod.
type podVolumes struct {
	worker *worker
	retry  time.Duration // of the last failure
	failed time.Time

	mu      sync.Mutex
	mounted map[string]*volume
}

// volume is a mounted volume.
type volume struct {
	hostPath string
	readOnly bool
	memory   *memoryVolume // of an emptyDir in memory
}

func newPodVolumes(w *worker) *podVolumes {
	return &podVolumes{worker: w, mounted: map[string]*volume{}}
}

// path returns where on the node a volume is.
func (v *podVolumes) path(name string) (string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	m := v.mounted[name]
	if m == nil {
		return "", false
	}
	return m.hostPath, true
}

// inMemory returns the files of an emptyDir in memory, or nil if it is none.
func (v *podVolumes) inMemory(name string) *vfs.Tree {
	v.mu.Lock()
	defer v.mu.Unlock()
	if m := v.mounted[name]; m != nil && m.memory != nil {
		return m.memory.tree
	}
	return nil
}

// volumeDir is where the kubelet of a real node puts a volume of the given plug-in.
func (v *podVolumes) volumeDir(plugin, name string) string {
	return path.Join(podDir(v.worker.uid), "volumes", "kubernetes.io~"+plugin, name)
}

// mount makes all volumes of the pod available and brings those that mirror objects up to date.
func (v *podVolumes) mount(ctx context.Context, pod *v1.Pod) error {
	k := v.worker.kubelet
	clk := k.node.fleet.cfg.Clock
	var failure error
	for i := range pod.Spec.Volumes {
		spec := &pod.Spec.Volumes[i]
		m, err := v.setUp(ctx, pod, spec)
		if err == nil {
			v.mu.Lock()
			v.mounted[spec.Name] = m
			v.mu.Unlock()
			continue
		}
		v.mu.Lock()
		known := v.mounted[spec.Name] != nil
		v.mu.Unlock()
		if known {
			continue // The source is gone; what was projected stays, as on a real node.
		}
		if wait := v.retry - clk.Since(v.failed); v.retry > 0 && wait > 0 {
			return &volumeError{err, wait} // Woken early: do not repeat the event.
		}
		k.recorder.Eventf(pod, v1.EventTypeWarning, events.FailedMountVolume,
			"MountVolume.SetUp failed for volume %q : %v", spec.Name, err)
		failure = err
	}
	if failure == nil {
		v.retry = 0
		return nil
	}
	v.failed = clk.Now()
	v.retry = min(max(2*v.retry, mountRetryInitial), mountRetryMax)
	return &volumeError{failure, v.retry}
}

// setUp mounts one volume; it is called again and again while the pod runs.
func (v *podVolumes) setUp(ctx context.Context, pod *v1.Pod, spec *v1.Volume) (*volume, error) {
	v.mu.Lock()
	known := v.mounted[spec.Name]
	v.mu.Unlock()
	s := &spec.VolumeSource
	switch {
	case s.ConfigMap != nil, s.Secret != nil, s.DownwardAPI != nil, s.Projected != nil:
		return v.project(ctx, pod, spec)
	case known != nil:
		return known, nil
	case s.EmptyDir != nil:
		return v.emptyDir(pod, spec.Name, s.EmptyDir)
	case s.HostPath != nil:
		return v.hostPath(s.HostPath.Path, s.HostPath.Type)
	case s.PersistentVolumeClaim != nil:
		return v.claim(pod, s.PersistentVolumeClaim.ClaimName, s.PersistentVolumeClaim.ReadOnly)
	case s.Ephemeral != nil:
		return v.claim(pod, pod.Name+"-"+spec.Name, false)
	case s.Image != nil:
		return &volume{readOnly: true}, nil // The runtime mounts it.
	}
	return nil, fmt.Errorf("no volume plugin matched name: %s", spec.Name)
}

func (v *podVolumes) emptyDir(pod *v1.Pod, name string, s *v1.EmptyDirVolumeSource) (*volume, error) {
	n := v.worker.kubelet.machine
	m := &volume{hostPath: v.volumeDir("empty-dir", name)}
	env := n.env()
	if err := env.MkdirAll(m.hostPath, 0o777); err != nil {
		return nil, err
	}
	if s.Medium == v1.StorageMediumMemory {
		size := n.spec.Memory / 2
		if s.SizeLimit != nil && !s.SizeLimit.IsZero() {
			size = s.SizeLimit.Value()
		}
		var err error
		if m.memory, err = n.mountMemory(m.hostPath, size); err != nil {
			return nil, err
		}
	}
	if err := env.FS.Chmod(m.hostPath, 0o777); err != nil {
		return nil, err
	}
	return m, v.own(pod, m)
}

// own gives a volume to the pod's fsGroup.
func (v *podVolumes) own(pod *v1.Pod, m *volume) error {
	sc := pod.Spec.SecurityContext
	if sc == nil || sc.FSGroup == nil {
		return nil
	}
	if m.memory != nil {
		return m.memory.tree.Own("/", int(*sc.FSGroup), m.readOnly)
	}
	return v.worker.kubelet.machine.tree.Own(m.hostPath, int(*sc.FSGroup), m.readOnly)
}

// hostPath mounts a path of the node, which must be what its type says.
func (v *podVolumes) hostPath(name string, kind *v1.HostPathType) (*volume, error) {
	env := v.worker.kubelet.machine.env()
	want := v1.HostPathUnset
	if kind != nil {
		want = *kind
	}
	fi, err := env.FS.Stat(name)
	exists := err == nil
	is := func(ok bool, what string) error {
		if !exists || !ok {
			return fmt.Errorf("hostPath type check failed: %s is not a %s", name, what)
		}
		return nil
	}
	mode := func() fs.FileMode {
		if !exists {
			return 0
		}
		return fi.Mode()
	}()
	switch want {
	case v1.HostPathDirectoryOrCreate, v1.HostPathUnset:
		if !exists {
			err = env.MkdirAll(name, 0o755)
		} else if want != v1.HostPathUnset {
			err = is(mode.IsDir(), "directory")
		}
	case v1.HostPathFileOrCreate:
		if !exists {
			err = env.WriteFile(name, nil, 0o644)
		} else {
			err = is(mode.IsRegular(), "file")
		}
	case v1.HostPathDirectory:
		err = is(mode.IsDir(), "directory")
	case v1.HostPathFile:
		err = is(mode.IsRegular(), "file")
	case v1.HostPathSocket:
		err = is(mode&fs.ModeSocket != 0, "socket file")
	case v1.HostPathCharDev:
		err = is(mode&fs.ModeCharDevice != 0, "character device")
	case v1.HostPathBlockDev:
		err = is(mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0, "block device")
	}
	if err != nil {
		return nil, err
	}
	return &volume{hostPath: name}, nil
}

// claim mounts the persistent volume that is bound to a claim.
func (v *podVolumes) claim(pod *v1.Pod, name string, readOnly bool) (*volume, error) {
	w := v.worker.kubelet.watches
	c, err := w.claims.PersistentVolumeClaims(pod.Namespace).Get(name)
	if err != nil {
		return nil, fmt.Errorf("error processing PVC %s/%s: %w", pod.Namespace, name, err)
	}
	if c.Status.Phase != v1.ClaimBound || c.Spec.VolumeName == "" {
		return nil, fmt.Errorf("error processing PVC %s/%s: PVC is not bound", pod.Namespace, name)
	}
	pv, err := w.volumes.Get(c.Spec.VolumeName)
	if err != nil {
		return nil, err
	}
	var m *volume
	switch s := pv.Spec.PersistentVolumeSource; {
	case s.HostPath != nil:
		m, err = v.hostPath(s.HostPath.Path, s.HostPath.Type)
	case s.Local != nil:
		kind := v1.HostPathDirectory
		m, err = v.hostPath(s.Local.Path, &kind)
	default:
		return nil, fmt.Errorf("persistent volume %s has a type this node has no plugin for", pv.Name)
	}
	if err != nil {
		return nil, err
	}
	m.readOnly = readOnly
	return m, v.own(pod, m)
}

// mountsFor returns the mounts of a container.
func (v *podVolumes) mountsFor(c *v1.Container, vars []kubecontainer.EnvVar,
	images kubecontainer.ImageVolumes,
) ([]kubecontainer.Mount, error) {
	env := v.worker.kubelet.machine.env()
	var list []kubecontainer.Mount
	for _, m := range c.VolumeMounts {
		v.mu.Lock()
		vol := v.mounted[m.Name]
		v.mu.Unlock()
		if vol == nil {
			return nil, fmt.Errorf("cannot find volume %q to mount into container %q", m.Name, c.Name)
		}
		sub := m.SubPath
		if m.SubPathExpr != "" {
			var err error
			if sub, err = kubecontainer.ExpandContainerVolumeMounts(m, vars); err != nil {
				return nil, err
			}
		}
		if strings.HasPrefix(sub, "/") {
			return nil, fmt.Errorf("error SubPath `%s` must not be an absolute path", sub)
		}
		if err := volumevalidation.ValidatePathNoBacksteps(sub); err != nil {
			return nil, fmt.Errorf("unable to provision SubPath `%s`: %w", sub, err)
		}
		mount := kubecontainer.Mount{
			Name: m.Name, ContainerPath: path.Clean("/" + m.MountPath),
			ReadOnly: m.ReadOnly || vol.readOnly,
		}
		if image := images[m.Name]; image != nil {
			mount.Image, mount.ImageSubPath = image, sub
		} else {
			mount.HostPath = path.Join(vol.hostPath, sub)
			if _, err := env.FS.Stat(mount.HostPath); sub != "" && err != nil {
				if err := v.makeSub(vol.hostPath, sub); err != nil {
					return nil, fmt.Errorf("failed to create subPath directory for volumeMount %q of container %q",
						m.Name, c.Name)
				}
			}
		}
		list = append(list, mount)
	}
	return list, nil
}

// makeSub creates a sub-directory with the volume's own mode.
func (v *podVolumes) makeSub(dir, sub string) error {
	env := v.worker.kubelet.machine.env()
	fi, err := env.FS.Stat(dir)
	if err != nil {
		return err
	}
	if err := env.MkdirAll(path.Join(dir, sub), fi.Mode().Perm()); err != nil {
		return err
	}
	return env.FS.Chmod(path.Join(dir, sub), fi.Mode())
}

// resize changes the size of an emptyDir in memory.
func (v *podVolumes) resize(name string, size *resource.Quantity) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if m := v.mounted[name]; m != nil && m.memory != nil && size != nil {
		m.memory.disk.Total = size.Value()
	}
	return nil
}

// unmount removes the pod's volumes and what only they held.
func (v *podVolumes) unmount() error {
	n := v.worker.kubelet.machine
	v.mu.Lock()
	for _, m := range v.mounted {
		if m.memory != nil {
			n.unmountMemory(m.hostPath)
		}
	}
	v.mounted = map[string]*volume{}
	v.mu.Unlock()
	return n.env().RemoveAll(podDir(v.worker.uid) + "/volumes")
}
