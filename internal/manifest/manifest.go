// Package manifest applies plain Kubernetes YAML to a cluster and waits for what it deploys.
package manifest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/aiopslab/aiopslab/kit"
)

// EachImage calls a function for every image that a container of the objects has, with what puts another in its place.
func EachImage(objects []*unstructured.Unstructured, visit func(image string, set func(image string))) {
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, key := range []string{"containers", "initContainers"} {
				containers, _ := v[key].([]any)
				for _, c := range containers {
					m, _ := c.(map[string]any)
					if image, _ := m["image"].(string); image != "" {
						visit(image, func(other string) { m["image"] = other })
					}
				}
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	for _, u := range objects {
		walk(u.Object)
		eachBaseImage(u, visit)
	}
}

// eachBaseImage visits the images of a custom resource whose specification has parts with a baseImage, and the version
// that is their tag beside it or above.
func eachBaseImage(u *unstructured.Unstructured, visit func(image string, set func(image string))) {
	spec, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec")
	all, _ := spec.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		part, _ := all[key].(map[string]any)
		base, _ := part["baseImage"].(string)
		version, _ := all["version"].(string)
		if own, _ := part["version"].(string); own != "" {
			version = own
		}
		if base != "" && version != "" {
			visit(base+":"+version, func(other string) { part["baseImage"] = strings.TrimSuffix(other, ":"+version) })
		}
	}
}

// Under has the images of the objects come from a prefix of a registry, as [kit.Under] names them.
func Under(prefix string, objects []*unstructured.Unstructured) error {
	var errs []error
	EachImage(objects, func(image string, set func(string)) {
		under, err := kit.Under(prefix, image)
		if err != nil {
			errs = append(errs, err)
			return
		}
		set(under)
	})
	return errors.Join(errs...)
}

// FieldManager is the name kubectl apply --server-side has, under which objects are applied.
const FieldManager = "kubectl"

// parallel is how many objects are applied at once.
const parallel = 8

// Read returns the objects of all *.yaml files, in the order of the file names.
func Read(files fs.FS) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		list, err := Parse(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, list...)
	}
	return objects, nil
}

// Parse returns the objects of YAML documents.
func Parse(b []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(b), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := dec.Decode(u); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(u.Object) > 0 {
			objects = append(objects, u)
		}
	}
}

// order puts what others need first: namespaces and definitions, then configuration, then what runs.
func order(u *unstructured.Unstructured) int {
	switch u.GetKind() {
	case "Namespace", "CustomResourceDefinition":
		return 0
	case "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod":
		return 2
	}
	return 1
}

// ErrNotOwn is the class of errors about objects in no namespace that somebody else has made.
var ErrNotOwn = errors.New("it is there already, and somebody else has made it")

// Client applies objects to one cluster. It remembers what kinds of objects the cluster has.
type Client struct {
	// Labels are given to objects that are in no namespace. Such an object that is there without them is left alone,
	// and the error is ErrNotOwn.
	Labels  map[string]string
	dynamic dynamic.Interface
	mapper  meta.ResettableRESTMapper
}

// NewClient returns a client of the cluster at cfg.
func NewClient(cfg *rest.Config) (*Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // The objects of an application come at once.
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &Client{dynamic: dyn, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))}, nil
}

// Apply creates or changes objects, as kubectl apply --server-side does. Namespaced objects without
// a namespace go to the given one, which is created if need be.
func (c *Client) Apply(ctx context.Context, namespace string, objects []*unstructured.Unstructured) error {
	has := slices.ContainsFunc(objects, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == "Namespace" && u.GetName() == namespace
	})
	if namespace != "" && !has {
		ns := &unstructured.Unstructured{}
		ns.SetAPIVersion("v1")
		ns.SetKind("Namespace")
		ns.SetName(namespace)
		objects = append([]*unstructured.Unstructured{ns}, objects...)
	}
	for stage := range 3 {
		g, all := errgroup.WithContext(ctx)
		g.SetLimit(parallel)
		for _, u := range objects {
			if order(u) == stage {
				g.Go(func() error { return c.apply(all, namespace, u) })
			}
		}
		if err := g.Wait(); err != nil {
			return err
		}
		if err := c.established(ctx, stage, objects); err != nil {
			return err
		}
	}
	return nil
}

// ApplyOne creates or changes one object, as Apply does, in a namespace that is there.
func (c *Client) ApplyOne(ctx context.Context, namespace string, u *unstructured.Unstructured) error {
	return c.apply(ctx, namespace, u)
}

// Get reads an object that has the kind and the name of another.
func (c *Client) Get(ctx context.Context, namespace string,
	u *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	r, u, err := c.resource(namespace, u)
	if err != nil {
		return nil, err
	}
	return r.Get(ctx, u.GetName(), metav1.GetOptions{})
}

func (c *Client) apply(ctx context.Context, namespace string, u *unstructured.Unstructured) error {
	r, u, err := c.resource(namespace, u)
	made := false
	if err == nil && len(c.Labels) > 0 && u.GetNamespace() == "" {
		made, err = c.own(ctx, r, u)
	}
	if err == nil && !made {
		_, err = r.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
	}
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}

// own makes an object in no namespace, or sees to it that the one that is there has the client's labels. It is made,
// not applied: of two who do so at once, one gets it. With the UID that the object is given, it is applied to the one
// that was looked at, and to no other.
func (c *Client) own(ctx context.Context, r dynamic.ResourceInterface, u *unstructured.Unstructured) (bool, error) {
	_, err := r.Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager})
	if !apierrors.IsAlreadyExists(err) {
		return true, err
	}
	old, err := r.Get(ctx, u.GetName(), metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	for key, value := range c.Labels {
		if old.GetLabels()[key] != value {
			return false, ErrNotOwn
		}
	}
	u.SetUID(old.GetUID())
	return false, nil
}

