// Package apptest runs applications from their manifests without a cluster, for tests: every
// deployment is one machine in memory, found by its name.
//
//	d := apptest.Deploy(t, hotel.App(), images)
//	resp, err := d.Client().Get("http://frontend:5000/hotels?...")
//	d.Restart("mongodb-geo") // its volumes stay
package apptest

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/aiopslab/aiopslab/app"
	"github.com/aiopslab/aiopslab/cloud/embedded/vfs"
	"github.com/aiopslab/aiopslab/internal/manifest"
	"github.com/aiopslab/aiopslab/kit"
	"github.com/aiopslab/aiopslab/kit/kittest"
	"github.com/aiopslab/aiopslab/kit/past"
)

// Deployment is an application under way.
type Deployment struct {
	t      testing.TB
	world  *kittest.World
	images *kit.Registry
	pods   map[string]*Pod
	user   *kittest.Machine
}

// Pod is the one container of a deployment.
type Pod struct {
	*kittest.Machine
	*kittest.Run
	image *kit.Image
	spec  v1.Container
	env   map[string]string
	// before are the containers that have yet to run before this one: they are not run again when it is.
	before []first

	mu      sync.Mutex
	keepers []func(context.Context, *past.Past) error
}

// Deploy starts all deployments of an application. Of the manifests it heeds commands, arguments,
// variables, and volumes from ConfigMaps and Secrets; other volumes are directories that survive a
// restart. Containers beside the first are left out. Those that run before it are run once, until they end well.
func Deploy(t testing.TB, a *app.App, images *kit.Registry) *Deployment {
	t.Helper()
	objects, err := manifest.Read(a.Manifests)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]map[string]string{} // by kind and name
	for _, u := range objects {
		switch u.GetKind() {
		case "ConfigMap":
			files["ConfigMap/"+u.GetName()] = convert[v1.ConfigMap](t, u).Data
		case "Secret":
			s := convert[v1.Secret](t, u)
			data := s.StringData
			if data == nil {
				data = map[string]string{}
			}
			for k, v := range s.Data {
				data[k] = string(v)
			}
			files["Secret/"+u.GetName()] = data
		}
	}
	d := &Deployment{t: t, world: kittest.New(t), images: images, pods: map[string]*Pod{}}
	d.user = d.world.Machine("user", "10.244.255.1")
	n := 0
	for _, u := range objects {
		if u.GetKind() != "Deployment" {
			continue
		}
		n++
		d.add(convert[appsv1.Deployment](t, u), fmt.Sprintf("10.244.0.%d", n+1), files)
	}
	for _, p := range d.pods {
		d.start(p)
	}
	t.Cleanup(func() { // All at once: each may wait for another that has gone.
		for _, p := range d.pods {
			p.Signal(syscall.SIGKILL)
		}
		for _, p := range d.pods {
			p.Wait()
		}
	})
	return d
}

func convert[T any](t testing.TB, u *unstructured.Unstructured) *T {
	t.Helper()
	var v T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &v); err != nil {
		t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
	}
	return &v
}

// add makes the machine of a deployment.
func (d *Deployment) add(dep *appsv1.Deployment, addr string, files map[string]map[string]string) {
	d.t.Helper()
	spec := dep.Spec.Template.Spec
	c := spec.Containers[0]
	_, image, err := d.images.Resolve(c.Image)
	if err != nil {
		d.t.Fatalf("%s: %v", dep.Name, err)
	}
	p := &Pod{Machine: d.world.Machine(dep.Name, addr), image: image, spec: c, env: map[string]string{}}
	p.Install(*image)
	if n, err := fmt.Sscanf(image.User, "%d:%d", &p.User.UID, &p.User.GID); n == 0 && image.User != "" {
		d.t.Fatalf("%s: user %q is not a number: %v", dep.Name, image.User, err)
	}
	for _, e := range c.Env {
		p.env[e.Name] = e.Value
		if e.ValueFrom != nil {
			ref := e.ValueFrom.SecretKeyRef
			p.env[e.Name] = files["Secret/"+ref.Name][ref.Key]
		}
	}
	p.spec.Args = slices.Clone(c.Args)
	for i := range p.spec.Args {
		for name, value := range p.env {
			p.spec.Args[i] = strings.ReplaceAll(p.spec.Args[i], "$("+name+")", value)
		}
	}
	mount(p.Machine, spec.Volumes, c, files)
	d.pods[dep.Name] = p
	for i, before := range spec.InitContainers {
		_, image, err := d.images.Resolve(before.Image)
		if err != nil {
			d.t.Fatalf("%s: %v", before.Name, err)
		}
		m := d.world.Machine(dep.Name+"-"+before.Name,
			fmt.Sprintf("10.244.%d.%s", i+1, addr[strings.LastIndex(addr, ".")+1:]))
		m.Install(*image)
		mount(m, spec.Volumes, before, files)
		p.before = append(p.before, first{
			&Pod{Machine: m, image: image}, append(slices.Clone(before.Command), before.Args...),
		})
		for _, v := range spec.Volumes {
			from, to := mountedAt(before, v.Name), mountedAt(c, v.Name)
			if v.EmptyDir == nil || from == "" || to == "" {
				continue
			}
			if err := p.Namespace.Bind(to, m.Namespace, from, vfs.MountOptions{}); err != nil {
				d.t.Fatal(err)
			}
		}
	}
}

