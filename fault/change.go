package fault

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/internal/manifest"
)

const (
	pollEvery = 50 * time.Millisecond
	// patience is how long a cluster may take to follow a change.
	patience = 2 * time.Minute
)

// Apply changes an object of the application the way it was deployed: by a server-side apply of the
// whole of it, under the same name. So its managed fields do not tell that it was changed by somebody
// else. It can be a Deployment, a StatefulSet, a DaemonSet, a Service, a ConfigMap, a Role or a custom resource.
func Apply(ctx context.Context, e *Env, u *unstructured.Unstructured) error { return apply(ctx, e, u) }

func apply(ctx context.Context, e *Env, u *unstructured.Unstructured) error {
	if e.Dress != nil {
		u = u.DeepCopy()
		e.Dress(u)
	}
	data, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	ns, name := u.GetNamespace(), u.GetName()
	opts := metav1.PatchOptions{FieldManager: manifest.FieldManager, Force: ptr.To(true)}
	switch u.GetKind() {
	case "Deployment":
		_, err = e.Client.AppsV1().Deployments(ns).Patch(ctx, name, types.ApplyPatchType, data, opts)
	case "StatefulSet":
		_, err = e.Client.AppsV1().StatefulSets(ns).Patch(ctx, name, types.ApplyPatchType, data, opts)
	case "DaemonSet":
		_, err = e.Client.AppsV1().DaemonSets(ns).Patch(ctx, name, types.ApplyPatchType, data, opts)
	case "Service":
		_, err = e.Client.CoreV1().Services(ns).Patch(ctx, name, types.ApplyPatchType, data, opts)
	case "ConfigMap":
		_, err = e.Client.CoreV1().ConfigMaps(ns).Patch(ctx, name, types.ApplyPatchType, data, opts)
	case "Role":
		_, err = e.Client.RbacV1().Roles(ns).Patch(ctx, name, types.ApplyPatchType, data, opts)
	default:
		err = applyCustom(ctx, e, u)
	}
	if err != nil {
		return fmt.Errorf("change %s %s: %w", u.GetKind(), name, err)
	}
	e.applied(u)
	return nil
}

// applyCustom applies an object of a kind that the application's own manifests define.
func applyCustom(ctx context.Context, e *Env, u *unstructured.Unstructured) error {
	c, err := custom(e, u)
	if err != nil {
		return err
	}
	return c.ApplyOne(ctx, u.GetNamespace(), u)
}

// custom is a client for an object of a kind that the application's own manifests define.
func custom(e *Env, u *unstructured.Unstructured) (*manifest.Client, error) {
	o, err := read(e.App)
	if err != nil {
		return nil, err
	}
	kinds := manifest.Defined(o)
	if !slices.ContainsFunc(kinds, func(d *unstructured.Unstructured) bool { return d.GetKind() == u.GetKind() }) {
		return nil, fmt.Errorf("a %s cannot be changed", u.GetKind())
	}
	if e.Config == nil {
		return nil, fmt.Errorf("the environment has no configuration of the cluster to change a %s with", u.GetKind())
	}
	return manifest.NewClient(e.Config)
}

// applied tells of objects that were applied.
func (e *Env) applied(objects ...*unstructured.Unstructured) {
	if e.Applied == nil {
		return
	}
	for _, u := range objects {
		e.Applied(u)
	}
}

// scale applies a Deployment or StatefulSet with another number of replicas. For none it waits until its pods are
// gone or on their way.
func scale(ctx context.Context, e *Env, u *unstructured.Unstructured, replicas int64) error {
	u = u.DeepCopy()
	if err := unstructured.SetNestedField(u.Object, replicas, "spec", "replicas"); err != nil {
		return err
	}
	if err := apply(ctx, e, u); err != nil || replicas > 0 {
		return err
	}
	return poll(ctx, "the pods of "+u.GetName()+" to go", func(ctx context.Context) (bool, error) {
		if u.GetKind() == "StatefulSet" {
			s, err := e.Client.AppsV1().StatefulSets(u.GetNamespace()).Get(ctx, u.GetName(), metav1.GetOptions{})
			return err == nil && s.Status.ObservedGeneration >= s.Generation && s.Status.Replicas == 0, err
		}
		d, err := e.Client.AppsV1().Deployments(u.GetNamespace()).Get(ctx, u.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return d.Status.ObservedGeneration >= d.Generation && d.Status.Replicas == 0, nil
	})
}

// poll asks until the answer is yes.
func poll(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := done(ctx)
		if ok && err == nil {
			return nil
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			if err == nil {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
	}
}

// podsOf lists the pods of services that are not on their way out.
func podsOf(ctx context.Context, e *Env, service string) ([]v1.Pod, error) {
	list, err := e.Client.CoreV1().Pods(e.App.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: e.App.Label + "=" + service})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", service, err)
	}
	var pods []v1.Pod
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			pods = append(pods, p)
		}
	}
	return pods, nil
}

// deletePods deletes the pods of services, as kubectl delete pod does; others take their place.
func deletePods(ctx context.Context, e *Env, services ...string) error {
	for _, s := range services {
		pods, err := podsOf(ctx, e, s)
		if err != nil {
			return err
		}
		for i := range pods {
			if err := deletePod(ctx, e, &pods[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func deletePod(ctx context.Context, e *Env, p *v1.Pod) error {
	err := e.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s: %w", p.Name, err)
	}
	return nil
}

// awaitReady waits until a service has a pod that is ready.
func awaitReady(ctx context.Context, e *Env, service string) error {
	return poll(ctx, "a pod of "+service, func(ctx context.Context) (bool, error) {
		pods, err := podsOf(ctx, e, service)
		return slices.ContainsFunc(pods, func(p v1.Pod) bool {
			return unready(&p, 0) == ""
		}), err
	})
}
