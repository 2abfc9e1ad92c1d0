package chaos

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

// successorLife is how long a pod that replaces a killed one runs before it is killed too. Without a
// pause a controller and the engine would race each other; with this one somebody who watches sees a
// pod that comes up and keeps dying.
const successorLife = 2 * time.Second

// killKind deletes pods: at once when it begins, and then whatever takes their place.
type killKind struct {
	engine *Engine
	begun  bool
	since  map[types.UID]time.Time // when a successor was first seen running
}

func (k *killKind) apply(ctx context.Context, pods []*v1.Pod, degree float64) (again time.Duration, err error) {
	if degree == 0 {
		k.begun = false
		return 0, nil
	}
	now := k.engine.cfg.Clock.Now()
	since := map[types.UID]time.Time{}
	for _, p := range pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		if k.begun {
			if p.Status.Phase != v1.PodRunning {
				continue
			}
			first, known := k.since[p.UID]
			if !known {
				first = now
			}
			since[p.UID] = first
			if left := successorLife - now.Sub(first); left > 0 {
				again = sooner(again, left)
				continue
			}
		}
		if err := k.kill(ctx, p); err != nil {
			return 0, err
		}
	}
	k.begun, k.since = true, since
	return again, nil
}

// kill deletes a pod as anybody might.
func (k *killKind) kill(ctx context.Context, p *v1.Pod) error {
	err := k.engine.cfg.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(p.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}

func (k *killKind) end() {} // The dead stay dead; their controllers replace them.
