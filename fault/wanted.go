package fault

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// wanted is how many pods a service is to have: what its Deployment or StatefulSet asks for, or as many as
// there are nodes for its DaemonSet. ok is false if it has none of these.
func wanted(ctx context.Context, e *Env, service string) (n int, ok bool, err error) {
	apps, ns, get := e.Client.AppsV1(), e.App.Namespace, metav1.GetOptions{}
	d, err := apps.Deployments(ns).Get(ctx, service, get)
	if err == nil {
		return int(ptr.Deref(d.Spec.Replicas, 1)), true, nil
	}
	if !apierrors.IsNotFound(err) {
		return 0, false, err
	}
	set, err := apps.StatefulSets(ns).Get(ctx, service, get)
	if err == nil {
		return int(ptr.Deref(set.Spec.Replicas, 1)), true, nil
	}
	if !apierrors.IsNotFound(err) {
		return 0, false, err
	}
	daemons, err := apps.DaemonSets(ns).Get(ctx, service, get)
	if err == nil {
		return int(daemons.Status.DesiredNumberScheduled), true, nil
	}
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return 0, false, err
}
