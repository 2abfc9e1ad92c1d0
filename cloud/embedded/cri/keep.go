package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/kit"
)

// This file keeps what a running container has, so that it can be put back later: its own files, its volumes, and what
// its main program hands over of its memory. The container runs on. To put it back, it is killed, its files are
// replaced, and the pod's next container is started on them.

// What may be kept of one container.
const (
	MaxKept      = 64 << 20 // bytes
	maxKeptFiles = 20_000
	keepPatience = 5 * time.Second // for a program to hand over its data
)

// Kept is a container as it was at a moment.
type Kept struct {
	At        time.Time
	Bytes     int64
	container *Container
	root      *vfs.Tree
	places    []keptPlace
	memory    any
	ear       *ear
}

// keptPlace is a file or directory of the node that is mounted in a container, or used by its pod.
type keptPlace struct {
	path    string
	lasting bool // it is there without the pod
	files   *vfs.Tree
}

// systemDirs are where a node has what is its own, or other containers'.
var systemDirs = []string{
	"/dev", "/etc", "/proc", "/run", "/sys", "/usr", "/var/lib/containerd", "/var/lib/kubelet", "/var/log",
}

// overlap reports whether one of two paths is in the other.
func overlap(a, b string) bool { return within(a, b) || within(b, a) }

func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// Keep records a running container, before a command is run in it. Volumes are where on the node the volumes are that
// are the pod's own, and claims those that outlive it. The error says why it cannot be kept.
func (r *Runtime) Keep(ctx context.Context, id string, volumes, claims, command []string) (*Kept, error) {
	c, err := r.running(id)
	if err != nil {
		return nil, errors.New("it does not run")
	}
	k := &Kept{At: r.cfg.Now(), container: c, ear: &ear{command: command}}
	options := c.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	if options.GetPid() != runtimeapi.NamespaceMode_CONTAINER {
		return nil, errors.New("it shares processes with others, whose files can be reached by them")
	}
	if err := c.findPlaces(k, volumes, claims); err != nil {
		return nil, err
	}
	root := containerDir(c.id) + "/rootfs"
	var size int64
	if k.memory, size, err = c.keepMemory(ctx); err != nil {
		return nil, err
	}
	if err := r.checkSize(k, root, size); err != nil {
		return nil, err
	}
	if k.root, err = r.cfg.Files.Copy(root); err != nil {
		return nil, err
	}
	for i := range k.places {
		if k.places[i].files, err = r.cfg.Files.Copy(k.places[i].path); err != nil {
			return nil, err
		}
	}
	c.listen(k.ear)
	return k, nil
}

// checkSize refuses what is more than is kept.
func (r *Runtime) checkSize(k *Kept, root string, memory int64) error {
	bytes, files, err := r.cfg.Files.Size(root)
	for _, p := range k.places {
		if err != nil {
			break
		}
		var b int64
		var f int
		b, f, err = r.cfg.Files.Size(p.path)
		bytes, files = bytes+b, files+f
	}
	if err != nil {
		return err
	}
	if k.Bytes = bytes + memory; k.Bytes > MaxKept || files > maxKeptFiles {
		return fmt.Errorf("it has %d MB in %d files, and no more than %d MB in %d files are kept of a container",
			k.Bytes>>20, files, MaxKept>>20, maxKeptFiles)
	}
	return nil
}

// findPlaces lists what the container can write to on its node.
func (c *Container) findPlaces(k *Kept, volumes, claims []string) error {
	pod := "/var/lib/kubelet/pods/" + c.sandbox.podUID()
	add := func(name string, lasting bool) {
		if !slices.ContainsFunc(k.places, func(p keptPlace) bool { return p.path == name }) {
			k.places = append(k.places, keptPlace{path: name, lasting: lasting})
		}
	}
	for _, name := range []string{"resolv.conf", "hostname"} {
		add(c.sandbox.dir()+"/"+name, false)
	}
	for _, m := range c.config.Mounts {
		at := func(dir string) bool { return within(m.HostPath, dir) }
		volume, claim := slices.IndexFunc(volumes, at), slices.IndexFunc(claims, at)
		switch {
		case m.Readonly || m.GetImage().GetImage() != "" || projected(pod, m.HostPath):
			continue
		case claim >= 0 && slices.ContainsFunc(systemDirs, func(d string) bool { return overlap(claims[claim], d) }):
			return fmt.Errorf("its volume at %s is a part of its node's own files", m.ContainerPath)
		case claim >= 0:
			add(claims[claim], true)
		case volume >= 0:
			add(volumes[volume], false)
		case within(m.HostPath, pod+"/volumes"), !within(m.HostPath, pod):
			return fmt.Errorf("what is mounted at %s is its node's", m.ContainerPath)
		default: // /etc/hosts and the like, which the pod's containers have in common.
			add(m.HostPath, false)
			continue
		}
		if other := c.runtime.sharer(c, k.places[len(k.places)-1].path); other != "" {
			return fmt.Errorf("container %s writes to its volume at %s as well", other, m.ContainerPath)
		}
	}
	return nil
}