// first is a container that runs before that of its pod.
type first struct {
	*Pod
	argv []string
}

// after is a program that begins when those before it have ended well, as often as that takes.
func after(before []first, program kit.Program) kit.Program {
	return func(ctx context.Context, env *kit.Env) error {
		for _, f := range before {
			for kit.Run(ctx, f.Program(f.argv[0]), f.Machine.Env(f.argv...)) != 0 {
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
		}
		return program(ctx, env)
	}
}

// mount makes the directories of a container's volumes, with what is in them.
func mount(m *kittest.Machine, volumes []v1.Volume, c v1.Container, files map[string]map[string]string) {
	for _, v := range volumes {
		at := mountedAt(c, v.Name)
		if at == "" {
			continue
		}
		m.Write(at+"/", "")
		source := ""
		switch {
		case v.ConfigMap != nil:
			source = "ConfigMap/" + v.ConfigMap.Name
		case v.Secret != nil:
			source = "Secret/" + v.Secret.SecretName
		}
		for name, content := range files[source] {
			m.Write(path.Join(at, name), content)
		}
	}
}

// mountedAt is where a container has a volume, or "".
func mountedAt(c v1.Container, volume string) string {
	for _, m := range c.VolumeMounts {
		if m.Name == volume {
			return m.MountPath
		}
	}
	return ""
}

// start runs a pod's container.
func (d *Deployment) start(p *Pod) {
	d.t.Helper()
	argv, args := p.image.Entrypoint, p.image.Cmd
	if p.spec.Command != nil {
		argv, args = p.spec.Command, nil
	}
	if p.spec.Args != nil {
		args = p.spec.Args
	}
	env := p.Env(append(append([]string(nil), argv...), args...)...)
	for k, v := range p.image.Vars {
		env.Vars[k] = v
	}
	for k, v := range p.env {
		env.Vars[k] = v
	}
	if p.image.WorkDir != "" {
		env.Dir = p.image.WorkDir
	}
	env.OnRecall(func(as kit.Telling, f func(context.Context, *past.Past) error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if as == kit.Keeper {
			p.keepers = append(p.keepers, f)
		}
	})
	p.Run = p.Machine.Run(after(p.before, p.Program(env.Args[0])), env)
	p.before = nil
}

// Keeps reports whether the pod's program wants to be told the past that it has kept.
func (p *Pod) Keeps() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.keepers) > 0
}

// Recall has the pod's program write the data of its past.
func (p *Pod) Recall(ctx context.Context, of *past.Past) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.keepers {
		if err := f(ctx, of); err != nil {
			return err
		}
	}
	return nil
}

// Program returns an executable of the pod's image by name.
func (p *Pod) Program(name string) kit.Program {
	for file, program := range p.image.Programs {
		if file == name || path.Base(file) == name {
			return program
		}
	}
	panic(fmt.Sprintf("%s: no program %s in the image", p.Name, name))
}

// Pod returns the pod of a deployment.
func (d *Deployment) Pod(name string) *Pod {
	d.t.Helper()
	p := d.pods[name]
	if p == nil {
		d.t.Fatalf("no deployment %s", name)
	}
	return p
}

// Restart kills a container and starts it anew. Its files stay.
func (d *Deployment) Restart(name string) {
	d.t.Helper()
	p := d.Pod(name)
	p.Signal(syscall.SIGTERM)
	p.Wait()
	d.start(p)
}

// User is a machine without programs on the same network.
func (d *Deployment) User() *kittest.Machine { return d.user }

// Switch gives a deployment another image, and starts it anew.
func (d *Deployment) Switch(name, image string) {
	d.t.Helper()
	p := d.Pod(name)
	_, i, err := d.images.Resolve(image)
	if err != nil {
		d.t.Fatalf("%s: %v", name, err)
	}
	p.image = i
	d.Restart(name)
}
