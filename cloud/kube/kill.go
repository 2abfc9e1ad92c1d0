package kube

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// successorLife is how long a pod that replaces a killed one runs before it is killed too, as in the embedded cloud:
// somebody who watches sees a pod that comes up and keeps dying.
const successorLife = 2 * time.Second

// killing deletes pods as anybody might: at once when it begins, and then whatever takes their place.
type killing struct {
	cloud *Cloud
	begun bool
	since map[types.UID]time.Time // when a successor was first seen running
}

func (k *killing) apply(ctx context.Context, pods []v1.Pod, degree float64) (settled bool, err error) {
	if degree == 0 {
		k.begun = false
		return true, nil
	}
	since := map[types.UID]time.Time{}
	for _, p := range pods {
		if k.begun {
			if p.Status.Phase != v1.PodRunning {
				continue
			}
			first, known := k.since[p.UID]
			if !known {
				first = time.Now()
			}
			since[p.UID] = first
			if time.Since(first) < successorLife {
				continue
			}
		}
		if err := k.kill(ctx, &p); err != nil {
			return false, err
		}
	}
	k.begun, k.since = true, since
	return true, nil
}

// kill deletes a pod without grace, unless it has made way for another of its name.
func (k *killing) kill(ctx context.Context, p *v1.Pod) error {
	err := k.cloud.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(p.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s: %w", p.Name, err)
	}
	return nil
}

func (k *killing) pending(context.Context) string { return "" }

// end has nothing to undo: the dead stay dead, and their controllers replace them.
func (k *killing) end(context.Context) error { return nil }