// projected reports whether a path is in a volume that mirrors objects of the API: the kubelet keeps it up to date.
func projected(pod, name string) bool {
	rest, ok := strings.CutPrefix(name, pod+"/volumes/kubernetes.io~")
	plugin, _, _ := strings.Cut(rest, "/")
	return ok && slices.Contains([]string{"configmap", "secret", "projected", "downward-api"}, plugin)
}

// sharer names another running container that writes to a volume; "" if there is none.
func (r *Runtime) sharer(c *Container, volume string) string {
	for _, other := range r.containersOf("") {
		if other == c || !other.runs() {
			continue
		}
		for _, m := range other.config.Mounts {
			if !m.Readonly && m.HostPath != "" && overlap(m.HostPath, volume) {
				return other.config.GetMetadata().GetName()
			}
		}
	}
	return ""
}

// addKeeping notes how a program hands over its data.
func (c *Container) addKeeping(f kit.Keeping) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keeping = append(c.keeping, f)
}

// keepMemory has the main program hand over its data. One that panics ends nothing but that.
func (c *Container) keepMemory(ctx context.Context) (data any, bytes int64, err error) {
	c.mu.Lock()
	keeping := slices.Clone(c.keeping)
	c.mu.Unlock()
	if len(keeping) == 0 {
		return nil, 0, nil
	}
	if len(keeping) > 1 {
		return nil, 0, kit.ErrNotKept // Whose is whose could not be told.
	}
	ctx, cancel := context.WithTimeout(ctx, keepPatience)
	defer cancel()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("keep the data of %s: panic: %v\n%s", c.config.GetMetadata().GetName(), r, debug.Stack())
		}
	}()
	return keeping[0](ctx)
}

// PutBack has a container be what another of the same name in its pod was when it was kept. It is killed, and the
// pod's next one is started. If it is of another pod, it gets back the volumes that outlive pods, and nothing else.
func (r *Runtime) PutBack(id string, k *Kept) error {
	c, err := r.container(id)
	if err != nil {
		return errors.New("it is gone")
	}
	c.kill()
	c.mu.Lock()
	started := c.main != nil
	c.mu.Unlock()
	if started {
		<-c.done
	}
	same := c.sandbox.podUID() == k.container.sandbox.podUID()
	if same { // Its room is needed.
		if err := r.env().RemoveAll(containerDir(c.id) + "/rootfs"); err != nil {
			return err
		}
	}
	if err := r.FillPlaces(k, !same); err != nil {
		return err
	}
	r.mu.Lock()
	ready := c.sandbox.ready
	r.mu.Unlock()
	if !ready {
		return errors.New("its pod has ended")
	}
	return r.startNext(c, k, same)
}

// FillPlaces puts the volumes back, or only those that outlive pods.
func (r *Runtime) FillPlaces(k *Kept, lasting bool) error {
	for _, p := range k.places {
		if lasting && !p.lasting {
			continue
		}
		err := r.cfg.Files.Fill(p.path, p.files)
		if err != nil && (p.lasting || !errors.Is(err, fs.ErrNotExist)) { // A sandbox may have been replaced.
			return err
		}
	}
	return nil
}

// startNext starts the container that follows one, with the files and the data that were kept, or new ones.
func (r *Runtime) startNext(c *Container, k *Kept, files bool) error {
	config, err := c.nextConfig()
	if err != nil {
		return err
	}
	next, id := k.memory, newID()
	if files {
		root := containerDir(id) + "/rootfs"
		if err := r.env().MkdirAll(root, 0o711); err != nil {
			return err
		}
		if err := r.cfg.Files.Fill(root, k.root); err != nil {
			return err
		}
	} else {
		next = nil
	}
	n, err := r.newContainer(id, c.sandbox, config, NewLog(r.cfg.Now))
	if err != nil {
		return err
	}
	n.memory = next
	r.mu.Lock()
	r.containers[n.id] = n
	r.mu.Unlock()
	return n.start(r.cfg.Now())
}

// nextConfig is what the kubelet would have made for the container that follows.
func (c *Container) nextConfig() (*runtimeapi.ContainerConfig, error) {
	c.mu.Lock()
	b, err := proto.Marshal(c.config)
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	s := &ContainerState{Config: b}
	if err := s.SetRestarts(s.Restarts() + 1); err != nil {
		return nil, err
	}
	config := &runtimeapi.ContainerConfig{}
	return config, proto.Unmarshal(s.Config, config)
}

// Using are the running containers that have a volume mounted which outlives pods and was kept, with the UIDs of their
// pods.
func (r *Runtime) Using(k *Kept) (ids, pods []string) {
	for _, c := range r.containersOf("") {
		if c.runs() && slices.ContainsFunc(c.config.Mounts, func(m *runtimeapi.Mount) bool {
			return slices.ContainsFunc(k.places, func(p keptPlace) bool {
				return p.lasting && m.HostPath != "" && overlap(path.Clean(m.HostPath), p.path)
			})
		}) {
			ids, pods = append(ids, c.id), append(pods, c.sandbox.podUID())
		}
	}
	return ids, pods
}

// Lasting reports whether something was kept that outlives the pod.
func (k *Kept) Lasting() bool {
	return slices.ContainsFunc(k.places, func(p keptPlace) bool { return p.lasting })
}
