package chaos

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/aiopslab/aiopslab/cloud"
)

// killKind deletes pods again and again.
type killKind struct {
	engine *Engine
	kills  cloud.Kills
}

func (k *killKind) apply(ctx context.Context, pods []*v1.Pod, degree float64) (again time.Duration, err error) {
	due, again := k.kills.Due(pods, degree, k.engine.cfg.Clock.Now())
	for _, p := range due {
		if err := k.kill(ctx, p); err != nil {
			return 0, err
		}
	}
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
