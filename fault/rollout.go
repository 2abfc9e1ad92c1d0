package fault

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

// controllerManager is who scales ReplicaSets.
const controllerManager = "kube-controller-manager"

// replace makes the pods of a Deployment anew from what it is changed to. A rolling update keeps the old
// pods for as long as the new ones are not ready, and then nothing would be wrong; so they are taken away
// as the update itself would have done, had the new ones got ready. One write to the Deployment, and what
// follows from it by the controller's name, is all that is left to see.
//
// A StatefulSet takes the old pod away itself before it makes a new one, of one pod after another, and stops at the
// first that does not get ready.
func replace(ctx context.Context, e *Env, u *unstructured.Unstructured) error {
	if u.GetKind() != "Deployment" {
		return apply(ctx, e, u)
	}
	deployments := e.Client.AppsV1().Deployments(u.GetNamespace())
	before, err := deployments.Get(ctx, u.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read Deployment %s: %w", u.GetName(), err)
	}
	if err := apply(ctx, e, u); err != nil {
		return err
	}
	var d *appsv1.Deployment
	err = poll(ctx, "new pods of "+u.GetName(), func(ctx context.Context) (bool, error) {
		d, err = deployments.Get(ctx, u.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		begun := d.Generation == before.Generation || d.Status.UpdatedReplicas > 0 || ptr.Deref(d.Spec.Replicas, 1) == 0
		return d.Status.ObservedGeneration >= d.Generation && begun, nil
	})
	if err != nil {
		return err
	}
	return retire(ctx, e, d)
}

// retire scales the ReplicaSets of earlier releases to nothing.
func retire(ctx context.Context, e *Env, d *appsv1.Deployment) error {
	sets := e.Client.AppsV1().ReplicaSets(d.Namespace)
	list, err := sets.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the ReplicaSets of %s: %w", d.Name, err)
	}
	owned := slices.DeleteFunc(list.Items, func(s appsv1.ReplicaSet) bool { return !metav1.IsControlledBy(&s, d) })
	slices.SortFunc(owned, func(a, b appsv1.ReplicaSet) int { return cmp.Compare(revisionOf(&a), revisionOf(&b)) })
	for _, s := range owned[:max(0, len(owned)-1)] {
		had := int32(0)
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			now, err := sets.Get(ctx, s.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if had = ptr.Deref(now.Spec.Replicas, 1); had == 0 {
				return nil
			}
			now.Spec.Replicas = ptr.To(int32(0))
			_, err = sets.Update(ctx, now, metav1.UpdateOptions{FieldManager: controllerManager})
			return err
		})
		if err != nil {
			return fmt.Errorf("scale ReplicaSet %s: %w", s.Name, err)
		}
		if had > 0 {
			if err := tellScaled(ctx, e, d, s.Name, had); err != nil {
				return err
			}
		}
	}
	return nil
}

// revisionOf is which release of its Deployment a ReplicaSet is.
func revisionOf(s *appsv1.ReplicaSet) int {
	n, _ := strconv.Atoi(s.Annotations["deployment.kubernetes.io/revision"])
	return n
}

// tellScaled writes the event that the Deployment controller writes when it has scaled a ReplicaSet down.
func tellScaled(ctx context.Context, e *Env, d *appsv1.Deployment, set string, from int32) error {
	const source = "deployment-controller"
	now := metav1.NewTime(time.Now())
	_, err := e.Client.CoreV1().Events(d.Namespace).Create(ctx, &v1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: fmt.Sprintf("%s.%x", d.Name, now.UnixNano())},
		InvolvedObject: v1.ObjectReference{
			Kind: "Deployment", APIVersion: "apps/v1", Namespace: d.Namespace, Name: d.Name, UID: d.UID,
			ResourceVersion: d.ResourceVersion,
		},
		Reason: "ScalingReplicaSet", Message: fmt.Sprintf("Scaled down replica set %s from %d to 0", set, from),
		Type: v1.EventTypeNormal, Source: v1.EventSource{Component: source}, ReportingController: source,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{FieldManager: controllerManager})
	if err != nil {
		return fmt.Errorf("write an event of %s: %w", d.Name, err)
	}
	return nil
}