// resource is where an object lives, and the object with its namespace, or the labels of what has none.
func (c *Client) resource(namespace string,
	u *unstructured.Unstructured,
) (dynamic.ResourceInterface, *unstructured.Unstructured, error) {
	gvk := u.GroupVersionKind()
	m, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, u, err
	}
	if m.Scope.Name() != meta.RESTScopeNameNamespace {
		if len(c.Labels) > 0 {
			u = u.DeepCopy()
			labels := u.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			maps.Copy(labels, c.Labels)
			u.SetLabels(labels)
		}
		return c.dynamic.Resource(m.Resource), u, nil
	}
	if u.GetNamespace() == "" {
		u = u.DeepCopy()
		u.SetNamespace(namespace)
	}
	return c.dynamic.Resource(m.Resource).Namespace(u.GetNamespace()), u, nil
}

// WaitReady waits until all Deployments, StatefulSets and DaemonSets among the objects have all their pods ready, and
// objects of kinds that others of them define have the condition Ready. When ctx ends it says which have not.
func (c *Client) WaitReady(ctx context.Context, namespace string, objects []*unstructured.Unstructured) error {
	var workloads []*unstructured.Unstructured
	for _, u := range objects {
		if slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, u.GetKind()) || defined(u, objects) {
			workloads = append(workloads, u)
		}
	}
	var errs []error
	for i, u := range workloads {
		r, u, err := c.resource(namespace, u)
		if err == nil {
			err = waitReady(ctx, r, u.GetName())
		}
		if err != nil && ctx.Err() != nil {
			return errors.Join(append(errs, c.late(ctx, namespace, workloads[i:]))...)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// lookTime is how long a cluster may take to say what was not ready in time.
const lookTime = 5 * time.Second

// late says of which workloads the time was too short for, and what the first of them waits for.
func (c *Client) late(ctx context.Context, namespace string, workloads []*unstructured.Unstructured) error {
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	var who []string
	why := ""
	for _, u := range workloads {
		r, u, err := c.resource(namespace, u)
		if err == nil {
			if now, err := r.Get(look, u.GetName(), metav1.GetOptions{}); err == nil && ready(now) {
				continue
			}
		}
		if who = append(who, u.GetKind()+" "+u.GetName()); len(who) == 1 {
			why = c.waitsFor(look, u)
		}
	}
	switch len(who) {
	case 0: // The last became ready just now.
		return context.Cause(ctx)
	case 1:
		return fmt.Errorf("%s: not ready: %s%w", who[0], why, context.Cause(ctx))
	}
	return fmt.Errorf("%s and %d more: not ready: %s%w", who[0], len(who)-1, why, context.Cause(ctx))
}

// waitsFor is what holds up the pods of a workload, with a colon behind it, or nothing.
func (c *Client) waitsFor(ctx context.Context, workload *unstructured.Unstructured) string {
	labels, _, _ := unstructured.NestedStringMap(workload.Object, "spec", "selector", "matchLabels")
	if len(labels) == 0 {
		return ""
	}
	pods := c.dynamic.Resource(v1.SchemeGroupVersion.WithResource("pods")).Namespace(workload.GetNamespace())
	selector := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels})
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return ""
	}
	for _, u := range list.Items {
		var p v1.Pod
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &p) != nil {
			continue
		}
		for _, x := range p.Status.Conditions {
			if x.Type == v1.PodScheduled && x.Status == v1.ConditionFalse {
				return fmt.Sprintf("no node takes %s: %s: ", p.Name, x.Message)
			}
		}
		for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			w, last := s.State.Waiting, s.LastTerminationState.Terminated
			switch {
			case w != nil && w.Message != "":
				return fmt.Sprintf("%s: %s: %s: ", p.Name, w.Reason, w.Message)
			case w != nil && last != nil:
				return fmt.Sprintf("%s: %s, exit status %d: ", p.Name, w.Reason, last.ExitCode)
			case w != nil:
				return fmt.Sprintf("%s: %s: ", p.Name, w.Reason)
			}
		}
	}
	return ""
}

// waitReady watches one object until its pods are ready.
func waitReady(ctx context.Context, r dynamic.ResourceInterface, name string) error {
	return watchUntil(ctx, r, name, ready)
}

// watchUntil watches one object until it is as wanted.
func watchUntil(ctx context.Context, r dynamic.ResourceInterface, name string,
	done func(*unstructured.Unstructured) bool,
) error {
	for {
		u, err := r.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if done(u) {
			return nil
		}
		w, err := r.Watch(ctx, metav1.SingleObject(
			metav1.ObjectMeta{Name: name, ResourceVersion: u.GetResourceVersion()}))
		if err != nil {
			return err
		}
		for e := range w.ResultChan() {
			if u, ok := e.Object.(*unstructured.Unstructured); ok && done(u) {
				w.Stop()
				return nil
			}
		}
		w.Stop()
		if ctx.Err() != nil {
			return fmt.Errorf("not ready: %w", context.Cause(ctx))
		}
	}
}

// ready reports whether a workload runs what its specification says. What is no workload has a condition.
func ready(u *unstructured.Unstructured) bool {
	if !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, u.GetKind()) {
		return is(u, "Ready")
	}
	number := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(u.Object, path...)
		return n
	}
	if number("status", "observedGeneration") < u.GetGeneration() {
		return false
	}
	if u.GetKind() == "DaemonSet" {
		want := number("status", "desiredNumberScheduled")
		return number("status", "numberReady") == want && number("status", "updatedNumberScheduled") == want
	}
	want, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !found {
		want = 1
	}
	return number("status", "readyReplicas") == want && number("status", "updatedReplicas") == want &&
		number("status", "replicas") == want
}
