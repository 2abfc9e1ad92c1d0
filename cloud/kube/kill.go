package kube

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

// killing deletes pods as anybody might, again and again.
type killing struct {
	cloud *Cloud
	kills cloud.Kills
}

func (k *killing) apply(ctx context.Context, pods []v1.Pod, degree float64) (settled bool, err error) {
	list := make([]*v1.Pod, len(pods))
	for i := range pods {
		list[i] = &pods[i]
	}
	due, _ := k.kills.Due(list, degree, time.Now())
	for _, p := range due {
		if err := k.kill(ctx, p); err != nil {
			return false, err
		}
	}
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
